package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newBenchLatency(c *console) *cobra.Command {
	var b *bench
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure the time from producer to consumer at a fixed rate",
		Example: `  mainstem bench latency --rate 1000
  mainstem bench latency --rate 20000 --size 200 --partitions 16 --duration 60s --json`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.load.Rate == 0 {
				return usage("1000 is the default.", "--rate 0 measures no latency but the depth of queues")
			}
			if b.load.Size < stampSize {
				return usage(fmt.Sprintf("Use %d or more: a record carries its time.", stampSize), "--size %d is too small", b.load.Size)
			}
			return b.during(cmd.Context(), b.latency)
		},
	}
	b = addBench(cmd, c)
	b.addPartitions(cmd.Flags())
	b.load.add(cmd.Flags(), 1000)
	return cmd
}

// listener reads a topic's end and measures the records that carry its mark.
type listener struct {
	client   *kgo.Client
	mark     uint64
	measured atomic.Int64 // unix time in ns from which records count
	read     atomic.Int64
	bytes    atomic.Int64
	late     histogram
	came     chan struct{}
}

func (b *bench) newListener(ctx context.Context, topic string) (*listener, error) {
	spans, err := b.spans(ctx, topic)
	if err != nil {
		return nil, err
	}
	from := make(map[int32]kgo.Offset)
	for partition, s := range spans {
		from[partition] = kgo.NewOffset().At(s.to)
	}
	l := &listener{mark: rand.Uint64() | 1, came: make(chan struct{}, 1)}
	l.client, err = b.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchMaxWait(500*time.Millisecond), kgo.FetchMinBytes(1),
	)
	return l, err
}

// listen reads until ctx ends.
func (l *listener) listen(ctx context.Context) {
	for ctx.Err() == nil {
		l.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			now := time.Now()
			if len(r.Value) < stampSize || binary.BigEndian.Uint64(r.Value[8:]) != l.mark {
				return
			}
			intended := int64(binary.BigEndian.Uint64(r.Value))
			if intended >= l.measured.Load() {
				l.late.add(time.Duration(now.UnixNano() - intended))
			}
			l.bytes.Add(int64(len(r.Value)))
			l.read.Add(1)
		})
		select {
		case l.came <- struct{}{}:
		default:
		}
	}
}

// await waits until so many records were read; it returns how many are missing.
func (l *listener) await(written int64, patience time.Duration) int64 {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for l.read.Load() < written {
		select {
		case <-l.came:
		case <-timer.C:
			return max(0, written-l.read.Load())
		}
	}
	return 0
}

func (b *bench) latency(ctx context.Context, topic string, partitions int32) error {
	l, err := b.newListener(ctx, topic)
	if err != nil {
		return err
	}
	defer l.client.Close()
	p, err := newProducers(b.remote, &b.load, topic, l.mark)
	if err != nil {
		return err
	}
	defer p.close()
	l.measured.Store(time.Now().Add(b.load.Warmup).UnixNano())
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.listen(listening)
	}()
	stop := b.progress(func() count { return count{l.read.Load(), l.bytes.Load()} }, &l.late)
	n, took := p.run(ctx)
	missing := l.await(p.meter.acked.Load(), b.timeout)
	stop()
	cancel()
	<-ended
	r := benchResult{Command: "latency", Topic: topic, Partitions: partitions, Missing: missing}
	r.produced(p, n, took)
	r.EndToEnd = l.late.snapshot().summary()
	return b.show(&r, p.meter.failure.Load())
}
