package crashtest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// reader reads a topic with read_committed through every crash, from the beginning
// and each record once, and counts the keys.
type reader struct {
	mu    sync.Mutex
	seen  map[string]int
	fault error
}

// read reads until ctx ends. An offset that is out of range is a fault, not a reason
// to begin anew.
func (r *reader) read(ctx context.Context, address, topic string) {
	offsets := map[int32]kgo.Offset{}
	for p := range int32(txnPartitions) {
		offsets[p] = kgo.NewOffset().At(0)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		panic(err) // The options are wrong.
	}
	defer cl.Close()
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		r.mu.Lock()
		fetches.EachError(func(topic string, p int32, err error) {
			if ctx.Err() == nil && !kgo.IsRetryableBrokerErr(err) && r.fault == nil {
				r.fault = fmt.Errorf("read %s-%d: %w", topic, p, err)
			}
		})
		fetches.EachRecord(func(k *kgo.Record) { r.seen[string(k.Key)]++ })
		r.mu.Unlock()
	}
}

// state is what was seen so far.
func (r *reader) state() (map[string]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.seen), r.fault
}
