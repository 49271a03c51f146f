package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// delivered is what any consumer ever saw at an offset.
type delivered struct {
	mu     sync.Mutex
	values map[slot]map[int64]string
	fault  error
	count  int
}

// see takes a record in; another value at an offset that was seen is a fault.
func (d *delivered) see(s slot, offset int64, value string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.values[s]
	if m == nil {
		m = map[int64]string{}
		d.values[s] = m
	}
	old, before := m[offset]
	if before && old != value && d.fault == nil {
		d.fault = fmt.Errorf("%v offset %d was delivered as %q and as %q", s, offset, old, value)
	}
	if !before {
		d.count++
	}
	m[offset] = value
}

func (d *delivered) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		d.fault = err
	}
}

// consume reads every partition through crashes until ctx ends. An offset that
// is out of range is a fault, not a reason to begin anew.
func consume(ctx context.Context, address string, topics map[string]int32, d *delivered) error {
	offsets := map[string]map[int32]kgo.Offset{}
	for t, n := range topics {
		offsets[t] = map[int32]kgo.Offset{}
		for p := range n {
			offsets[t][p] = kgo.NewOffset().At(0)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(offsets),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		fetches.EachError(func(topic string, p int32, err error) {
			if ctx.Err() == nil && !kgo.IsRetryableBrokerErr(err) {
				d.fail(fmt.Errorf("consume %s-%d: %w", topic, p, err))
			}
		})
		fetches.EachRecord(func(r *kgo.Record) { d.see(slot{r.Topic, r.Partition}, r.Offset, string(r.Key)) })
	}
	return nil
}

// TestDeliveredNeverChanges is the field case O-ST-3: what a consumer has seen
// is there after a crash, at the same offset, whether or not it was acknowledged.
func TestDeliveredNeverChanges(t *testing.T) {
	rounds := number(t, "MAINSTEM_CRASH_ROUNDS", 4)
	seed := uint64(number(t, "MAINSTEM_CRASH_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("MAINSTEM_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	node := harness.Start(t, "mainstem.commitlog.segment.bytes=4194304")
	topics := map[string]int32{"synced": 10, "asynchronous": 4}
	create(t, node.Address, "synced", topics["synced"], nil)
	async := "async"
	create(t, node.Address, "asynchronous", topics["asynchronous"], map[string]*string{"mainstem.durability": &async})

	l, err := startLoad(node.Address, topics, 6, seed, newHistory())
	require.NoError(t, err)
	d := &delivered{values: map[slot]map[int64]string{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var consumers sync.WaitGroup
	for range 5 {
		consumers.Go(func() {
			if err := consume(ctx, node.Address, topics, d); err != nil {
				d.fail(err)
			}
		})
	}
	for round := range rounds {
		time.Sleep(time.Duration(200+rng.IntN(600)) * time.Millisecond)
		node.Kill()
		require.NoError(t, node.Start(), "round %d", round)
	}
	require.NoError(t, l.end())
	stop()
	consumers.Wait()
	require.NoError(t, d.fault)
	require.Greater(t, d.count, rounds*100, "consumers must have read through the crashes")

	r := newReadLog()
	limit, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	require.NoError(t, readOn(limit, node.Address, topics, r))
	for s, values := range d.values {
		for offset, value := range values {
			require.Equal(t, value, r.at(s).values[offset], "%v offset %d", s, offset)
		}
	}
	t.Logf("%d rounds, %d records delivered, none changed", rounds, d.count)
}
