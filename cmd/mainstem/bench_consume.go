package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const benchConsumeText = `Measures reading a topic once from its start to its end.

A topic of the run's own is filled first, with --fill bytes of records; a topic that
--topic names is read as it is, and filled only if it is empty.`

func newBenchConsume(c *console) *cobra.Command {
	var b *bench
	var fill int64
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Measure reading a topic from start to end",
		Long:  benchConsumeText,
		Example: `  mainstem bench consume --partitions 16 --fill 1073741824
  mainstem bench consume --topic orders --connections 2 --json`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.during(cmd.Context(), func(ctx context.Context, topic string, _ int32) error {
				return b.consume(ctx, topic, fill)
			})
		},
	}
	b = addBench(cmd, c)
	b.load = benchLoad{Acks: "all", Duration: time.Second}
	f := cmd.Flags()
	b.addPartitions(f)
	f.IntVarP(&b.load.Connections, "connections", "c", 1, "consuming clients; partitions are shared out among them")
	f.Int64Var(&fill, "fill", 256<<20, "bytes to write before into an empty topic")
	f.IntVarP(&b.load.Size, "size", "s", 1024, "bytes of a record that is written before")
	f.StringVarP(&b.load.Compression, "compression", "z", "none", "codec of what is written before: none, gzip, snappy, lz4 or zstd")
	f.Int32Var(&b.load.Batch, "batch", 64<<10, "bytes that go to a partition before the next one's turn")
	return cmd
}

// extent is what there is to read of a partition.
type extent struct{ from, to int64 }

func (b *bench) consume(ctx context.Context, topic string, fill int64) error {
	spans, err := b.spans(ctx, topic)
	if err != nil {
		return err
	}
	if total(spans) == 0 {
		if err := b.fill(ctx, topic, fill); err != nil {
			return err
		}
		if spans, err = b.spans(ctx, topic); err != nil {
			return err
		}
	}
	readers := make([]*benchReader, 0, b.load.Connections)
	defer func() {
		for _, r := range readers {
			r.client.Close()
		}
	}()
	var read struct{ records, bytes atomic.Int64 }
	for i := range b.load.Connections {
		r, err := b.newReader(topic, i, spans)
		if err != nil {
			return err
		}
		r.count = func(records, bytes int64) {
			read.records.Add(records)
			read.bytes.Add(bytes)
		}
		readers = append(readers, r)
	}
	now := func() count { return count{read.records.Load(), read.bytes.Load()} }
	stop := b.progress(now, nil)
	began := time.Now()
	errs := make([]error, len(readers))
	var reading sync.WaitGroup
	for i, r := range readers {
		reading.Go(func() { errs[i] = r.read(ctx, b.timeout) })
	}
	reading.Wait()
	took := time.Since(began)
	stop()
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	result := benchResult{Command: "consume", Topic: topic, Partitions: int32(len(spans))}
	result.counted(now(), took)
	return b.show(&result, nil)
}

func total(spans map[int32]extent) (n int64) {
	for _, s := range spans {
		n += s.to - s.from
	}
	return n
}

// spans asks what there is to read.
func (b *bench) spans(ctx context.Context, topic string) (map[int32]extent, error) {
	spans := make(map[int32]extent)
	err := b.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		starts, err := adm.ListStartOffsets(ctx, topic)
		if err != nil {
			return fmt.Errorf("ask where %s starts: %w", topic, err)
		}
		ends, err := adm.ListEndOffsets(ctx, topic)
		if err != nil {
			return fmt.Errorf("ask where %s ends: %w", topic, err)
		}
		for partition, end := range ends[topic] {
			start, _ := starts.Lookup(topic, partition)
			if end.Err != nil || start.Err != nil {
				return fmt.Errorf("ask for partition %d of %s: %w", partition, topic, firstError(start.Err, end.Err))
			}
			spans[partition] = extent{start.Offset, end.Offset}
		}
		return nil
	})
	return spans, err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// fill writes what is read afterwards.
func (b *bench) fill(ctx context.Context, topic string, bytes int64) error {
	load := b.load
	load.Connections, load.Records = 1, max(bytes/int64(load.Size), 1)
	p, err := newProducers(b.remote, &load, topic, 0)
	if err != nil {
		return err
	}
	defer p.close()
	if !b.quiet {
		_ = printf(b.c.err, "writing %d records first\n", load.Records) // Nobody looks: the result counts.
	}
	p.run(ctx)
	if f := p.meter.failure.Load(); f != nil {
		return *f
	}
	return ctx.Err()
}

// benchReader reads its share of a topic's partitions.
type benchReader struct {
	client *kgo.Client
	left   map[int32]int64 // partitions that are not read to their end, and the end
	topic  string
	count  func(records, bytes int64)
}

func (b *bench) newReader(topic string, index int, spans map[int32]extent) (*benchReader, error) {
	r := &benchReader{topic: topic, left: make(map[int32]int64)}
	from := make(map[int32]kgo.Offset)
	for partition, s := range spans {
		if int(partition)%b.load.Connections == index && s.to > s.from {
			from[partition], r.left[partition] = kgo.NewOffset().At(s.from), s.to
		}
	}
	var err error
	r.client, err = b.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.KeepControlRecords(), // The last record may be one.
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	return r, err
}

// read ends when all is read, when ctx ends, or when nothing came for so long.
func (r *benchReader) read(ctx context.Context, patience time.Duration) error {
	for len(r.left) > 0 {
		waiting, cancel := context.WithTimeout(ctx, patience)
		fetches := r.client.PollFetches(waiting)
		ended := waiting.Err()
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ended != nil {
			return fmt.Errorf("read %s: nothing came for %v with %d partitions unfinished: %w", r.topic, patience, len(r.left), errUnread)
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("read partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
		fetches.EachPartition(r.took)
	}
	return nil
}

func (r *benchReader) took(p kgo.FetchTopicPartition) {
	if len(p.Records) == 0 {
		return
	}
	var records, bytes int64
	for _, one := range p.Records {
		if !one.Attrs.IsControl() {
			records++
			bytes += int64(len(one.Value))
		}
	}
	r.count(records, bytes)
	if p.Records[len(p.Records)-1].Offset+1 >= r.left[p.Partition] {
		delete(r.left, p.Partition)
	}
}
