package fieldcases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestIdleProducersAreForgotten: a partition forgets a producer that has been idle for producer.id.expiration.ms, seen to every
// producer.id.expiration.check.interval.ms; its transactional id lives on, and so does its next transaction.
func TestIdleProducersAreForgotten(t *testing.T) {
	t.Parallel()
	node := harness.Start(t, "producer.id.expiration.ms=300", "producer.id.expiration.check.interval.ms=20")
	frames.Dial(t, node.Address).Create(1, "t")
	adm := admin(t, node.Address)
	known := func() map[int64]bool {
		producers, err := adm.DescribeProducers(limited(t), kadm.TopicsSet{"t": {0: {}}})
		require.NoError(t, err)
		require.NoError(t, producers["t"].Partitions[0].Err)
		ids := map[int64]bool{}
		for _, active := range producers["t"].Partitions[0].ActiveProducers {
			ids[active.ProducerID] = true
		}
		return ids
	}
	p := newTxnProducer(t, node.Address, "id", time.Minute)
	require.Zero(t, p.add(3, "t"))
	require.Zero(t, p.produce(9, "t", "aborted"))
	c := frames.Dial(t, node.Address)
	later := frames.NewBatch(frames.Values("of a producer without a transaction")...)
	later.ProducerID, later.ProducerEpoch, later.FirstSequence = initProducer(c).ProducerID, 0, 0
	require.Zero(t, frames.Ask[*kmsg.ProduceResponse](c, frames.Produce(9, -1, "t", later.Seal())).Topics[0].Partitions[0].ErrorCode)
	require.Eventually(t, func() bool { return !known()[later.ProducerID] }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, map[int64]bool{p.producer: true}, known(), "a producer with an open transaction is not idle, however long")
	require.Zero(t, p.end(3, false))
	require.Eventually(t, func() bool { return len(known()) == 0 }, 20*time.Second, 20*time.Millisecond)

	first := p.producer
	p.init(time.Minute)
	require.Equal(t, first, p.producer)
	require.Zero(t, p.add(3, "t"))
	require.Zero(t, p.produce(9, "t", "committed"))
	require.Zero(t, p.end(3, true))
	require.EqualValues(t, 5, stable(t, frames.Dial(t, node.Address), "t"))
}
