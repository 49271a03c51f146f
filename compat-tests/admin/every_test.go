package admin

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// rig is a broker, its client, and what calls every method of that client.
type rig struct {
	*testing.T
	ctx  context.Context
	node *harness.Node
	cl   *kgo.Client
	adm  *kadm.Client
}

// called are the methods that the tests of this package call.
func called() map[string]func(r *rig) {
	all := map[string]func(r *rig){"SetTimeoutMillis": setTimeout, "Close": closeClient}
	for _, class := range []map[string]func(r *rig){cluster(), leaders(), topics(), configs(), offsets(), groups(), quotas(), transactions()} {
		for name, call := range class {
			all[name] = call
		}
	}
	return all
}

// TestEveryMethodOfKadm runs each method on a broker; a method that the client
// has and no table names fails it.
func TestEveryMethodOfKadm(t *testing.T) {
	node := harness.Start(t, "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=3",
		"transaction.state.log.num.partitions=3", "group.consumer.assignment.interval.ms=0")
	tests, later := called(), comesLater()
	client := reflect.TypeFor[*kadm.Client]()
	for i := range client.NumMethod() {
		name := client.Method(i).Name
		call, now := tests[name]
		feature, then := later[name]
		require.True(t, now != then, "method %s must be in exactly one of the tables", name)
		t.Run(name, func(t *testing.T) {
			r := newRig(t, node)
			if now {
				call(r)
				return
			}
			err := feature.call(r)
			require.Error(t, err, feature.reason)
			assert.ErrorContains(t, err, feature.answer, feature.reason)
			assert.NoError(t, r.ctx.Err(), "the client must be told at once")
		})
		delete(tests, name)
		delete(later, name)
	}
	assert.Empty(t, tests, "no such method")
	assert.Empty(t, later, "no such method")
}

func newRig(t *testing.T, node *harness.Node, opts ...kgo.Opt) *rig {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(node.Address), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return &rig{T: t, ctx: ctx, node: node, cl: cl, adm: kadm.NewClient(cl)}
}

// topic makes a topic that is named as the test is, with n partitions.
func (r *rig) topic(n int32) string {
	r.Helper()
	name := r.Name()[len("TestEveryMethodOfKadm/"):]
	_, err := r.adm.CreateTopic(r.ctx, n, 1, nil, name)
	require.NoError(r, err)
	return name
}

// write produces n records to each partition of a topic.
func (r *rig) write(topic string, partitions int32, n int) {
	r.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.node.Address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(r, err)
	defer cl.Close()
	var records []*kgo.Record
	for p := range partitions {
		for i := range n {
			records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: []byte("v"), Timestamp: time.UnixMilli(int64(1000 * (i + 1)))})
		}
	}
	require.NoError(r, cl.ProduceSync(r.ctx, records...).FirstErr())
}

// setTimeout: the timeout is what requests carry; the broker takes any.
func setTimeout(r *rig) {
	r.adm.SetTimeoutMillis(1)
	r.topic(1)
}

func closeClient(r *rig) {
	r.adm.Close()
	_, err := r.adm.BrokerMetadata(r.ctx)
	assert.ErrorIs(r, err, kgo.ErrClientClosed)
}
