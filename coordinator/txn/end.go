package txn

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// End ends a producer's transaction.
type End struct {
	ID       string
	Producer coordinator.Producer
	Commit   bool
	// Version is the version of transactions that the client speaks.
	Version int16
	// NewID is a producer id that nobody has, or none.
	NewID int64
}

// EndTxn serves an EndTxn. The answer says that the decision is made, not that the
// markers are written.
func (m *Machine) EndTxn(t *coordinator.Turn, r End, p *Promise) {
	serve := m.endVersion1
	if r.Version >= Version2 {
		serve = m.endVersion2
	}
	if err := serve(t, r, p); err != nil {
		refuse(t, p, err)
	}
}

// endVersion1 ends a transaction whose producer keeps its epoch. The same end again
// is a repetition.
func (m *Machine) endVersion1(t *coordinator.Turn, r End, p *Promise) error {
	x, err := m.of(r.ID, r.Producer)
	if err != nil {
		return err
	}
	switch {
	case x.state == Ongoing:
		x.decide(t, prepare(r.Commit), Version1, coordinator.NoProducer, p)
	case x.state == prepare(r.Commit):
		return kerr.ConcurrentTransactions
	case x.state == prepare(r.Commit).complete():
		coordinator.Deliver(t, p, Outcome{Producer: x.who()})
	default:
		return kerr.InvalidTxnState
	}
	return nil
}

// endVersion2 ends a transaction and raises the producer's epoch. An end with the
// epoch before that is a repetition; one with the epoch of now is that of the next
// transaction, of which the coordinator may not have heard: it may be aborted, but
// there is nothing to commit.
func (m *Machine) endVersion2(t *coordinator.Turn, r End, p *Promise) error {
	x := m.txns[r.ID]
	if x == nil {
		return kerr.InvalidProducerIDMapping
	}
	repeated := x.repeats(r.Producer)
	switch {
	case x.state.ending() && r.Producer == x.afterwards():
		x.park(t, p, 0, func(t *coordinator.Turn) { m.EndTxn(t, r, p) })
		return nil
	case x.producer != r.Producer.ID && !repeated:
		return kerr.InvalidProducerIDMapping
	case x.epoch != r.Producer.Epoch && !repeated:
		return kerr.ProducerFenced
	}
	switch {
	case x.state == prepare(r.Commit):
		return kerr.ConcurrentTransactions
	case repeated && x.state == prepare(r.Commit).complete():
		coordinator.Deliver(t, p, Outcome{Producer: x.who()})
		return nil
	case repeated || x.state.ending() || x.state.idle() && r.Commit:
		return kerr.InvalidTxnState
	}
	next := coordinator.NoProducer
	if x.exhausted() {
		if next = r.NewID; next == coordinator.NoProducer {
			return ErrNeedsProducerID
		}
	}
	x.decide(t, prepare(r.Commit), r.Version, next, p)
	return nil
}

// repeats tells whether the producer is the one that the last end has raised.
func (x *txn) repeats(p coordinator.Producer) bool {
	if !x.state.ending() && x.state != CompleteCommit && x.state != CompleteAbort {
		return false
	}
	if p.ID == x.producer && p.Epoch < math.MaxInt16 && x.epoch == p.Epoch+1 {
		return true
	}
	return p.ID == x.previous && p.ID != x.producer && p.Epoch == lastUsable && x.epoch == 0
}

// Ended completes a transaction whose markers are written. What does not match the
// state any more is left out.
func (m *Machine) Ended(t *coordinator.Turn, e Ending) {
	x := m.txns[e.ID]
	if x == nil || x.state != prepare(e.Commit) || x.who() != e.Producer {
		return
	}
	before := x.producer
	if x.next != coordinator.NoProducer {
		x.producer, x.epoch = x.next, 0
	}
	x.state, x.next, x.places = x.state.complete(), coordinator.NoProducer, nil
	x.write(t, before)
	x.unpark(t)
}
