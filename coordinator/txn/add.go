package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// Add adds partitions to a producer's transaction, which it opens if need be.
type Add struct {
	ID       string
	Producer coordinator.Producer
	// Version is the version of transactions that the client speaks.
	Version int16
	Places  []Place
	// Patience is how long the request waits for markers of the transaction before
	// it; 0 is as long as the settings say.
	Patience time.Duration
}

// AddPartitions serves an AddPartitionsToTxn.
func (m *Machine) AddPartitions(t *coordinator.Turn, r Add, p *Promise) {
	x, err := m.of(r.ID, r.Producer)
	if err != nil {
		refuse(t, p, err)
		return
	}
	switch {
	case x.state.ending():
		x.park(t, p, r.Patience, func(t *coordinator.Turn) { m.AddPartitions(t, r, p) })
		return
	case x.state == Ongoing && x.places.hasAll(r.Places):
	default:
		if x.state != Ongoing {
			x.state, x.started, x.places = Ongoing, t.NowMillis(), make(places, 1)
		}
		for _, place := range r.Places {
			x.places.add(place)
		}
		x.version = r.Version
		x.write(t, x.producer)
	}
	coordinator.Deliver(t, p, Outcome{Producer: x.who()})
}

// of is the txn of an id, if it is the producer's. While one transaction ends, who
// is going to be the producer may have begun with the next.
func (m *Machine) of(id string, producer coordinator.Producer) (*txn, error) {
	x := m.txns[id]
	switch {
	case x != nil && x.state.ending() && producer == x.afterwards():
	case x == nil || x.producer != producer.ID:
		return nil, kerr.InvalidProducerIDMapping
	case x.epoch != producer.Epoch:
		return nil, kerr.ProducerFenced
	}
	return x, nil
}

// Verified tells which of the partitions asked for are in the transaction.
type Verified struct {
	// In has one entry for each; nil with an error.
	In  []bool
	Err error
}

// VerifyPartitions tells whether partitions are in a producer's open transaction.
func (m *Machine) VerifyPartitions(t *coordinator.Turn, r Add, p *coordinator.Promise[Verified]) {
	x, err := m.of(r.ID, r.Producer)
	if err == nil && x.state.ending() {
		err = kerr.ConcurrentTransactions
	}
	if err != nil {
		coordinator.Deliver(t, p, Verified{Err: err})
		return
	}
	in := make([]bool, len(r.Places))
	for i, place := range r.Places {
		in[i] = x.places.has(place)
	}
	coordinator.Deliver(t, p, Verified{In: in})
}
