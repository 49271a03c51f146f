package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

const produceText = `Produce writes records to a topic: each line of standard input becomes one.

With --json a line is a record as 'mainstem consume --json' prints it:
  {"key":"k","value":"v","headers":[{"key":"h","value":"x"}],"timestamp":1700000000000}
key_base64 and value_base64 hold bytes that are no text; null is a null key, or a
tombstone. Topic, partition and offset of the line are ignored (see --keep-partition).

With --format the input is read by a layout: %k key, %v value, %p partition,
%d timestamp in ms, %h{%k=%v } headers, with lengths as %K %V; \n and \t as usual.`

type produce struct {
	*remote
	partition     int32
	key           string
	separator     string
	headers       []string
	null          string
	compression   string
	acks          string
	format        string
	whole         bool
	zero          bool
	verbose       bool
	keepPartition bool
	maxBytes      int32

	cmd *cobra.Command
}

func newProduce(c *console) *cobra.Command {
	o := &produce{}
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write standard input to a topic",
		Long:  produceText,
		Example: `  echo hello | mainstem produce greetings
  echo k1:hello | mainstem produce greetings --key-separator :
  mainstem produce greetings --json < records.json
  mainstem produce files --key logo.png --whole < logo.png`,
		Args: needArgs("the topic's name", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.cmd = cmd
			return o.explain(o.run(cmd.Context(), args[0]))
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.Lookup("json").Usage = "lines are JSON records, as 'consume --json' prints them"
	f.Int32VarP(&o.partition, "partition", "p", -1, "partition to write to; -1: by key, or any")
	f.StringVarP(&o.key, "key", "k", "", "key of all records")
	f.StringVarP(&o.separator, "key-separator", "K", "", "lines are key, this separator, value")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "header name=value of all records (may be repeated)")
	f.StringVar(&o.null, "null", "", "this text stands for a null key or value (a tombstone)")
	f.StringVarP(&o.compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.StringVar(&o.acks, "acks", "all", "all: safe on all replicas in sync; 1: on the leader; 0: do not wait")
	f.StringVarP(&o.format, "format", "F", "", "layout of the input, such as '%k %v\\n'")
	f.BoolVar(&o.whole, "whole", false, "all of the input is one record")
	f.BoolVarP(&o.zero, "zero", "0", false, "records end with a zero byte instead of a newline")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print partition and offset of each record")
	f.BoolVar(&o.keepPartition, "keep-partition", false, "with --json: write to the partition that the line names")
	f.Int32Var(&o.maxBytes, "max-batch-bytes", 1000012, "largest batch to send; a larger record is refused here")
	cmd.MarkFlagsMutuallyExclusive("json", "format", "whole", "key-separator")
	cmd.MarkFlagsMutuallyExclusive("key", "key-separator")
	cmd.ValidArgsFunction = completeTopics(o.remote)
	return cmd
}

func (o *produce) source() (recordSource, error) {
	in := bufio.NewReaderSize(o.c.in, 64<<10)
	switch {
	case o.json:
		return &jsonLines{in: in, keepPartition: o.keepPartition}, nil
	case o.format != "":
		return newFormatted(in, o.format)
	case o.whole:
		return &whole{in: in}, nil
	}
	l := &lines{in: in, delimiter: '\n'}
	if o.zero {
		l.delimiter = 0
	}
	if o.separator != "" {
		l.separator = []byte(o.separator)
	}
	if o.cmd.Flags().Changed("null") {
		l.null = []byte(o.null)
	}
	return l, nil
}

// codecNamed returns the codec that --compression names.
func codecNamed(name string) (kgo.CompressionCodec, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[name]
	if !ok {
		return codec, usage("Use none, gzip, snappy, lz4 or zstd.", "--compression %q is unknown", name)
	}
	return codec, nil
}

// options are those of the Kafka client.
func (o *produce) options() ([]kgo.Opt, error) {
	codec, err := codecNamed(o.compression)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(o.maxBytes),
		kgo.RecordPartitioner(chosenPartitioner{kgo.StickyKeyPartitioner(nil)}),
		kgo.RecordDeliveryTimeout(o.timeout),
		kgo.UnknownTopicRetries(1),
		kgo.AllowAutoTopicCreation(),
	}
	switch o.acks {
	case "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, usage("Use all, 1 or 0.", "--acks %q is unknown", o.acks)
	}
	return opts, nil
}

func (o *produce) run(ctx context.Context, topic string) error {
	headers, err := parsePairs("header", o.headers)
	if err != nil {
		return err
	}
	opts, err := o.options()
	if err != nil {
		return err
	}
	source, err := o.source()
	if err != nil {
		return err
	}
	cl, err := o.client(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	if o.c.inTTY && o.c.errTTY {
		if err := printf(o.c.err, "Each line becomes a record; Ctrl-D ends.\n"); err != nil {
			return err
		}
	}
	var fixed []kgo.RecordHeader
	for _, h := range headers {
		fixed = append(fixed, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return o.whyLate(ctx, cl, o.send(ctx, cl, source, topic, fixed))
}

// whyLate tells records that a broker does not take in time (its disk is full, its
// partition has no leader) from a broker that is not there.
func (o *produce) whyLate(ctx context.Context, cl *kgo.Client, err error) error {
	if !errors.Is(err, kgo.ErrRecordTimeout) && !errors.Is(err, kgo.ErrRecordRetries) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if ping := cl.Ping(ctx); ping != nil {
		return ping
	}
	return fail(exitRefused, "The broker's log says why; perhaps its disk is full.",
		fmt.Errorf("the broker answers but did not take the records within %s", o.timeout))
}

// send writes all records of the source; the first failure ends it.
func (o *produce) send(ctx context.Context, cl *kgo.Client, source recordSource, topic string, fixed []kgo.RecordHeader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var written int
	done := func(r *kgo.Record, err error) {
		if err != nil {
			cancel(o.recordError(r, err))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		written++
		if o.verbose {
			if err := printf(o.c.out, "%s %d %d\n", r.Topic, r.Partition, r.Offset); err != nil {
				cancel(err)
			}
		}
	}
	var bad error
	for ctx.Err() == nil {
		r, partition, err := source.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			bad = err
			break
		}
		r.Topic = topic
		r.Headers = append(r.Headers, fixed...)
		if r.Key == nil && o.cmd.Flags().Changed("key") {
			r.Key = []byte(o.key)
		}
		cl.Produce(ctx, o.place(ctx, r, partition), done)
	}
	if err := cl.Flush(ctx); err != nil && bad == nil {
		bad = err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if bad != nil {
		return bad
	}
	if o.c.errTTY {
		return printf(o.c.err, "%d records written to %s\n", written, strings.TrimSpace(topic))
	}
	return nil
}

// recordError says why a record was not written.
func (o *produce) recordError(r *kgo.Record, err error) error {
	if w := wanted(r); w >= 0 && strings.HasPrefix(err.Error(), "invalid record partitioning choice") {
		return usage(fmt.Sprintf("'mainstem topic describe %s' shows what there is.", r.Topic), "topic %s has no partition %d", r.Topic, w)
	}
	return fmt.Errorf("produce to %s: %w", r.Topic, err)
}

// place notes the wanted partition where chosenPartitioner finds it: in the
// record's context.
func (o *produce) place(ctx context.Context, r *kgo.Record, partition *int32) *kgo.Record {
	if partition == nil && o.partition >= 0 {
		partition = &o.partition
	}
	if partition != nil {
		r.Context = context.WithValue(ctx, wantedPartition{}, *partition)
	}
	return r
}

type wantedPartition struct{}

// chosenPartitioner obeys a wanted partition and leaves other records to the
// partitioner beneath, which chooses as Kafka's clients do.
type chosenPartitioner struct{ kgo.Partitioner }

// ForTopic returns the partitioner of one topic.
func (p chosenPartitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return chosenTopicPartitioner{p.Partitioner.ForTopic(topic)}
}

type chosenTopicPartitioner struct{ kgo.TopicPartitioner }

// RequiresConsistency says whether the record must go to its partition even when
// that is not available.
func (p chosenTopicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return wanted(r) >= 0 || p.TopicPartitioner.RequiresConsistency(r)
}

// Partition chooses one of n.
func (p chosenTopicPartitioner) Partition(r *kgo.Record, n int) int {
	if w := wanted(r); w >= 0 {
		return w // One that is not there fails the record.
	}
	return p.TopicPartitioner.Partition(r, n)
}

// OnNewBatch lets the partitioner beneath move on to another partition.
func (p chosenTopicPartitioner) OnNewBatch() {
	if b, ok := p.TopicPartitioner.(kgo.TopicPartitionerOnNewBatch); ok {
		b.OnNewBatch()
	}
}

func wanted(r *kgo.Record) int {
	if r.Context != nil {
		if p, ok := r.Context.Value(wantedPartition{}).(int32); ok {
			return int(p)
		}
	}
	return -1
}
