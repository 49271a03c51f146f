package badinput

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// acks is what a producer was told.
type acks struct {
	mu     sync.Mutex
	values map[[2]int64]string // partition and offset -> value
	err    error
}

func newAcks() *acks { return &acks{values: map[[2]int64]string{}} }

func (a *acks) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.values)
}

func (a *acks) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *acks) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
}

// produce writes to partitions in turn until ctx ends.
func (a *acks) produce(ctx context.Context, cl *kgo.Client, topic string, partitions int32) {
	for n := 0; ctx.Err() == nil; n++ {
		r := &kgo.Record{Topic: topic, Partition: int32(n) % partitions, Value: fmt.Append(nil, "value ", n)}
		cl.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			if err != nil {
				a.fail(err)
				return
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.values[[2]int64{int64(r.Partition), r.Offset}] = string(r.Value)
		})
	}
}

// verify finds all that was acknowledged, each value once.
func (a *acks) verify(t *testing.T, node *harness.Node, topic string, partitions int32) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := map[string]bool{}
	for p := range partitions {
		for offset, value := range frames.Dial(t, node.Address).ReadAll(topic, p, 0) {
			want, acked := a.values[[2]int64{int64(p), int64(offset)}]
			assert.True(t, !acked || want == value, "%s-%d offset %d: %q was acknowledged, %q is there", topic, p, offset, want, value)
			assert.False(t, seen[value] && value != "raw 0", "%q is there twice", value)
			seen[value] = true
		}
	}
	for _, value := range a.values {
		assert.True(t, seen[value], "%q was acknowledged and is gone", value)
	}
}
