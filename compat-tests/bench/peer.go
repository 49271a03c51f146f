package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// peerRun compares brokers.
type peerRun struct {
	patience time.Duration
	attempts int
	limit    time.Duration
	work     string
	results  string

	file    string // where the report goes
	report  peerReport
	now     string // the broker that is measured
	pending []figured

	live    broker // a warm process, and for whom
	liveDir string
	liveOf  step

	began          time.Time
	took, expected time.Duration // of the steps that are done
	spare          time.Duration // what repeats may take
}

func (p *peerRun) seconds() time.Duration {
	return time.Duration(p.report.Seconds * float64(time.Second))
}

// warmup is how long a client runs before it measures.
func (p *peerRun) warmup() time.Duration { return min(2*time.Second, p.seconds()) }

// add notes a figure of the step that runs.
func (p *peerRun) add(group, name, metric string, value float64, m measured) {
	fmt.Printf("   %s, %s: %s %s\n", group, name, number(value), metric)
	p.pending = append(p.pending, figured{p.now, group, name, metric, sample{Value: value, Others: m.others}})
}

func peerCommand(ctx context.Context, args []string) error {
	p, only, err := parsePeer(args)
	if err != nil {
		return err
	}
	if only != nil {
		return only()
	}
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return err
	}
	if p.report.Date == "" {
		p.report.Date = time.Now().UTC().Format(time.RFC3339)
		if p.report.Machine, err = machineFacts(p.work); err != nil {
			return err
		}
		if p.file, err = newFile(p.results, p.report.Date); err != nil {
			return err
		}
	}
	p.began = time.Now()
	fmt.Printf("%s; an interrupted run goes on with -resume %s\n", p.file, p.file)
	ran := p.run(ctx)
	p.report.print(os.Stdout)
	files, err := p.report.plots(p.results)
	fmt.Printf("written to %s in %v\n", strings.Join(append([]string{p.file}, files...), ", "), time.Since(p.began).Round(time.Second))
	return errors.Join(ran, err)
}

// newFile names a report of this day that does not exist yet.
func newFile(dir, date string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		name := date[:len("2006-01-02")] + "-peer.json"
		if i > 1 {
			name = fmt.Sprintf("%s-peer-%d.json", date[:len("2006-01-02")], i)
		}
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return file, nil
		} else if err != nil {
			return "", err
		}
	}
}

// parsePeer reads the command line; only, if there is one, is what to do instead
// of measuring.
func parsePeer(args []string) (p *peerRun, only func() error, err error) {
	p = &peerRun{}
	fs := flag.NewFlagSet("peer", flag.ContinueOnError)
	brokers := fs.String("brokers", "kafka,mainstem", "what to compare, of "+strings.Join(peerNames(), ",")+"; ratios are to the first")
	chosen := fs.String("scenarios", strings.Join(usualScenarios(), ","), "what to measure")
	resume := fs.String("resume", "", "report of an interrupted run to go on with, as it was begun")
	readme := fs.Bool("readme", false, "write the newest report's table and plots into the README; measure nothing")
	fs.Float64Var(&p.report.Seconds, "seconds", 5, "length of each measurement")
	fs.IntVar(&p.report.Rounds, "rounds", 3, "rounds; medians are shown")
	fs.DurationVar(&p.limit, "limit", 0, "begin nothing that would not end in this time; 0 is none")
	fs.IntVar(&p.attempts, "attempts", 3, "how often to measure at most when other work used over 0.3 cores meanwhile")
	fs.DurationVar(&p.patience, "patience", 30*time.Second, "how long to wait for other work to end before a repeat")
	fs.DurationVar(&p.report.Rest, "rest", time.Minute, "how long idle brokers are left alone, and then watched")
	fs.IntVar(&p.report.Starts, "starts", 5, "starts of which the best counts")
	fs.Int64Var(&p.report.Fill, "fill", 1<<30, "bytes to read hot and cold; a start after kill -9 finds twice as many")
	fs.StringVar(&p.work, "work", "work", "folder for the brokers' data, removed afterwards")
	fs.StringVar(&p.results, "results", "results", "folder for figures and plots")
	fs.Usage = func() { peerUsage(fs) }
	if err := fs.Parse(args); err != nil {
		return nil, nil, err
	}
	if *readme {
		return p, func() error { return updateReadme("../../README.md", p.results) }, nil
	}
	if p.work, err = filepath.Abs(p.work); err != nil {
		return nil, nil, err
	}
	if *resume != "" {
		p.file, p.results = *resume, filepath.Dir(*resume)
		p.report, err = readPeerReport(*resume)
		return p, nil, err
	}
	p.report.Brokers, p.report.Scenarios = strings.Split(*brokers, ","), strings.Split(*chosen, ",")
	if p.report.Rounds < 1 || p.report.Seconds <= 0 || p.attempts < 1 || p.report.Starts < 1 {
		return nil, nil, errors.New("-rounds, -seconds, -attempts and -starts are above 0")
	}
	return p, nil, p.report.check()
}

// check refuses names that do not exist.
func (r *peerReport) check() error {
	for _, b := range r.Brokers {
		if !slices.Contains(peerNames(), b) {
			return fmt.Errorf("there is no broker %q; they are %s", b, strings.Join(peerNames(), ", "))
		}
	}
	for _, s := range r.Scenarios {
		if scenarioNamed(s) == nil {
			return fmt.Errorf("there is no scenario %q; peer -h lists them", s)
		}
	}
	return nil
}

func peerUsage(fs *flag.FlagSet) {
	fmt.Fprintln(fs.Output(), "usage: compat-tests/bench/peer [flags]\nscenarios:")
	for _, s := range peerScenarios() {
		about := s.about
		if s.rare {
			about += " (only when named)"
		}
		fmt.Fprintf(fs.Output(), "  %-17s %s\n", s.name, about)
	}
	fmt.Fprintln(fs.Output(), "flags:")
	fs.PrintDefaults()
}
