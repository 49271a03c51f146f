package txn

import (
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// ErrNeedsProducerID says that the request can only be served with a new producer
// id: nothing was done, and it is to be asked again with one.
var ErrNeedsProducerID = errors.New("a new producer id is needed")

// Init asks who the producer of a transactional id is.
type Init struct {
	ID      string
	Timeout int32 // milliseconds
	// Given is who the producer takes itself for, to be raised by one (KIP-360);
	// NoProducer for one that has just started.
	Given coordinator.Producer
	// NewID is a producer id that nobody has, or none.
	NewID int64
}

// InitProducerID serves an InitProducerId: the producer gets an epoch of its own,
// and all before it are locked out. A transaction that is open is aborted first.
func (m *Machine) InitProducerID(t *coordinator.Turn, r Init, p *Promise) {
	x := m.txns[r.ID]
	if x == nil {
		m.create(t, r, p)
		return
	}
	if !x.knows(r.Given) {
		refuse(t, p, kerr.ProducerFenced)
		return
	}
	if x.state == Ongoing {
		x.fence(t)
	}
	if x.state.ending() {
		x.park(t, p, 0, func(t *coordinator.Turn) { m.InitProducerID(t, r, p) })
		return
	}
	x.renew(t, r, p)
}

// create makes an id that is not known. What a client says of its producer does not
// count then: the id may have expired.
func (m *Machine) create(t *coordinator.Turn, r Init, p *Promise) {
	if r.NewID == coordinator.NoProducer {
		p.Keep(Outcome{Producer: NoProducer(), Err: ErrNeedsProducerID})
		return
	}
	x := &txn{
		m: m, id: r.ID, producer: r.NewID, next: coordinator.NoProducer, lastEpoch: noEpoch,
		timeout: r.Timeout, started: -1,
	}
	m.txns[r.ID] = x
	x.write(t, x.producer)
	coordinator.Deliver(t, p, Outcome{Producer: x.who()})
}

// knows tells whether a producer may go on as the one that it takes itself for: it
// is the newest, or was until it asked for a raise of whose answer it does not know.
// A producer with an open transaction has had that answer.
func (x *txn) knows(given coordinator.Producer) bool {
	switch {
	case given == NoProducer(), x.state.ending() && given == x.afterwards():
		return true
	case given.ID == x.producer && given.Epoch == x.epoch:
		return true
	case given.Epoch != x.lastEpoch || x.state == Ongoing:
		return false
	}
	return given.ID == x.producer || given.ID == x.previous && given.Epoch >= lastUsable
}

// renew gives the producer its next epoch, or a new id if there is none left.
func (x *txn) renew(t *coordinator.Turn, r Init, p *Promise) {
	before, own := x.producer, r.Given != NoProducer()
	repeated := own && r.Given != x.who() && x.epoch < math.MaxInt16
	switch {
	case repeated: // It was raised already, and may be asked once more.
		before = x.previous
	case x.exhausted() && r.NewID == coordinator.NoProducer:
		p.Keep(Outcome{Producer: NoProducer(), Err: ErrNeedsProducerID})
		return
	default:
		x.lastEpoch = noEpoch
		if own {
			x.lastEpoch = x.epoch
		}
		if x.epoch++; x.epoch > lastUsable || x.epoch < 0 {
			x.producer, x.epoch = r.NewID, 0
		}
	}
	x.state, x.places, x.started = Empty, nil, -1
	x.timeout = r.Timeout
	x.write(t, before)
	coordinator.Deliver(t, p, Outcome{Producer: x.who()})
}
