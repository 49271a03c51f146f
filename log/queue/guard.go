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
	// Unverified appends need a transaction that is open on the partition already,
	// and must be the next in it.
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
	if p != nil && !p.mustVerify(h, g) {
		return nil
	}
	switch {
	case g == Unverified:
		if p == nil {
			ps.wait(h)
		}
		return ErrTxnUnverified
	case g != ps.Guard(h.ProducerID):
		return ErrTxnUnverified
	case p == nil && ps.overtakes(h):
		return ErrOutOfOrderSequence
	}
	return nil
}

// mustVerify tells whether the batch needs a guard that holds. In an open
// transaction one that leaves a gap needs it too: the batches before it may still
// wait for the coordinator, and it is to come behind them.
func (p *Producer) mustVerify(h *batch.Header, g Guard) bool {
	switch {
	case h.ProducerEpoch < p.Epoch:
		return false
	case h.ProducerEpoch > p.Epoch:
		return true
	case p.repeats(h):
		return false
	}
	return p.TxnStart < 0 || g == Unverified && h.BaseSequence != p.nextSequence(h.ProducerEpoch)
}

// maxWaiting bounds how many producers are remembered whose batches wait.
const maxWaiting = 1000

// waiting is the first batch that waits to be verified of a producer that is not
// known: any sequence would be accepted, so a later one must not overtake it. Of a
// known producer the next sequence says as much.
type waiting struct {
	epoch    int16
	sequence int32
}

func (ps *Producers) wait(h *batch.Header) {
	first, waits := ps.waiting[h.ProducerID]
	if waits && (h.ProducerEpoch < first.epoch || h.ProducerEpoch == first.epoch && h.BaseSequence >= first.sequence) {
		return
	}
	if ps.waiting == nil || len(ps.waiting) >= maxWaiting {
		ps.waiting = make(map[int64]waiting, 1)
	}
	ps.waiting[h.ProducerID] = waiting{h.ProducerEpoch, h.BaseSequence}
}

// overtakes tells whether an earlier batch waits.
func (ps *Producers) overtakes(h *batch.Header) bool {
	first, waits := ps.waiting[h.ProducerID]
	return waits && first.epoch == h.ProducerEpoch && h.BaseSequence > first.sequence
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
