package fieldcases

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestReadCommittedStopsAtOpenTransactions is O-TX-1: nothing of a transaction is
// shown before its end, and an aborted one is named to the reader.
func TestReadCommittedStopsAtOpenTransactions(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	empty := committedFetch(c, "t", 0)
	assert.Zero(t, empty.ErrorCode)
	assert.Zero(t, empty.LastStableOffset)

	p := newTxnProducer(t, node.Address, "a", time.Minute)
	require.Zero(t, p.produce(12, "t", "aborted"))
	open := committedFetch(c, "t", 0)
	assert.EqualValues(t, 1, open.HighWatermark)
	assert.Zero(t, open.LastStableOffset)
	assert.Empty(t, open.RecordBatches)
	assert.NotNil(t, open.AbortedTransactions)
	assert.Empty(t, open.AbortedTransactions)
	uncommitted := frames.Ask[*kmsg.FetchResponse](c, frames.Fetch("t", 0)).Topics[0].Partitions[0]
	assert.NotEmpty(t, uncommitted.RecordBatches)
	assert.Nil(t, uncommitted.AbortedTransactions)

	producer := p.producer
	require.Zero(t, p.end(5, false))
	require.EqualValues(t, 2, stable(t, c, "t"))
	ended := committedFetch(c, "t", 0)
	require.Len(t, ended.AbortedTransactions, 1)
	assert.Equal(t, producer, ended.AbortedTransactions[0].ProducerID)
	assert.Zero(t, ended.AbortedTransactions[0].FirstOffset)
	batches, err := frames.Decode(ended.RecordBatches)
	require.NoError(t, err)
	assert.Len(t, batches, 2, "the records and the marker")
}

// TestFetchWaitsForTheEndOfATransaction: a reader that waits is woken by the marker.
func TestFetchWaitsForTheEndOfATransaction(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	require.Zero(t, p.produce(12, "t", "v"))
	req := frames.Fetch("t", 0)
	req.IsolationLevel, req.MaxWaitMillis = 1, int32((10 * frames.Patience).Milliseconds())
	waiting := c.Send(req)
	require.Zero(t, p.end(5, true))
	got := frames.Receive[*kmsg.FetchResponse](c, req, waiting).Topics[0].Partitions[0]
	assert.EqualValues(t, 2, got.LastStableOffset)
	assert.NotEmpty(t, got.RecordBatches)
}

// TestTimedOutTransactionFencesItsProducer is O-TX-2.
func TestTimedOutTransactionFencesItsProducer(t *testing.T) {
	node := harness.Start(t, "transaction.abort.timed.out.transaction.cleanup.interval.ms=100")
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	p := newTxnProducer(t, node.Address, "a", 300*time.Millisecond)
	require.Zero(t, p.add(3, "t"))
	require.Zero(t, p.produce(11, "t", "v"))
	require.EqualValues(t, 2, stable(t, c, "t"), "one record and one marker")

	assert.EqualValues(t, codeEpoch, p.end(1, true))
	assert.EqualValues(t, codeFenced, p.end(2, true))
	assert.EqualValues(t, codeFenced, p.end(4, false))
	assert.EqualValues(t, codeEpoch, p.add(1, "t"))
	assert.EqualValues(t, codeFenced, p.add(3, "t"))
	for version := int16(3); version <= 12; version++ {
		assert.EqualValues(t, codeEpoch, p.produce(version, "t", "late"), "Produce v%d", version)
	}
	require.EqualValues(t, 2, c.End("t", 0))

	producer, epoch := p.producer, p.epoch
	p.init(time.Minute)
	assert.Equal(t, producer, p.producer)
	assert.Equal(t, epoch+2, p.epoch)
	require.Zero(t, p.add(3, "t"))
	require.Zero(t, p.produce(11, "t", "v"))
	require.Zero(t, p.end(3, true))
	assert.EqualValues(t, 4, stable(t, c, "t"))
}

// TestLateProduceOpensNothing is O-TX-3: records that come after the end of their
// transaction, or that were never part of one, are not stored.
func TestLateProduceOpensNothing(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t", "other")
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	late := func(version int16) {
		want := codeTxnState
		if version >= 11 {
			want = codeAbortable
		}
		assert.EqualValues(t, want, p.produce(version, "t", "late"), "Produce v%d", version)
	}
	late(3)
	late(10)
	late(11)
	require.Zero(t, p.add(3, "other"))
	late(9)
	require.Zero(t, p.end(3, true))
	require.Zero(t, c.End("t", 0))

	require.Zero(t, p.add(3, "t"))
	require.Zero(t, p.produce(11, "t", "v"))
	require.Zero(t, p.end(3, false))
	end := stable(t, c, "t")
	late(7)
	late(11)
	require.Equal(t, end, c.End("t", 0))
	require.Equal(t, end, stable(t, c, "t"))

	// A client of version 2 of transactions adds the partition by producing; what it
	// sends with the epoch of before is late.
	require.Zero(t, p.produce(12, "t", "v"))
	old := *p
	require.Zero(t, p.end(5, true))
	stable(t, c, "t")
	assert.EqualValues(t, codeEpoch, old.produce(12, "t", "late"))
	require.Zero(t, p.produce(12, "t", "next"))
	require.Zero(t, p.end(5, true))
	stable(t, c, "t")
}

// TestEndAndProduceAtOnce is the race of O-TX-3: whichever comes first, no
// transaction stays open.
func TestEndAndProduceAtOnce(t *testing.T) {
	rounds := number(t, "MAINSTEM_TXN_RACES", 150)
	node := harness.Start(t)
	c, other := frames.Dial(t, node.Address), frames.Dial(t, node.Address)
	c.CreateWith(1, map[string]string{"retention.ms": "-1"}, "t") // The records say no time of today.
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	for round := range rounds {
		require.Eventually(t, func() bool { return p.add(3, "t") == 0 }, 10*time.Second, time.Millisecond)
		require.Zero(t, p.produce(11, "t", fmt.Sprint(round)))
		end, late := p.endRequest(3, round%2 == 0), p.request(11, "t", "late")
		a, b := p.Send(end), other.Send(late)
		require.Zero(t, frames.Receive[*kmsg.EndTxnResponse](p.Conn, end, a).ErrorCode)
		switch code := frames.Receive[*kmsg.ProduceResponse](other, late, b).Topics[0].Partitions[0].ErrorCode; code {
		case 0:
			p.sequence++
		case codeTxnState, codeAbortable, codeEpoch, 19:
		default:
			t.Fatalf("round %d: error %d", round, code)
		}
		stable(t, c, "t")
	}
}

// TestProduceRightAfterAnEnd: a client that was told of its next epoch begins with
// it at once. However long the markers of the transaction before take, it is not
// told to try again.
func TestProduceRightAfterAnEnd(t *testing.T) {
	rounds := number(t, "MAINSTEM_TXN_RACES", 150)
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.CreateWith(1, map[string]string{"retention.ms": "-1"}, "t")
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	for round := range rounds {
		require.Zero(t, p.produce(12, "t", fmt.Sprint(round)), "round %d", round)
		require.Zero(t, p.end(5, round%3 > 0), "round %d", round)
	}
	stable(t, c, "t")
}

// TestPipelinedTransactionalProduces: a client sends ahead while the first batch
// waits for the coordinator; all are stored, in their order.
func TestPipelinedTransactionalProduces(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	for round := range 20 {
		base := c.End("t", 0)
		var requests []*kmsg.ProduceRequest
		var correlations []int32
		for i := range 5 {
			req := p.request(12, "t", fmt.Sprint(round, i))
			p.sequence++
			requests, correlations = append(requests, req), append(correlations, p.Send(req))
		}
		for i := range requests {
			got := frames.Receive[*kmsg.ProduceResponse](p.Conn, requests[i], correlations[i]).Topics[0].Partitions[0]
			require.Zero(t, got.ErrorCode, "round %d, request %d", round, i)
			require.Equal(t, base+int64(i), got.BaseOffset)
		}
		require.Zero(t, p.end(5, round%2 == 0))
		stable(t, c, "t")
	}
}

// TestRepeatedTransactionalProduce: a batch that is sent again gets the answer that
// it had, also after the transaction has ended.
func TestRepeatedTransactionalProduce(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	require.Zero(t, p.add(3, "t"))
	req := p.request(11, "t", "v")
	for range 3 {
		got := frames.Ask[*kmsg.ProduceResponse](p.Conn, req).Topics[0].Partitions[0]
		require.Zero(t, got.ErrorCode)
		require.Zero(t, got.BaseOffset)
	}
	require.Zero(t, p.end(3, true))
	require.EqualValues(t, 2, stable(t, c, "t"))
	got := frames.Ask[*kmsg.ProduceResponse](p.Conn, req).Topics[0].Partitions[0]
	require.Zero(t, got.ErrorCode)
	require.Zero(t, got.BaseOffset)
	require.EqualValues(t, 2, stable(t, c, "t"))
}

// TestWrongTransactionalProduces: the codes of what no client should send.
func TestWrongTransactionalProduces(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	p := newTxnProducer(t, node.Address, "a", time.Minute)

	nameless := p.request(11, "t", "v")
	nameless.TransactionID = nil
	assert.EqualValues(t, codeNotTxn, frames.Ask[*kmsg.ProduceResponse](p.Conn, nameless).Topics[0].Partitions[0].ErrorCode)

	stranger := *p
	stranger.id = "nobody"
	assert.EqualValues(t, codeMapping, stranger.produce(12, "t", "v"))
	stranger = *p
	stranger.producer += 100
	assert.EqualValues(t, codeMapping, stranger.produce(12, "t", "v"))
	assert.EqualValues(t, codeMapping, stranger.produce(9, "t", "v"))
	stranger = *p
	stranger.epoch++
	assert.EqualValues(t, codeEpoch, stranger.produce(12, "t", "v"))

	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &p.id, 900_001
	assert.EqualValues(t, codeTimeout, frames.Ask[*kmsg.InitProducerIDResponse](c, req).ErrorCode)

	require.Zero(t, p.produce(12, "t", "v"))
	p.sequence += 5
	assert.EqualValues(t, codeSequence, p.produce(12, "t", "gap"))
	p.sequence -= 5
	require.Zero(t, p.end(5, true))
	require.EqualValues(t, 2, stable(t, c, "t"))
}

// TestEndIsRepeatedAfterAKill: a client whose answer was lost in a crash asks again,
// and is told the same; the other result it does not get.
func TestEndIsRepeatedAfterAKill(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	producers := map[string]*txnProducer{}
	ended := map[string]txnProducer{} // as they were when they ended
	for i, version := range []int16{3, 5, 3, 5} {
		id := fmt.Sprint("producer-", i)
		p := newTxnProducer(t, node.Address, id, time.Minute)
		if version < 5 {
			require.Zero(t, p.add(3, "t"))
		}
		require.Zero(t, p.produce(map[int16]int16{3: 11, 5: 12}[version], "t", id))
		before := *p
		require.Zero(t, p.end(version, i < 2))
		producers[id], ended[id] = p, before
	}
	node.Kill()
	require.NoError(t, node.Start())
	c = frames.Dial(t, node.Address)
	stable(t, c, "t")
	for i, version := range []int16{3, 5, 3, 5} {
		id := fmt.Sprint("producer-", i)
		again := ended[id]
		again.Conn = frames.Dial(t, node.Address)
		ask := func(commit bool) *kmsg.EndTxnResponse {
			return loaded(t, func() (*kmsg.EndTxnResponse, int16) {
				r := frames.Ask[*kmsg.EndTxnResponse](again.Conn, again.endRequest(version, commit))
				if r.ErrorCode == codeConcurrent { // Its markers are being written.
					return r, 14
				}
				return r, r.ErrorCode
			})
		}
		for range 2 {
			resp := ask(i < 2)
			require.Zero(t, resp.ErrorCode, "%s, EndTxn v%d", id, version)
			if version >= 5 {
				require.Equal(t, producers[id].epoch, resp.ProducerEpoch)
				require.Equal(t, producers[id].producer, resp.ProducerID)
			}
		}
		require.EqualValues(t, codeTxnState, ask(i >= 2).ErrorCode, "%s, EndTxn v%d", id, version)
	}
	batches, err := frames.Decode(committedFetch(c, "t", 0).RecordBatches)
	require.NoError(t, err)
	records := 0
	for _, b := range batches {
		if b.Attributes&0x20 == 0 {
			records++
		}
	}
	require.Equal(t, 4, records)
	require.GreaterOrEqual(t, len(batches), 8, "a marker that the kill came right behind is written again")
}
