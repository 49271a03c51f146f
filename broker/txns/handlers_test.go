package txns

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

func TestIdempotentProducersGetIDs(t *testing.T) {
	r := newRig(t)
	seen := make(map[int64]bool)
	for version := int16(0); version <= 5; version++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version = version
		resp := r.do(req).(*kmsg.InitProducerIDResponse)
		require.Zero(t, resp.ErrorCode)
		require.Zero(t, resp.ProducerEpoch)
		require.False(t, seen[resp.ProducerID])
		seen[resp.ProducerID] = true
	}
}

func TestNoProducerIDWithoutABlock(t *testing.T) {
	r := newRig(t)
	r.h.ids = newProducerIDs(func(context.Context) (int64, int, error) { return 0, 0, errors.New("no etcd") })
	id := "a"
	for _, txn := range []*string{nil, &id} {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 5, txn, 1000
		resp := r.do(req).(*kmsg.InitProducerIDResponse)
		require.Equal(t, kerr.CoordinatorLoadInProgress.Code, resp.ErrorCode)
		require.EqualValues(t, -1, resp.ProducerID)
		require.EqualValues(t, -1, resp.ProducerEpoch)
	}
}

func TestOldVersionsDoNotKnowFencing(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	id := "a"
	for version := int16(3); version <= 5; version++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.TransactionalID, req.TransactionTimeoutMillis = version, &id, 1000
		req.ProducerID, req.ProducerEpoch = p.ID, p.Epoch+3
		want := kerr.ProducerFenced.Code
		if version < 4 {
			want = kerr.InvalidProducerEpoch.Code
		}
		require.Equal(t, want, r.do(req).(*kmsg.InitProducerIDResponse).ErrorCode)
	}
}

func TestWithoutACoordinatorClientsLookForOne(t *testing.T) {
	r := newRig(t)
	r.h.runtime.Resign(0)
	r.h.runtime.Resign(1)
	id := "a"
	init := kmsg.NewPtrInitProducerIDRequest()
	init.Version, init.TransactionalID, init.TransactionTimeoutMillis = 5, &id, 1000
	require.Equal(t, kerr.NotCoordinator.Code, r.do(init).(*kmsg.InitProducerIDResponse).ErrorCode)
	require.Equal(t, kerr.NotCoordinator.Code, r.end("a", coordinator.Producer{}, true).ErrorCode)
	list := r.do(kmsg.NewPtrListTransactionsRequest()).(*kmsg.ListTransactionsResponse)
	require.Zero(t, list.ErrorCode)
	require.Empty(t, list.TransactionStates)
}

func TestMixedVerifications(t *testing.T) {
	r := newRig(t)
	a, b := r.init("a"), r.init("b")
	r.add("a", a, place("t", 0))
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 5
	ask := func(id string, p coordinator.Producer, verify bool, partitions ...int32) {
		x := kmsg.NewAddPartitionsToTxnRequestTransaction()
		x.TransactionalID, x.ProducerID, x.ProducerEpoch, x.VerifyOnly = id, p.ID, p.Epoch, verify
		topic := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
		topic.Topic, topic.Partitions = "t", partitions
		x.Topics = append(x.Topics, topic)
		req.Transactions = append(req.Transactions, x)
	}
	ask("a", a, true, 0, 1)
	ask("b", b, false, 1, 2)
	ask("b", a, true, 1)
	ask("a", a, false, 1, 99)
	ask("", a, false, 1)
	resp := r.do(req).(*kmsg.AddPartitionsToTxnResponse)
	var codes [][]int16
	for _, x := range resp.Transactions {
		var of []int16
		for _, p := range x.Topics[0].Partitions {
			of = append(of, p.ErrorCode)
		}
		codes = append(codes, of)
	}
	require.Equal(t, [][]int16{{0, 120}, {0, 0}, {49}, {55, 3}, {42}}, codes)
	require.Equal(t, "Ongoing", r.state("b"))

	none := kmsg.NewPtrAddPartitionsToTxnRequest()
	none.Version = 4
	require.Empty(t, r.do(none).(*kmsg.AddPartitionsToTxnResponse).Transactions)
}

// commitRequest commits an offset of t/0 in a transaction.
func commitRequest(version int16, group string, p coordinator.Producer) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = version, "a", group, p.ID, p.Epoch
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = "t"
	topic.Partitions = append(topic.Partitions, kmsg.NewTxnOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	return req
}

func (r *rig) commitOffset(version int16, group string, p coordinator.Producer) int16 {
	r.t.Helper()
	return r.do(commitRequest(version, group, p)).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

func TestOffsetsNeedTheirGroupInTheTransaction(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	require.Equal(t, kerr.InvalidTxnState.Code, r.commitOffset(3, "g", p))
	require.Equal(t, kerr.TransactionAbortable.Code, r.commitOffset(4, "g", p))
	require.Equal(t, kerr.CoordinatorNotAvailable.Code, r.commitOffset(5, "unmade", p))
	stale := coordinator.Producer{ID: p.ID, Epoch: p.Epoch + 1}
	require.Equal(t, kerr.InvalidProducerEpoch.Code, r.commitOffset(5, "g", stale))
	require.Equal(t, kerr.InvalidProducerIDMapping.Code, r.commitOffset(5, "g", coordinator.Producer{ID: 77}))
	require.Zero(t, r.groups.commits)

	require.Zero(t, r.commitOffset(5, "g", p), "it adds the group")
	require.Zero(t, r.commitOffset(3, "g", p))
	require.Equal(t, 2, r.groups.commits)
	require.Zero(t, r.end("a", p, true).ErrorCode)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.Len(t, r.groups.written(), 1)

	p.Epoch++
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = 3, "a", p.ID, p.Epoch, "g"
	require.Zero(t, r.do(add).(*kmsg.AddOffsetsToTxnResponse).ErrorCode)
	require.Zero(t, r.commitOffset(3, "g", p))
	add.Group = "unmade"
	require.Equal(t, kerr.CoordinatorNotAvailable.Code, r.do(add).(*kmsg.AddOffsetsToTxnResponse).ErrorCode)
	add.Group, add.ProducerEpoch = "g", 0
	for version := int16(0); version <= 4; version++ {
		add.Version = version
		want := kerr.ProducerFenced.Code
		if version < 2 {
			want = kerr.InvalidProducerEpoch.Code
		}
		require.Equal(t, want, r.do(add).(*kmsg.AddOffsetsToTxnResponse).ErrorCode)
	}
}

func TestOffsetsOfTopicsThatAreNotThere(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	req := commitRequest(5, "g", p)
	other := kmsg.NewTxnOffsetCommitRequestTopic()
	other.Topic = "nope"
	other.Partitions = append(other.Partitions, kmsg.NewTxnOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, other)
	resp := r.do(req).(*kmsg.TxnOffsetCommitResponse)
	require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
	require.Equal(t, kerr.UnknownTopicOrPartition.Code, resp.Topics[1].Partitions[0].ErrorCode)
	req.Topics = req.Topics[1:]
	resp = r.do(req).(*kmsg.TxnOffsetCommitResponse)
	require.Equal(t, kerr.UnknownTopicOrPartition.Code, resp.Topics[0].Partitions[0].ErrorCode)
}

func TestToolsEndWhatNoCoordinatorKnows(t *testing.T) {
	r := newRig(t)
	p := coordinator.Producer{ID: 1000, Epoch: 3}
	r.write(0, p, 0)
	describe := kmsg.NewPtrDescribeProducersRequest()
	topic := kmsg.NewDescribeProducersRequestTopic()
	topic.Topic, topic.Partitions = "t", []int32{0, 99}
	describe.Topics = append(describe.Topics, topic)
	rows := r.do(describe).(*kmsg.DescribeProducersResponse).Topics[0].Partitions
	require.Equal(t, kerr.UnknownTopicOrPartition.Code, rows[1].ErrorCode)
	require.Len(t, rows[0].ActiveProducers, 1)
	require.Zero(t, rows[0].ActiveProducers[0].CurrentTxnStartOffset)
	require.EqualValues(t, -1, rows[0].ActiveProducers[0].CoordinatorEpoch)

	write := func(version int16, epoch int16, coordinatorEpoch int32, raised int8) int16 {
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		req.Version = version
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch, m.TransactionVersion = p.ID, epoch, coordinatorEpoch, raised
		topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
		topic.Topic, topic.Partitions = "t", []int32{0}
		m.Topics = append(m.Topics, topic)
		req.Markers = append(req.Markers, m)
		return r.do(req).(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode
	}
	require.Equal(t, kerr.InvalidProducerEpoch.Code, write(1, 2, 0, 0))
	require.Equal(t, kerr.InvalidProducerEpoch.Code, write(2, 3, 0, 2), "a raised epoch is above that of the records")
	require.True(t, r.open(0))
	require.Zero(t, write(1, 3, 5, 0))
	require.False(t, r.open(0))
	require.Equal(t, kerr.TransactionCoordinatorFenced.Code, write(1, 3, 4, 0))
}

func TestListFilters(t *testing.T) {
	r := newRig(t)
	a, b := r.init("a-1"), r.init("b-1")
	r.add("b-1", b, place("t", 0))
	list := func(change func(*kmsg.ListTransactionsRequest)) (ids []string, resp *kmsg.ListTransactionsResponse) {
		req := kmsg.NewPtrListTransactionsRequest()
		req.Version = 2
		req.DurationFilterMillis = -1
		change(req)
		resp = r.do(req).(*kmsg.ListTransactionsResponse)
		for _, x := range resp.TransactionStates {
			ids = append(ids, x.TransactionalID)
		}
		return ids, resp
	}
	pattern := func(s string) func(*kmsg.ListTransactionsRequest) {
		return func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = &s }
	}
	ids, _ := list(func(*kmsg.ListTransactionsRequest) {})
	require.ElementsMatch(t, []string{"a-1", "b-1"}, ids)
	ids, _ = list(func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing"} })
	require.Equal(t, []string{"b-1"}, ids)
	ids, resp := list(func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"ongoing"} })
	require.Empty(t, ids, "names have their case")
	require.Equal(t, []string{"ongoing"}, resp.UnknownStateFilters)
	ids, _ = list(func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{a.ID} })
	require.Equal(t, []string{"a-1"}, ids)
	ids, _ = list(func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3_600_000 })
	require.Equal(t, []string{"a-1"}, ids, "without a transaction the time counts from 1970")
	ids, _ = list(func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 1<<63 - 1 })
	require.Empty(t, ids)
	ids, _ = list(pattern("a-.*"))
	require.Equal(t, []string{"a-1"}, ids)
	ids, _ = list(pattern("a"))
	require.Empty(t, ids)
	ids, _ = list(pattern(""))
	require.Len(t, ids, 2)
	_, resp = list(pattern("[["))
	require.Equal(t, kerr.InvalidRegularExpression.Code, resp.ErrorCode)
}
