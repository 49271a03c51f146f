package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newBenchPartitions(c *console) *cobra.Command {
	var b *bench
	var counts []int32
	cmd := &cobra.Command{
		Use:   "partitions",
		Short: "Measure writing to ever more partitions",
		Long: `Makes a topic with each number of partitions in turn, writes over all of them, and
deletes it: what creation takes and how throughput and latency depend on the number.`,
		Example: `  mainstem bench partitions
  mainstem bench partitions --counts 100,1000,10000 --rate 5000 --json`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.partitions(cmd.Context(), counts)
		},
	}
	b = addBench(cmd, c)
	f := cmd.Flags()
	b.load.add(f, 0)
	f.Lookup("batch").DefValue = "4096"
	b.load.Batch = 4096
	f.Int32SliceVar(&counts, "counts", []int32{1, 10, 100, 1000}, "numbers of partitions")
	f.Lookup("topic").Hidden = true
	return cmd
}

func (b *bench) partitions(ctx context.Context, counts []int32) error {
	if b.topic != "" {
		return usage("Each number of partitions gets a topic of its own.", "--topic has no meaning here")
	}
	for _, n := range counts {
		if n < 1 {
			return usage("Use 1 or more.", "--counts %d is out of range", n)
		}
	}
	var results []*benchResult
	for _, n := range counts {
		if !b.quiet {
			_ = printf(b.c.err, "%d partitions\n", n) // Nobody looks: the result counts.
		}
		b.count = n
		err := b.during(ctx, func(ctx context.Context, topic string, partitions int32) error {
			r, err := b.overPartitions(ctx, topic, partitions)
			if err != nil {
				return err
			}
			r.Creation = milliseconds(b.creation)
			results = append(results, r)
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			return errors.Join(b.showPartitions(results), err)
		}
		if err != nil {
			break // By a signal: what was measured is shown.
		}
	}
	return b.showPartitions(results)
}

// overPartitions is the run with one number of partitions.
func (b *bench) overPartitions(ctx context.Context, topic string, partitions int32) (*benchResult, error) {
	p, err := newProducers(b.remote, &b.load, topic, 0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	stop := b.progress(p.meter.count, &p.meter.ack)
	n, took := p.run(ctx)
	stop()
	if f := p.meter.failure.Load(); f != nil && n.records == 0 {
		return nil, *f
	}
	r := &benchResult{Command: "partitions", Topic: topic, Partitions: partitions}
	r.produced(p, n, took)
	return r, nil
}

func (b *bench) showPartitions(results []*benchResult) error {
	if b.json {
		return printJSON(b.c.out, results)
	}
	t := table{heading: []string{"PARTITIONS", "CREATION MS", "RECORDS/S", "MB/S", "P50 MS", "P99 MS", "P99.9 MS", "ERRORS"}}
	for _, r := range results {
		l := r.Ack
		if l == nil {
			l = &latencies{}
		}
		t.add(itoa(r.Partitions), fmt.Sprintf("%.1f", r.Creation), fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.1f", r.Megabytes),
			millis(l.P50), millis(l.P99), millis(l.P999), itoa(r.Errors))
	}
	return t.print(b.c.out)
}
