package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// load is a number of idempotent producers that go on through every crash.
type load struct {
	address string
	topics  map[string]int32 // name -> partitions
	history *history
	stop    context.CancelFunc
	wg      sync.WaitGroup
	failed  atomic.Pointer[error]
}

func startLoad(address string, topics map[string]int32, producers int, seed uint64, h *history) (*load, error) {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{address: address, topics: topics, history: h, stop: stop}
	for i := range producers {
		cl, err := kgo.NewClient(
			kgo.SeedBrokers(address),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerLinger(0),
			kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
			kgo.MetadataMinAge(20*time.Millisecond),
			// Give up never: what is not acknowledged at the end is unknown, not lost.
			kgo.RecordDeliveryTimeout(5*time.Minute),
			kgo.MaxBufferedRecords(256),
		)
		if err != nil {
			stop()
			return nil, err
		}
		l.wg.Go(func() { l.produce(ctx, cl, fmt.Sprintf("p%d", i), rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	return l, nil
}

func (l *load) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

func (l *load) produce(ctx context.Context, cl *kgo.Client, name string, rng *rand.Rand) {
	defer cl.Close()
	var slots []slot
	for t, n := range l.topics {
		for p := range n {
			slots = append(slots, slot{t, p})
		}
	}
	filler := strings.Repeat("x", 2000)
	for number := uint64(1); ctx.Err() == nil; number++ {
		s := slots[rng.IntN(len(slots))]
		value := fmt.Sprintf("%s %d", name, number)
		r := &kgo.Record{Topic: s.topic, Partition: s.partition, Key: []byte(value), Value: []byte(value + " " + filler[:rng.IntN(len(filler))])}
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			switch {
			case err == nil:
				if err := l.history.ack(s, r.Offset, value); err != nil {
					l.fail(err)
				}
			case ctx.Err() != nil, errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
			default:
				l.fail(fmt.Errorf("produce to %v: %w", s, err))
			}
		})
	}
}

// end stops the producers; what they have in flight stays unknown.
func (l *load) end() error {
	l.stop()
	l.wg.Wait()
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// readOn reads every partition from where the log of reads stands to its end.
func readOn(ctx context.Context, address string, topics map[string]int32, r *readLog) error {
	offsets := map[string]map[int32]kgo.Offset{}
	for t, n := range topics {
		offsets[t] = map[int32]kgo.Offset{}
		for p := range n {
			offsets[t][p] = kgo.NewOffset().At(r.at(slot{t, p}).next)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(offsets))
	if err != nil {
		return err
	}
	defer cl.Close()
	var names []string
	for t := range topics {
		names = append(names, t)
	}
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, names...)
	if err != nil {
		return err
	}
	if err := ends.Error(); err != nil {
		return err
	}
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if r.at(slot{o.Topic, o.Partition}).next < o.Offset {
			left++
		}
	})
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var bad error
		fetches.EachRecord(func(k *kgo.Record) {
			s := slot{k.Topic, k.Partition}
			if bad == nil {
				bad = r.read(s, k.Offset, string(k.Key))
			}
			if end, _ := ends.Lookup(k.Topic, k.Partition); k.Offset == end.Offset-1 {
				left--
			}
		})
		if bad != nil {
			return bad
		}
	}
	return nil
}
