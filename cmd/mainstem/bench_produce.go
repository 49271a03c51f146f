package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newBenchProduce(c *console) *cobra.Command {
	var b *bench
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Measure writing: throughput, and latency until the broker answers",
		Example: `  mainstem bench produce --partitions 16 --connections 2
  mainstem bench produce --rate 5000 --size 200 --acks all
  mainstem bench produce --bootstrap kafka:9092 --compression lz4 --json`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.during(cmd.Context(), b.produce)
		},
	}
	b = addBench(cmd, c)
	b.addPartitions(cmd.Flags())
	b.load.add(cmd.Flags(), 0)
	cmd.Flags().Int64VarP(&b.load.Records, "records", "n", 0, "send so many records instead of for a time")
	return cmd
}

func (b *bench) produce(ctx context.Context, topic string, partitions int32) error {
	p, err := newProducers(b.remote, &b.load, topic, 0)
	if err != nil {
		return err
	}
	defer p.close()
	stop := b.progress(p.meter.count, &p.meter.ack)
	n, took := p.run(ctx)
	stop()
	r := benchResult{Command: "produce", Topic: topic, Partitions: partitions}
	r.produced(p, n, took)
	return b.show(&r, p.meter.failure.Load())
}
