package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const benchText = `Bench measures a broker that speaks Kafka's protocol, Mainstem or another, as an
ordinary client sees it.

Without --topic the records go to a topic that is made for the run and deleted
after it. A topic that --topic names is made if it is missing, and stays.

Latency is counted from the time at which a record should have been sent: at a
fixed --rate a broker that stalls is not spared the records that waited for it.
At full rate (--rate 0) it is counted from when the client takes the record, and
shows how deep the client's queue is.

One line a second goes to standard error while it runs; Ctrl-C ends it early. The
client takes CPU time as well: on the broker's machine the two share it.`

func newBench(c *console) *cobra.Command {
	cmd := group("bench", "Measure a broker: throughput, latency, many partitions",
		newBenchProduce(c), newBenchConsume(c), newBenchLatency(c), newBenchPartitions(c))
	cmd.Long = benchText
	return cmd
}

// bench is what the measuring commands have in common.
type bench struct {
	*remote
	load     benchLoad
	topic    string
	count    int32 // partitions of a topic that is made
	replicas int16
	configs  []string
	quiet    bool

	creation time.Duration // of the topic, if it was made
}

func addBench(cmd *cobra.Command, c *console) *bench {
	b := &bench{remote: addRemote(cmd, c)}
	f := cmd.Flags()
	f.StringVarP(&b.topic, "topic", "t", "", "topic to use; made if it is missing. Default: one for this run only")
	f.Int16Var(&b.replicas, "replicas", 1, "replication factor of a topic that is made")
	f.StringArrayVar(&b.configs, "config", nil, "name=value of a topic that is made (may be repeated)")
	f.BoolVarP(&b.quiet, "quiet", "q", false, "no progress")
	return b
}

func (b *bench) addPartitions(f *pflag.FlagSet) {
	f.Int32VarP(&b.count, "partitions", "p", 1, "partitions of a topic that is made")
}

// during runs fn with the topic there. A signal ends fn's context; what it has
// measured until then counts.
func (b *bench) during(ctx context.Context, fn func(ctx context.Context, topic string, partitions int32) error) error {
	if err := b.load.check(); err != nil {
		return err
	}
	ctx, release := b.interruptible(ctx)
	defer release()
	name, temporary := b.topic, b.topic == ""
	if temporary {
		name = "mainstem-bench-" + randomSuffix()
	}
	partitions, err := b.ensureTopic(ctx, name, b.count)
	if err != nil {
		return err
	}
	if temporary {
		defer func() { _ = b.deleteTopic(name) }() // What was measured matters more.
	}
	return b.explain(fn(ctx, name, partitions))
}

// interruptible returns a context that the first signal ends.
func (b *bench) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, release := b.c.signals()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
		release()
	}
}

// ensureTopic makes the topic if it is missing and returns its partitions.
func (b *bench) ensureTopic(ctx context.Context, name string, partitions int32) (int32, error) {
	configs := make(map[string]*string)
	pairs, err := parsePairs("config", b.configs)
	if err != nil {
		return 0, err
	}
	for _, p := range pairs {
		configs[p[0]] = &p[1]
	}
	err = b.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		topics, err := adm.ListTopics(ctx, name)
		if err != nil {
			return fmt.Errorf("look for topic %s: %w", name, err)
		}
		if t, ok := topics[name]; ok && t.Err == nil {
			partitions = int32(len(t.Partitions))
			return nil
		}
		began := time.Now()
		made, err := adm.CreateTopic(ctx, partitions, b.replicas, configs, name)
		b.creation = time.Since(began)
		if err != nil && made.Err != nil {
			return answerError("create topic "+name, made.Err, made.ErrMessage)
		}
		return err
	})
	return partitions, err
}

// deleteTopic has a context of its own: the command's may have ended.
func (b *bench) deleteTopic(name string) error {
	return b.admin(context.Background(), func(ctx context.Context, adm *kadm.Client) error {
		_, err := adm.DeleteTopic(ctx, name)
		return err
	})
}

func randomSuffix() string {
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // It never fails.
	return hex.EncodeToString(raw[:])
}

// benchLoad is what is sent and how.
type benchLoad struct {
	Rate        float64       `json:"rate"` // records a second over all connections; 0 is full rate
	Size        int           `json:"record_bytes"`
	Acks        string        `json:"acks"`
	Compression string        `json:"compression"`
	Connections int           `json:"connections"`
	InFlight    int           `json:"in_flight"` // requests of a connection; 0 is the client's choice
	Batch       int32         `json:"batch_bytes"`
	Linger      time.Duration `json:"linger_ns"`
	Records     int64         `json:"records,omitempty"` // ends the run before its time
	Duration    time.Duration `json:"duration_ns"`
	Warmup      time.Duration `json:"warmup_ns"`
}

func (l *benchLoad) add(f *pflag.FlagSet, rate float64) {
	f.Float64VarP(&l.Rate, "rate", "r", rate, "records a second over all connections; 0 is as fast as possible")
	f.IntVarP(&l.Size, "size", "s", 1024, "bytes of a record's value, about half of them compressible")
	f.StringVar(&l.Acks, "acks", "all", "all: safe on all replicas in sync; 1: on the leader; 0: do not wait")
	f.StringVarP(&l.Compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.IntVarP(&l.Connections, "connections", "c", 1, "producing clients, each with a connection of its own")
	f.IntVar(&l.InFlight, "in-flight", 0, "unanswered requests of a connection, not idempotent then. Default: idempotent, five")
	f.Int32Var(&l.Batch, "batch", 64<<10, "bytes that go to a partition before the next one's turn")
	f.DurationVar(&l.Linger, "linger", 0, "how long a client waits for a batch to fill")
	f.DurationVarP(&l.Duration, "duration", "d", 10*time.Second, "how long to measure")
	f.DurationVar(&l.Warmup, "warmup", time.Second, "how long to run before that")
}

const maxConnections = 10_000

func (l *benchLoad) check() error {
	switch {
	case l.Rate < 0:
		return usage("0 is as fast as possible.", "--rate %v is negative", l.Rate)
	case l.Size < 1 || l.Size > 100<<20:
		return usage("Use 1 to 104857600.", "--size %d is out of range", l.Size)
	case l.Connections < 1 || l.Connections > maxConnections:
		return usage("Use 1 to 10000.", "--connections %d is out of range", l.Connections)
	case l.InFlight < 0:
		return usage("0 leaves it to the client.", "--in-flight %d is negative", l.InFlight)
	case l.Batch < 1:
		return usage("65536 is the default.", "--batch %d is too small", l.Batch)
	case l.Duration <= 0:
		return usage("10s is the default.", "--duration %v is not above 0", l.Duration)
	case l.Linger < 0 || l.Warmup < 0 || l.Records < 0:
		return usage("0 is none.", "--linger, --warmup and --records cannot be negative")
	}
	_, err := l.options()
	return err
}

// options are those of the Kafka client.
func (l *benchLoad) options() ([]kgo.Opt, error) {
	codec, err := codecNamed(l.Compression)
	if err != nil {
		return nil, err
	}
	largest := max(l.Batch, int32(l.Size)) + 1024
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(max(largest, 1000012)),
		kgo.BrokerMaxWriteBytes(max(100<<20, 2*largest)),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(int(l.Batch), false, false, nil)),
		kgo.ProducerLinger(l.Linger),
		kgo.MaxBufferedBytes(max(64<<20, 2*int(largest))),
	}
	idempotent := l.InFlight == 0
	switch l.Acks {
	case "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.LeaderAck())), false
	case "0":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.NoAck())), false
	default:
		return nil, usage("Use all, 1 or 0.", "--acks %q is unknown", l.Acks)
	}
	if !idempotent {
		inFlight := l.InFlight
		if inFlight == 0 {
			inFlight = 5
		}
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(inFlight))
	}
	return opts, nil
}
