package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/protocol/batch"
)

// txnHeader is a transactional batch of one record.
func txnHeader(t *testing.T, id int64, epoch int16, sequence int32) *batch.Header {
	t.Helper()
	b := batch.NewBuilder(batch.Spec{Transactional: true, Producer: &batch.Producer{ID: id, Epoch: epoch, Sequence: sequence}})
	b.Append(1, nil, []byte("v"))
	whole, err := b.Batch()
	require.NoError(t, err)
	h, err := batch.ParseHeader(whole)
	require.NoError(t, err)
	return &h
}

// send appends what the guard and the other checks let through.
func send(t *testing.T, ps *Producers, h *batch.Header, g Guard) error {
	t.Helper()
	if err := ps.CheckGuard(h, g); err != nil {
		return err
	}
	known, err := ps.Check(h)
	if err == nil && known == nil {
		ps.data(h, 0)
	}
	return err
}

func end(ps *Producers, id int64, epoch int16) {
	ps.marker(batch.Marker{Type: batch.Commit, ProducerID: id, ProducerEpoch: epoch}, 10, 0)
}

func TestGuardHoldsUntilAMarkerComes(t *testing.T) {
	var ps Producers
	g := ps.Guard(7)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 0), Unverified), ErrTxnUnverified)
	end(&ps, 7, 0)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 0), g), ErrTxnUnverified)
	g = ps.Guard(7)
	end(&ps, 8, 0) // Of another producer.
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 0), g))
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 1), Unverified), "the transaction is open now")
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 0), Unverified), "a repeated batch")
	end(&ps, 7, 0)
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 1), Unverified), "a repeated batch is none that opens one")
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 2), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 2), g), ErrTxnUnverified)
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 2), Unguarded))
}

func TestGuardLeavesOldEpochsToTheOtherChecks(t *testing.T) {
	var ps Producers
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 3, 0), Unguarded))
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 2, 1), Unverified), ErrProducerEpoch)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 4, 0), Unverified), ErrTxnUnverified, "open, but in another epoch")
}

func TestLaterBatchesDoNotOvertakeOneThatWaits(t *testing.T) {
	var ps Producers
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 0), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 1), Unverified), ErrTxnUnverified)
	g := ps.Guard(7)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 1), g), ErrOutOfOrderSequence)
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 0), g))
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 1), g))

	// A marker ends the wait: the producer may have given up.
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 8, 0, 0), Unverified), ErrTxnUnverified)
	end(&ps, 8, 0)
	require.NoError(t, send(t, &ps, txnHeader(t, 8, 0, 0), ps.Guard(8)))

	// So does another epoch.
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 9, 0, 4), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 9, 1, 7), Unverified), ErrTxnUnverified)
	require.NoError(t, send(t, &ps, txnHeader(t, 9, 1, 7), ps.Guard(9)), "of a producer that is not known any sequence is taken")
}

// A batch whose predecessor still waits for the coordinator comes when the first of
// the transaction has been appended: it must wait as well.
func TestBatchBehindOneThatWaitsDoesNotFailInAnOpenTransaction(t *testing.T) {
	var ps Producers
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 0), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 1), Unverified), ErrTxnUnverified)
	g := ps.Guard(7)
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 0), g))
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 2), Unverified), ErrTxnUnverified)
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 1), g))
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, 2), g))
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 9), g), ErrOutOfOrderSequence, "a gap is one still when its turn has come")
}

func TestBatchThatWaitedInVainStopsNobody(t *testing.T) {
	var ps Producers
	for sequence := range int32(RememberedBatches + 1) {
		require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, sequence), Unguarded))
	}
	end(&ps, 7, 0)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 0), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 0), ps.Guard(7)), ErrOutOfOrderSequence, "too old to be remembered")
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 0, RememberedBatches+1), ps.Guard(7)))
}

func TestOldEpochDoesNotTakeThePlaceOfOneThatWaits(t *testing.T) {
	var ps Producers
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 1, 0), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 0, 4), Unverified), ErrTxnUnverified)
	require.ErrorIs(t, send(t, &ps, txnHeader(t, 7, 1, 1), ps.Guard(7)), ErrOutOfOrderSequence)
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 1, 0), ps.Guard(7)))
}

func TestWaitingProducersAreBounded(t *testing.T) {
	var ps Producers
	for id := range int64(5 * maxWaiting) {
		require.ErrorIs(t, send(t, &ps, txnHeader(t, id, 0, 0), Unverified), ErrTxnUnverified)
		require.LessOrEqual(t, len(ps.waiting), maxWaiting)
	}
}

func TestRaisedMarkerEndsNoTransactionOfItsOwnEpoch(t *testing.T) {
	var ps Producers
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 1, 0), Unguarded))
	m := batch.Marker{ProducerID: 7, ProducerEpoch: 2}
	require.NoError(t, ps.CheckRaised(m))
	ps.marker(m, 10, 0)
	require.NoError(t, ps.CheckRaised(m), "the same once more: there is nothing to end")
	require.NoError(t, send(t, &ps, txnHeader(t, 7, 2, 0), ps.Guard(7)))
	require.ErrorIs(t, ps.CheckRaised(m), ErrProducerEpoch)
	require.NoError(t, ps.CheckRaised(batch.Marker{ProducerID: 99}))
}
