package queue

import (
	"errors"
	"math"

	"github.com/mainstem/mainstem/protocol/batch"
)

// ErrTxnUnverified is the error of a transactional batch that would open a transaction here of
// which nobody has made sure that the coordinator knows it, or that has ended
// since.
var ErrTxnUnverified = errors.New("batch belongs to no transaction that was verified")

// Guard stands for what has happened to a producer's transactions on a partition.
// It is taken before the coordinator is asked whether the partition belongs to the
// transaction; an append with it fails if a marker has come since. So no batch
// slips in behind the marker of its transaction, which would then stay open.
type Guard uint64

// Guards that stand for no look at the partition.
const (
	// Unguarded appends are not asked.
	Unguarded Guard = 0
	// Unverified appends need a transaction that is open on the partition already.
	Unverified Guard = math.MaxUint64
)

// Guard is what holds for a producer now.
func (ps *Producers) Guard(id int64) Guard {
	if p := ps.byID[id]; p != nil {
		return Guard(p.markers) + 1
	}
	return 1
}

// CheckGuard decides on a batch before Check does. What Check knows better (a
// repeated batch, an old epoch) is left to it.
func (ps *Producers) CheckGuard(h *batch.Header, g Guard) error {
	if g == Unguarded || !h.IsTransactional() {
		return nil
	}
	p := ps.byID[h.ProducerID]
	if p != nil && (h.ProducerEpoch < p.Epoch || h.ProducerEpoch == p.Epoch && (p.TxnStart >= 0 || p.repeats(h))) {
		return nil
	}
	first, waits := ps.waiting[h.ProducerID]
	waits = waits && first.epoch == h.ProducerEpoch
	switch {
	case g == Unverified:
		if !waits || h.BaseSequence < first.sequence {
			ps.wait(h)
		}
		return ErrTxnUnverified
	case g != ps.Guard(h.ProducerID):
		return ErrTxnUnverified
	case waits && h.BaseSequence > first.sequence:
		return ErrOutOfOrderSequence
	}
	return nil
}

// maxWaiting bounds how many producers are remembered whose batches wait.
const maxWaiting = 1000

// waiting is the first batch of a producer that waits to be verified: as nothing
// else may be known of the producer, a later one must not overtake it.
type waiting struct {
	epoch    int16
	sequence int32
}

func (ps *Producers) wait(h *batch.Header) {
	if ps.waiting == nil || len(ps.waiting) >= maxWaiting {
		ps.waiting = make(map[int64]waiting, 1)
	}
	ps.waiting[h.ProducerID] = waiting{h.ProducerEpoch, h.BaseSequence}
}

// repeats tells whether the batch is remembered.
func (p *Producer) repeats(h *batch.Header) bool {
	for _, b := range p.Batches() {
		if b.First == h.BaseSequence && b.Last == h.LastSequence() {
			return true
		}
	}
	return false
}

// CheckRaised decides on a marker whose epoch was raised for it, besides
// CheckMarker: it ends no transaction that has that epoch itself, for that is the
// next one.
func (ps *Producers) CheckRaised(m batch.Marker) error {
	if p := ps.byID[m.ProducerID]; p != nil && p.TxnStart >= 0 && m.ProducerEpoch <= p.Epoch {
		return ErrProducerEpoch
	}
	return nil
}
