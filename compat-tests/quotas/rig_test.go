package quotas

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// start runs a broker whose quotas are over three samples of a second: what comes in
// two seconds may come at once.
func start(t *testing.T) *harness.Node {
	t.Helper()
	return harness.Start(t, "quota.window.num=3", "controller.quota.window.num=3", "auto.create.topics.enable=false")
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// set sets a quota of "type=name,type"; without a name it is the default. A value of
// zero removes it.
func set(t *testing.T, node *harness.Node, entity, key string, value float64) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.ClientID("admin"))
	require.NoError(t, err)
	defer cl.Close()
	setBy(t, kadm.NewClient(cl), entity, key, value)
}

func setBy(t *testing.T, adm *kadm.Client, entity, key string, value float64) {
	t.Helper()
	e := kadm.AlterClientQuotaEntry{Ops: []kadm.AlterClientQuotaOp{{Key: key, Value: value, Remove: value == 0}}}
	for part := range strings.SplitSeq(entity, ",") {
		typ, name, named := strings.Cut(part, "=")
		c := kadm.ClientQuotaEntityComponent{Type: typ}
		if named {
			c.Name = &name
		}
		e.Entity = append(e.Entity, c)
	}
	got, err := adm.AlterClientQuotas(limited(t), []kadm.AlterClientQuotaEntry{e})
	require.NoError(t, err)
	require.NoError(t, got[0].Err, got[0].ErrMessage)
}

// throttles counts what a client is told to wait.
type throttles struct {
	count atomic.Int64
	time  atomic.Int64
}

// OnBrokerThrottle is of kgo.
func (h *throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, d time.Duration, _ bool) {
	h.count.Add(1)
	h.time.Add(int64(d))
}

// client is a kgo client that calls itself id.
func client(t *testing.T, node *harness.Node, id string, opts ...kgo.Opt) (*kgo.Client, *throttles) {
	t.Helper()
	h := &throttles{}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(node.Address), kgo.ClientID(id), kgo.WithHooks(h), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl, h
}

const recordBytes = 100_000

// send produces so many records one after the other.
func send(t *testing.T, cl *kgo.Client, topic string, records int) {
	t.Helper()
	value := make([]byte, recordBytes)
	for range records {
		require.NoError(t, cl.ProduceSync(limited(t), &kgo.Record{Topic: topic, Value: value}).FirstErr())
	}
}

// produce sends a small record over a connection of its own, and gives the throttle
// time in the answer.
func produce(t *testing.T, node *harness.Node, id, topic string) time.Duration {
	t.Helper()
	c := frames.DialAs(t, node.Address, id)
	resp := frames.Ask[*kmsg.ProduceResponse](c, frames.Produce(9, -1, topic, frames.NewBatch(frames.Values("v")...).Seal()))
	require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
	return time.Duration(resp.ThrottleMillis) * time.Millisecond
}
