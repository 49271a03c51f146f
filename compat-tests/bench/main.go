package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are what the command line says.
type settings struct {
	parts      []string
	work       string // data directories of the brokers
	results    string
	gigabytes  int
	spread     int // partitions of the part open
	partitions int
	idleWait   time.Duration
	idleTime   time.Duration
	starts     int
}

// part is one thing that is measured.
type part struct {
	name  string
	long  bool // only when asked for
	about string
	run   func(*bench, context.Context) error
}

func parts() []part {
	return []part{
		{"start", false, "start of an empty broker to ready", (*bench).start},
		{"idle", false, "CPU, memory and disk of an idle new broker, two minutes", (*bench).idle},
		{"open", true, "open after kill -9 with 50 GB over 10,000 partitions in the log; two minutes, needs 2 GB of disk", (*bench).open},
		{"partitions", true, "100,000 partitions with data in 10 segments; some minutes, needs 4 GB of disk", (*bench).many},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command, args := run, os.Args[1:]
	if len(args) > 0 && args[0] == "peer" {
		command, args = peerCommand, args[1:]
	}
	if err := command(ctx, args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.work, 0o755); err != nil {
		return err
	}
	b := &bench{settings: s, report: report{Date: time.Now().UTC().Format(time.RFC3339)}}
	if b.report.Machine, err = machineFacts(s.work); err != nil {
		return err
	}
	failed := b.measure(ctx)
	b.report.print(os.Stdout)
	file, err := b.report.save(s.results)
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	fmt.Println("written to", file)
	if left := s.left(); len(left) > 0 {
		fmt.Printf("Not run: %s. Type: compat-tests/bench/run -parts %s (or -all)\n", strings.Join(left, ", "), strings.Join(left, ","))
	}
	return nil
}

// measure runs the parts that are asked for. One that fails does not keep the
// others from being measured.
func (b *bench) measure(ctx context.Context) (failed error) {
	for _, p := range parts() {
		if !slices.Contains(b.parts, p.name) || ctx.Err() != nil {
			continue
		}
		fmt.Printf("== %s: %s\n", p.name, p.about)
		busy := watchOthers()
		if err := p.run(b, ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		b.report.noteBusy(p.name, busy())
	}
	return failed
}

func parse(args []string) (*settings, error) {
	s := &settings{idleWait: time.Minute, idleTime: time.Minute, starts: 5}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	var names, usual []string
	for _, p := range parts() {
		names = append(names, p.name)
		if !p.long {
			usual = append(usual, p.name)
		}
	}
	chosen := fs.String("parts", strings.Join(usual, ","), "what to measure, of "+strings.Join(names, ","))
	all := fs.Bool("all", false, "measure everything")
	fs.IntVar(&s.gigabytes, "gigabytes", 50, "size of the log of the part open")
	fs.IntVar(&s.spread, "spread", 10_000, "partitions of the part open")
	fs.IntVar(&s.partitions, "partitions", 100_000, "partitions of the part partitions")
	fs.StringVar(&s.work, "work", "work", "folder for the brokers' data, removed afterwards")
	fs.StringVar(&s.results, "results", "results", "folder for the figures")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: compat-tests/bench/run [flags]\nparts:")
		for _, p := range parts() {
			fmt.Fprintf(fs.Output(), "  %-11s %s\n", p.name, p.about)
		}
		fmt.Fprintln(fs.Output(), "flags:")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if *all {
		*chosen = strings.Join(names, ",")
	}
	for name := range strings.SplitSeq(*chosen, ",") {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no part %q; they are %s", name, strings.Join(names, ", "))
		}
		s.parts = append(s.parts, name)
	}
	var err error
	s.work, err = filepath.Abs(s.work)
	return s, err
}

// left are the parts that were not asked for.
func (s *settings) left() (names []string) {
	for _, p := range parts() {
		if !slices.Contains(s.parts, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// bench is one run of the program.
type bench struct {
	*settings
	report report
}

// data makes a new folder for a broker's data; remove takes it away again.
func (b *bench) data() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(b.work, "data-")
	if err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // What stays is in a folder that git ignores.
}
