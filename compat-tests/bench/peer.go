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
	brokers   []string
	rounds    int
	seconds   time.Duration
	scenarios []string
	counts    []int // of partitions
	patience  time.Duration
	work      string
	results   string

	report peerReport
	now    string // the broker that is measured
}

func peerCommand(ctx context.Context, args []string) error {
	p, err := parsePeer(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return err
	}
	p.report = peerReport{Date: time.Now().UTC().Format(time.RFC3339), Brokers: p.brokers, Seconds: p.seconds.Seconds(), Rounds: p.rounds}
	if p.report.Machine, err = machineFacts(p.work); err != nil {
		return err
	}
	for round := range p.rounds {
		for _, name := range p.brokers {
			fmt.Printf("== round %d of %d: %s\n", round+1, p.rounds, name)
			if err := p.round(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	p.report.print(os.Stdout)
	files, err := p.report.save(p.results)
	if err != nil {
		return err
	}
	fmt.Println("written to", strings.Join(files, ", "))
	return nil
}

func parsePeer(args []string) (*peerRun, error) {
	p := &peerRun{}
	fs := flag.NewFlagSet("peer", flag.ContinueOnError)
	var names []string
	for _, s := range peerScenarios() {
		names = append(names, s.name)
	}
	brokers := fs.String("brokers", "kafka,mainstem", "what to compare, of "+strings.Join(peerNames(), ",")+"; ratios are to the first")
	chosen := fs.String("scenarios", strings.Join(names, ","), "what to measure")
	counts := fs.String("counts", "1,10,100,1000", "numbers of partitions of the scenario partitions")
	seconds := fs.Int("seconds", 5, "length of each measurement")
	fs.IntVar(&p.rounds, "rounds", 3, "rounds; medians are shown")
	fs.DurationVar(&p.patience, "patience", time.Minute, "how long to wait for other work to end before a measurement, and how often, three times, to repeat a disturbed one")
	fs.StringVar(&p.work, "work", "work", "folder for the brokers' data, removed afterwards")
	fs.StringVar(&p.results, "results", "results", "folder for figures and plots")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	p.seconds = time.Duration(*seconds) * time.Second
	p.brokers, p.scenarios = strings.Split(*brokers, ","), strings.Split(*chosen, ",")
	for _, b := range p.brokers {
		if !slices.Contains(peerNames(), b) {
			return nil, fmt.Errorf("there is no broker %q; they are %s", b, strings.Join(peerNames(), ", "))
		}
	}
	for _, s := range p.scenarios {
		if !slices.Contains(names, s) {
			return nil, fmt.Errorf("there is no scenario %q; they are %s", s, strings.Join(names, ", "))
		}
	}
	for word := range strings.SplitSeq(*counts, ",") {
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err != nil || n < 1 {
			return nil, fmt.Errorf("-counts %q: %q is no number of partitions", *counts, word)
		}
		p.counts = append(p.counts, n)
	}
	var err error
	p.work, err = filepath.Abs(p.work)
	return p, err
}

// round starts a broker anew and measures everything once.
func (p *peerRun) round(ctx context.Context, name string) error {
	dir, err := os.MkdirTemp(p.work, "peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBroker(name, dir)
	if err != nil {
		return err
	}
	p.now = name
	first, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer b.kill()
	for _, s := range peerScenarios() {
		if !slices.Contains(p.scenarios, s.name) {
			continue
		}
		fmt.Printf("   %s\n", s.name)
		if s.name == "start" {
			p.report.add(p.now, "start", "empty", "s to first ack", sample{Value: first.Seconds()})
		}
		if err := s.run(ctx, p, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.stop()
}

// measured is what one measurement needed of the machine.
type measured struct {
	broker time.Duration // CPU time
	others float64       // cores that neither the broker nor the load used
}

// measure runs fn, again if other work disturbed it.
func (p *peerRun) measure(ctx context.Context, b broker, fn func() error) (m measured, err error) {
	const attempts = 3
	for range attempts {
		if err := awaitQuiet(ctx, p.patience); err != nil {
			return m, err
		}
		cpu, err := cpuTime(b.pid())
		if err != nil {
			return m, err
		}
		began, machine, own := time.Now(), machineCPU(), ownCPU()
		if err := fn(); err != nil {
			return m, err
		}
		took := time.Since(began).Seconds()
		after, err := cpuTime(b.pid())
		if err != nil {
			return m, err
		}
		m.broker = after - cpu
		m.others = max(0, (machineCPU()-machine-(ownCPU()-own)-m.broker).Seconds()/took)
		if m.others <= quietBelow || p.patience == 0 {
			return m, nil
		}
		fmt.Printf("      other work used %.1f cores: again\n", m.others)
	}
	return m, nil
}

// awaitQuiet waits, not for ever, until nothing else uses the machine.
func awaitQuiet(ctx context.Context, patience time.Duration) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		busy := watchOthers()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
		if busy() <= quietBelow {
			return nil
		}
	}
	return ctx.Err()
}

// warm loads a broker until it has used 20 s of CPU time, at most 40 s: code that
// is compiled as it runs is not itself before.
func warm(ctx context.Context, b broker) error {
	const enough = 20 * time.Second
	topic := "warm"
	if err := makeTopic(ctx, b.address(), topic, 16); err != nil {
		return err
	}
	for end := time.Now().Add(2 * enough); time.Now().Before(end); {
		if used, err := cpuTime(b.pid()); err != nil || used > enough {
			return errors.Join(err, dropTopic(ctx, b.address(), topic))
		}
		for _, l := range []rawLoad{
			{Connections: 2, InFlight: 5, Partitions: 16, PerRequest: 8, Records: 64, Size: 1024},
			{Connections: 4, InFlight: 5, Partitions: 16, PerRequest: 1, Records: 1, Size: 100},
		} {
			if _, err := produceRaw(ctx, b.address(), topic, l, 2*time.Second); err != nil {
				return err
			}
		}
	}
	return dropTopic(ctx, b.address(), topic)
}
