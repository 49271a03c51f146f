package admin

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func transactions() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"FindTxnCoordinators":         findTxnCoordinators,
		"DescribeTransactions":        describeTransactions,
		"ListTransactions":            listTransactions,
		"ListTransactionsByTxPattern": listTransactionsByTxPattern,
		"DescribeProducers":           describeProducers,
		"WriteTxnMarkers":             writeTxnMarkers,
	}
}

// open begins a transaction, named as the topic is, with a record in partition 0,
// and returns what commits it.
func (r *rig) open(topic string) (commit func()) {
	r.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.node.Address), kgo.TransactionalID(topic), kgo.TransactionTimeout(40*time.Second))
	require.NoError(r, err)
	r.Cleanup(cl.Close)
	require.NoError(r, cl.BeginTransaction())
	require.NoError(r, cl.ProduceSync(r.ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr())
	return func() {
		r.Helper()
		require.NoError(r, cl.EndTransaction(r.ctx, kgo.TryCommit))
	}
}

// marked waits for the markers of a commit: the answer to its end comes before them.
func (r *rig) marked(txn string) (got kadm.DescribedTransaction) {
	r.Helper()
	require.Eventually(r, func() bool {
		all, err := r.adm.DescribeTransactions(r.ctx, txn)
		got = all[txn]
		return err == nil && got.State == "CompleteCommit"
	}, 10*time.Second, 10*time.Millisecond)
	return got
}

func findTxnCoordinators(r *rig) {
	r.open(r.topic(1))
	got := r.adm.FindTxnCoordinators(r.ctx, "some-transactional-id")
	require.NoError(r, got["some-transactional-id"].Err)
	assert.EqualValues(r, 1, got["some-transactional-id"].NodeID)
}

func describeTransactions(r *rig) {
	topic := r.topic(1)
	end := r.open(topic)
	all, err := r.adm.DescribeTransactions(r.ctx, topic, "no-such-id")
	require.NoError(r, err)
	got := all[topic]
	require.NoError(r, got.Err)
	assert.Equal(r, "Ongoing", got.State)
	assert.EqualValues(r, 40_000, got.TimeoutMillis)
	assert.InDelta(r, time.Now().UnixMilli(), got.StartTimestamp, 20_000)
	assert.True(r, got.Topics.Lookup(topic, 0))
	assert.ErrorIs(r, all["no-such-id"].Err, kerr.TransactionalIDNotFound)
	end()
	assert.Empty(r, r.marked(topic).Topics)
}

func listTransactions(r *rig) {
	topic := r.topic(1)
	r.open(topic)
	all, err := r.adm.ListTransactions(r.ctx, nil, nil)
	require.NoError(r, err)
	require.Contains(r, all, topic)
	assert.Equal(r, "Ongoing", all[topic].State)
	one, err := r.adm.ListTransactions(r.ctx, []int64{all[topic].ProducerID}, []string{"Ongoing"})
	require.NoError(r, err)
	assert.Equal(r, []string{topic}, one.TransactionalIDs())
	none, err := r.adm.ListTransactions(r.ctx, []int64{all[topic].ProducerID}, []string{"Empty"})
	require.NoError(r, err)
	assert.Empty(r, none)
}

func listTransactionsByTxPattern(r *rig) {
	topic := r.topic(1)
	r.open(topic)
	got, err := r.adm.ListTransactionsByTxPattern(r.ctx, nil, nil, "List.*ByTxPatter[a-z]")
	require.NoError(r, err)
	assert.Equal(r, []string{topic}, got.TransactionalIDs())
	_, err = r.adm.ListTransactionsByTxPattern(r.ctx, nil, nil, "(")
	assert.ErrorIs(r, err, kerr.InvalidRegularExpression)
}

// producer is the one that has a transaction open in partition 0.
func (r *rig) producer(topic string) kadm.DescribedProducer {
	r.Helper()
	set := kadm.TopicsSet{}
	set.Add(topic, 0)
	got, err := r.adm.DescribeProducers(r.ctx, set)
	require.NoError(r, err)
	require.NoError(r, got[topic].Partitions[0].Err)
	require.Len(r, got[topic].Partitions[0].ActiveProducers, 1)
	for _, p := range got[topic].Partitions[0].ActiveProducers {
		return p
	}
	return kadm.DescribedProducer{}
}

func describeProducers(r *rig) {
	topic := r.topic(1)
	end := r.open(topic)
	p := r.producer(topic)
	assert.EqualValues(r, 0, p.CurrentTxnStartOffset)
	assert.EqualValues(r, 0, p.LastSequence)
	assert.InDelta(r, time.Now().UnixMilli(), p.LastTimestamp, 20_000)
	end()
	r.marked(topic)
	assert.EqualValues(r, -1, r.producer(topic).CurrentTxnStartOffset)
}

// writeTxnMarkers is how a hanging transaction is aborted by hand (KIP-664).
func writeTxnMarkers(r *rig) {
	topic, set := r.topic(1), kadm.TopicsSet{}
	set.Add(topic, 0)
	r.open(topic)
	p := r.producer(topic)
	got, err := r.adm.WriteTxnMarkers(r.ctx, kadm.TxnMarkers{ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch,
		CoordinatorEpoch: max(p.CoordinatorEpoch, 0), Topics: set})
	require.NoError(r, err)
	for _, answer := range got.SortedPartitions() {
		require.NoError(r, answer.Err)
	}
	require.Len(r, got.SortedPartitions(), 1)
	assert.EqualValues(r, -1, r.producer(topic).CurrentTxnStartOffset)
	stable, err := r.adm.ListCommittedOffsets(r.ctx, topic)
	r.at(2, topic, stable, err)
}
