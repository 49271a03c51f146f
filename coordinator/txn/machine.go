package txn

import (
	"github.com/mainstem/mainstem/coordinator"
)

// Machine is the transactional ids of one partition.
type Machine struct {
	opts      *Options
	partition int32
	txns      map[string]*txn
	// overdue looks for transactions that take too long, expiry for ids that nobody
	// uses.
	overdue, expiry coordinator.Timer
}

// New returns a machine without ids, for a partition of __transaction_state.
func New(partition int32, o *Options) *Machine {
	m := &Machine{opts: o, partition: partition, txns: make(map[string]*txn)}
	m.overdue.Fire = m.abortOverdue
	m.expiry.Fire = m.expire
	return m
}

// Loaded has decided transactions ended, and starts the timers.
func (m *Machine) Loaded(t *coordinator.Turn) {
	for _, x := range m.txns {
		if x.state.ending() {
			x.end(t)
		}
	}
	s := m.opts.Settings()
	t.Set(&m.overdue, t.Now().Add(s.TimeoutCheck))
	t.Set(&m.expiry, t.Now().Add(s.ExpiryCheck))
}

// Resigned fails what waits.
func (m *Machine) Resigned(err error) {
	for _, x := range m.txns {
		for _, w := range x.parked {
			w.promise.Fail(err)
		}
	}
}

// refuse answers with an error once what it depends on is committed.
func refuse(t *coordinator.Turn, p *Promise, err error) {
	coordinator.Deliver(t, p, Outcome{Producer: NoProducer(), Err: err})
}
