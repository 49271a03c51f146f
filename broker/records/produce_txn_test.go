package records

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

// coordinated is a transaction coordinator that answers what a test says.
type coordinated struct {
	mu    sync.Mutex
	asked []Enlistment
	// patience is that of the last question.
	patience time.Duration
	// errs are the answers by partition, the rest is fine; before is called before
	// an answer.
	errs   map[int32]error
	before func()
}

type coordinatedAnswer struct {
	c *coordinated
	e Enlistment
}

func (c *coordinated) enlist(e Enlistment) Enlisting {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience, e.Patience = e.Patience, 0
	c.asked = append(c.asked, e)
	return coordinatedAnswer{c, e}
}

func (a coordinatedAnswer) Wait(context.Context, <-chan struct{}) []error {
	if a.c.before != nil {
		a.c.before()
	}
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	errs := make([]error, len(a.e.Partitions))
	for i, p := range a.e.Partitions {
		errs[i] = a.c.errs[p.Partition]
	}
	return errs
}

func newTxnRig(t *testing.T, overrides ...string) (*rig, *coordinated, meta.TopicID) {
	r, c := newRig(t, overrides...), &coordinated{errs: map[int32]error{}}
	r.h.enlist = c.enlist
	return r, c, r.Create(replicatest.Topic{Name: "a", Partitions: 2})
}

// txnBatch is a transactional batch of one record.
func txnBatch(t *testing.T, id int64, epoch int16, sequence int32) []byte {
	p := producer(id, epoch, sequence)
	p.Transactional = true
	return spec{Spec: p}.build(t)
}

// txnRequest produces batches, one a partition.
func txnRequest(version int16, id meta.TopicID, batches ...[]byte) *kmsg.ProduceRequest {
	txn := "txn"
	req := produceRequest(id, "a", batches...)
	req.Version, req.TransactionID = version, &txn
	return req
}

func (r *rig) codes(req *kmsg.ProduceRequest) (codes []int16) {
	r.t.Helper()
	for _, p := range r.do(req).(*kmsg.ProduceResponse).Topics[0].Partitions {
		codes = append(codes, p.ErrorCode)
	}
	return codes
}

func TestFirstBatchOfATransactionAsksTheCoordinator(t *testing.T) {
	r, c, id := newTxnRig(t)
	require.Equal(t, []int16{0, 0}, r.codes(txnRequest(12, id, txnBatch(t, 5, 0, 0), txnBatch(t, 5, 0, 0))))
	require.Equal(t, []Enlistment{{
		TransactionalID: "txn", ProducerID: 5, Add: true, Partitions: []TopicPartition{{"a", 0}, {"a", 1}},
	}}, c.asked)
	require.Equal(t, []int16{0, 0}, r.codes(txnRequest(12, id, txnBatch(t, 5, 0, 1), txnBatch(t, 5, 0, 1))))
	require.Len(t, c.asked, 1, "both are open")
	require.Equal(t, []int16{0}, r.codes(txnRequest(12, id, txnBatch(t, 5, 0, 1))))
	require.Len(t, c.asked, 1, "a repeated batch")
	require.EqualValues(t, 2, r.Partition("a", 0).Log().End())
	patient := txnRequest(12, id, txnBatch(t, 6, 0, 0))
	patient.TimeoutMillis = 30_000
	require.Equal(t, []int16{0}, r.codes(patient))
	require.Greater(t, c.patience, 20*time.Second, "as long as the client waits")
	c.asked = c.asked[:1]

	r.append("a", batch.Marker{Type: batch.Commit, ProducerID: 5, Timestamp: 1}.Batch())
	require.Equal(t, []int16{0, 0}, r.codes(txnRequest(11, id, txnBatch(t, 5, 0, 2), txnBatch(t, 5, 0, 2))))
	require.Len(t, c.asked, 2)
	require.Equal(t, []TopicPartition{{"a", 0}}, c.asked[1].Partitions)
	require.False(t, c.asked[1].Add, "before version 12 the client has added it")
}

func TestRefusalsOfTheCoordinatorByVersion(t *testing.T) {
	for _, c := range []struct {
		err     error
		version int16
		want    *kerr.Error
	}{
		{kerr.TransactionAbortable, 9, kerr.InvalidTxnState},
		{kerr.TransactionAbortable, 10, kerr.InvalidTxnState},
		{kerr.TransactionAbortable, 11, kerr.TransactionAbortable},
		{kerr.ProducerFenced, 12, kerr.InvalidProducerEpoch},
		{kerr.InvalidProducerIDMapping, 12, kerr.InvalidProducerIDMapping},
		{kerr.ConcurrentTransactions, 12, kerr.NotEnoughReplicas},
		{kerr.NotCoordinator, 9, kerr.NotEnoughReplicas},
		{kerr.CoordinatorLoadInProgress, 11, kerr.NotEnoughReplicas},
		{kerr.CoordinatorNotAvailable, 11, kerr.NotEnoughReplicas},
		{context.DeadlineExceeded, 11, kerr.NotEnoughReplicas},
	} {
		r, coordinator, id := newTxnRig(t)
		coordinator.errs[1] = c.err
		codes := r.codes(txnRequest(c.version, id, txnBatch(t, 5, 0, 0), txnBatch(t, 5, 0, 0)))
		require.Equal(t, []int16{0, c.want.Code}, codes, "%v in version %d", c.err, c.version)
		require.EqualValues(t, 1, r.Partition("a", 0).Log().End())
		require.Zero(t, r.Partition("a", 1).Log().End())
	}
}

func TestMarkerBetweenAnswerAndAppend(t *testing.T) {
	r, c, id := newTxnRig(t)
	c.before = func() { r.append("a", batch.Marker{Type: batch.Abort, ProducerID: 5, Timestamp: 1}.Batch()) }
	require.Equal(t, []int16{kerr.TransactionAbortable.Code}, r.codes(txnRequest(11, id, txnBatch(t, 5, 0, 0))))
	require.EqualValues(t, 1, r.Partition("a", 0).Log().End(), "only the marker")
	c.before = nil
	require.Equal(t, []int16{0}, r.codes(txnRequest(11, id, txnBatch(t, 5, 0, 0))))
}

func TestMarkerOfTheTransactionBeforeIsWaitedFor(t *testing.T) {
	r, c, id := newTxnRig(t)
	markers := 0
	c.before = func() {
		if markers++; markers < 3 {
			r.append("a", batch.Marker{Type: batch.Commit, ProducerID: 5, ProducerEpoch: 1, Timestamp: 1}.Batch())
		}
	}
	require.Equal(t, []int16{0, 0}, r.codes(txnRequest(12, id, txnBatch(t, 5, 1, 0), txnBatch(t, 5, 1, 0))))
	require.Len(t, c.asked, 3)
	require.Len(t, c.asked[0].Partitions, 2)
	require.Equal(t, []TopicPartition{{"a", 0}}, c.asked[1].Partitions)
	require.EqualValues(t, 3, r.Partition("a", 0).Log().End())

	c.before = func() { r.append("a", batch.Marker{Type: batch.Commit, ProducerID: 6, Timestamp: 1}.Batch()) }
	require.Equal(t, []int16{kerr.TransactionAbortable.Code}, r.codes(txnRequest(12, id, txnBatch(t, 6, 0, 0))))
	require.Len(t, c.asked, 3+maxAsked)
}

func TestVerificationCanBeSwitchedOff(t *testing.T) {
	r, c, id := newTxnRig(t, "transaction.partition.verification.enable=false")
	require.Equal(t, []int16{0}, r.codes(txnRequest(11, id, txnBatch(t, 5, 0, 0))))
	require.Empty(t, c.asked)
	require.Equal(t, []int16{0}, r.codes(txnRequest(12, id, txnBatch(t, 6, 0, 0))))
	require.Len(t, c.asked, 1, "who adds by producing must be heard")
}

func TestProducesBehindOneThatWaitsKeepTheirOrder(t *testing.T) {
	r, c, id := newTxnRig(t)
	release := make(chan struct{})
	c.before = func() { <-release }
	cl := r.dial()
	var requests []*kmsg.ProduceRequest
	for i := range int32(4) {
		requests = append(requests, txnRequest(12, id, txnBatch(t, 5, 0, i)))
		cl.send(requests[i])
	}
	close(release)
	for i, req := range requests {
		row := cl.receive(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		require.Zero(t, row.ErrorCode)
		require.EqualValues(t, i, row.BaseOffset)
	}
}

// The first request's batch opens the transaction while the second's still waits for
// the coordinator: the third must not be held against the first.
func TestProduceThatComesWhileOneBeforeItWaits(t *testing.T) {
	r, c, id := newTxnRig(t)
	var requests []*kmsg.ProduceRequest
	var calls []*protocol.Call
	var finishes []protocol.Finish
	submit := func(sequence int32) {
		req := txnRequest(12, id, txnBatch(t, 5, 0, sequence))
		call, finish := r.submit(context.Background(), req)
		requests, calls, finishes = append(requests, req), append(calls, call), append(finishes, finish)
	}
	finish := func(i int) {
		row := r.decode(requests[i], calls[i].Outcome(finishes[i])).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		require.Zero(t, row.ErrorCode, "request %d", i)
		require.EqualValues(t, i, row.BaseOffset)
	}
	submit(0)
	submit(1)
	finish(0)
	submit(2)
	finish(1)
	finish(2)
	require.Len(t, c.asked, 3)
	submit(3)
	finish(3)
	require.Len(t, c.asked, 3, "nothing waits any more")
	require.Equal(t, []int16{kerr.OutOfOrderSequenceNumber.Code}, r.codes(txnRequest(12, id, txnBatch(t, 5, 0, 9))), "a real gap")
}

func TestTwoTransactionalProducersInOneRequest(t *testing.T) {
	r, c, id := newTxnRig(t)
	codes := r.codes(txnRequest(12, id, txnBatch(t, 5, 0, 0), txnBatch(t, 6, 0, 0)))
	require.Equal(t, []int16{kerr.InvalidProducerIDMapping.Code, kerr.InvalidProducerIDMapping.Code}, codes)
	require.Empty(t, c.asked)
	require.Equal(t, []int16{0, 0}, r.codes(txnRequest(12, id, txnBatch(t, 5, 0, 0), spec{}.build(t))), "beside a plain batch")
}

func TestUnacknowledgedTransactionalProduceOvertakesNobody(t *testing.T) {
	r, c, id := newTxnRig(t)
	release := make(chan struct{})
	c.before = func() { <-release }
	cl := r.dial()
	var requests []*kmsg.ProduceRequest
	for i := range int32(6) {
		req := txnRequest(12, id, txnBatch(t, 5, 0, i))
		if i%2 == 1 {
			req.Acks = 0
		}
		requests = append(requests, req)
		cl.send(req)
	}
	close(release)
	for i := 0; i < len(requests); i += 2 {
		row := cl.receive(requests[i]).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		require.Zero(t, row.ErrorCode)
		require.EqualValues(t, i, row.BaseOffset)
	}
}

func TestUnacknowledgedTransactionalProduceWaitsInItsTurn(t *testing.T) {
	r, c, id := newTxnRig(t)
	cl := r.dial()
	quiet := txnRequest(12, id, txnBatch(t, 5, 0, 0))
	quiet.Acks = 0
	cl.send(quiet)
	row := cl.ask(txnRequest(12, id, txnBatch(t, 5, 0, 1))).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Zero(t, row.ErrorCode)
	require.EqualValues(t, 1, row.BaseOffset)
	require.Len(t, c.asked, 1)
	c.errs[0] = kerr.ProducerFenced
	r.append("a", batch.Marker{Type: batch.Abort, ProducerID: 5, Timestamp: 1}.Batch())
	quiet = txnRequest(12, id, txnBatch(t, 5, 0, 2))
	quiet.Acks = 0
	cl.send(quiet)
	_, err := cl.read()
	require.ErrorIs(t, err, errClosed, "hanging up is the only way to tell")
}
