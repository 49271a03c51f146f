package txn

import (
	"math"
	"slices"

	"github.com/mainstem/mainstem/coordinator"
)

// noEpoch stands for an epoch that is not known.
const noEpoch int16 = -1

// lastUsable is the largest epoch that a client gets: one is left to fence it with.
const lastUsable = math.MaxInt16 - 1

// Versions of transactions that clients speak.
const (
	Version1 int16 = 0 // as records say it
	Version2 int16 = 2
)

// txn is a transactional id with its producer and its transaction.
type txn struct {
	m  *Machine
	id string

	producer int64
	previous int64 // the producer id before the last change
	next     int64 // the one that the transaction's end brings, or none
	epoch    int16
	// lastEpoch is what epoch was before it was raised at the wish of the producer
	// itself, who may ask again; noEpoch after a new producer has come.
	lastEpoch int16
	timeout   int32 // milliseconds
	state     State
	version   int16 // the client's version of transactions
	places    places
	updated   int64 // milliseconds since 1970
	started   int64 // of the transaction, -1 if there is none

	parked []*parked
}

// places are partitions by topic, sorted.
type places map[string][]int32

func (s places) has(p Place) bool {
	_, found := slices.BinarySearch(s[p.Topic], p.Partition)
	return found
}

func (s places) hasAll(list []Place) bool {
	for _, p := range list {
		if !s.has(p) {
			return false
		}
	}
	return true
}

func (s places) add(p Place) {
	parts := s[p.Topic]
	if i, found := slices.BinarySearch(parts, p.Partition); !found {
		s[p.Topic] = slices.Insert(parts, i, p.Partition)
	}
}

// topics are the names in order.
func (s places) topics() []string {
	names := make([]string, 0, len(s))
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s places) list() []Place {
	var all []Place
	for _, topic := range s.topics() {
		for _, partition := range s[topic] {
			all = append(all, Place{topic, partition})
		}
	}
	return all
}

// who is the producer that the id belongs to now.
func (x *txn) who() coordinator.Producer { return coordinator.Producer{ID: x.producer, Epoch: x.epoch} }

// exhausted says that the epochs of the producer id are used up.
func (x *txn) exhausted() bool { return x.epoch >= lastUsable }

// write makes the txn's record say what it is now. before is the producer id
// before the change.
func (x *txn) write(t *coordinator.Turn, before int64) {
	x.previous = before
	x.updated = t.NowMillis()
	t.Append(keyOf(x.id), x.value())
}

// decide makes the end of the transaction certain, tells p, and then has the
// markers written. p may be nil. The epoch is raised if the client speaks
// version 2; next, unless it is none, is the producer id that comes after.
func (x *txn) decide(t *coordinator.Turn, state State, version int16, next int64, p *Promise) {
	if x.state != Ongoing {
		x.started = t.NowMillis() // There was nothing: it began and ended now.
	}
	if version >= Version2 && x.epoch < math.MaxInt16 {
		x.lastEpoch = x.epoch
		x.epoch++
	}
	x.state, x.version, x.next = state, version, next
	x.write(t, x.producer)
	if p != nil {
		coordinator.Deliver(t, p, Outcome{Producer: x.afterwards()})
	}
	x.end(t)
}

// afterwards is who the producer is once the transaction has ended.
func (x *txn) afterwards() coordinator.Producer {
	if x.next != coordinator.NoProducer {
		return coordinator.Producer{ID: x.next}
	}
	return x.who()
}

// fence aborts the open transaction for somebody else than its producer, who is
// locked out by a raised epoch.
func (x *txn) fence(t *coordinator.Turn) {
	x.decide(t, PrepareAbort, Version2, coordinator.NoProducer, nil)
}

// end has the markers written once all that was appended is committed.
func (x *txn) end(t *coordinator.Turn) {
	e := Ending{
		Shard: x.m.partition, ID: x.id, Producer: x.who(), Commit: x.state == PrepareCommit,
		Bumped: x.version >= Version2, Places: x.places.list(),
	}
	write := x.m.opts.End
	t.Reply(func(err error) {
		if err == nil {
			write(e)
		}
	})
}
