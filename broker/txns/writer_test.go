package txns

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
)

func place(topic string, partition int32) txn.Place {
	return txn.Place{Topic: topic, Partition: partition}
}

func TestEndWritesMarkersAndCompletes(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("t", 0), place("t", 2), place(OffsetsTopic, 1))
	r.write(0, p, 0)
	r.write(2, p, 0)
	require.True(t, r.open(0))
	resp := r.end("a", p, true)
	require.Zero(t, resp.ErrorCode)
	require.Equal(t, p.Epoch+1, resp.ProducerEpoch)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.False(t, r.open(0))
	require.False(t, r.open(2))
	require.Zero(t, r.Partition("t", 1).Log().End())
	raised := coordinator.Producer{ID: p.ID, Epoch: p.Epoch + 1}
	require.Equal(t, []coordinator.Marker{{Producer: raised, Commit: true, CoordinatorEpoch: 1}}, r.groups.written())
	states := r.Partition("t", 0).Log().Producers()
	require.Len(t, states, 1)
	require.Equal(t, raised.Epoch, states[0].Epoch)
	require.EqualValues(t, 1, states[0].CoordinatorEpoch)
}

func TestMarkersAreTriedAgainUntilTheyAreWritten(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("t", 0), place(OffsetsTopic, 0), place("t", 1))
	r.write(0, p, 0)
	r.groups.fail(kerr.CoordinatorLoadInProgress)
	require.Zero(t, r.end("a", p, false).ErrorCode)
	r.eventually("the partition of t has its marker", func() bool { return !r.open(0) })
	end := r.Partition("t", 0).Log().End()
	require.Equal(t, "PrepareAbort", r.state("a"))
	r.groups.fail(nil)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteAbort" })
	require.Equal(t, end, r.Partition("t", 0).Log().End(), "what is written is not written again")
	require.Len(t, r.groups.written(), 1)
}

func TestMarkersOfALostLeaseWait(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("t", 0))
	r.write(0, p, 0)
	r.Fenced.Store(true)
	require.Zero(t, r.end("a", p, true).ErrorCode, "the journal here is not the broker's")
	require.Equal(t, "PrepareCommit", r.state("a"))
	require.EqualValues(t, 1, r.Partition("t", 0).Log().End())
	r.Fenced.Store(false)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.False(t, r.open(0))
}

func TestDeletedPartitionsDoNotHoldATransactionUp(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("gone", 0), place("t", 0), place("t", 99))
	r.write(0, p, 0)
	require.Zero(t, r.end("a", p, true).ErrorCode)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.False(t, r.open(0))
}

func TestDecidedTransactionsEndAfterARestart(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("t", 0), place(OffsetsTopic, 0))
	r.write(0, p, 0)
	r.groups.fail(kerr.NotCoordinator)
	require.Zero(t, r.end("a", p, true).ErrorCode)
	r.eventually("the partition of t has its marker", func() bool { return !r.open(0) })
	r.h.Close()
	r.groups.fail(nil)
	r.handle()
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.Len(t, r.groups.written(), 1)
	require.EqualValues(t, 2, r.groups.written()[0].CoordinatorEpoch)
	// The next transaction is not hurt by what was told of twice.
	p.Epoch++
	r.add("a", p, place("t", 0))
	r.write(0, p, 0)
	require.True(t, r.open(0))
	require.Equal(t, "Ongoing", r.state("a"))
}

func TestReloadedShardDoesNotEndTheNextTransaction(t *testing.T) {
	r := newRig(t)
	shard := coordinator.Partition("a", 2)
	for range 20 {
		p := r.init("a")
		r.add("a", p, place("t", 0))
		r.write(0, p, 0)
		require.Zero(t, r.end("a", p, true).ErrorCode)
		r.lead(shard) // While markers are being written.
		r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
		require.False(t, r.open(0))
	}
}

func TestNewerEpochOnAPartitionIsLeftAlone(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("t", 0), place("t", 1))
	newer := coordinator.Producer{ID: p.ID, Epoch: p.Epoch + 1}
	r.write(0, newer, 0) // As nobody may who asks the coordinator.
	r.write(1, p, 0)
	require.Zero(t, r.end("a", p, true).ErrorCode)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.True(t, r.open(0))
	require.False(t, r.open(1))
}

// An ending whose place another of the same id and producer has taken completes
// nothing: the other's markers are not written.
func TestStaleEndingsCompleteNothing(t *testing.T) {
	r := newRig(t)
	p := r.init("a")
	r.add("a", p, place("t", 0))
	r.write(0, p, 0)
	r.Fenced.Store(true)
	require.Zero(t, r.end("a", p, true).ErrorCode)
	var now *ending
	r.eventually("the end is known", func() bool {
		r.h.writer.mu.Lock()
		defer r.h.writer.mu.Unlock()
		now = r.h.writer.known["a"]
		return now != nil
	})
	stale := &ending{Ending: now.Ending, rest: minRest}
	r.h.writer.write([]*ending{stale})
	require.Equal(t, "PrepareCommit", r.state("a"))
	require.True(t, r.open(0))
	r.Fenced.Store(false)
	r.eventually("complete", func() bool { return r.state("a") == "CompleteCommit" })
	require.False(t, r.open(0))
}
