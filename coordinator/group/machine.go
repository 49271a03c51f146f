package group

import (
	"github.com/mainstem/mainstem/coordinator"
)

// Machine is the groups and offsets of one partition.
type Machine struct {
	opts   *Options
	groups map[string]group
	// offsets and txns are the committed and the pending offsets.
	offsets map[string]*offsets
	txns    map[int64]*txn
	staged  int64 // counts what transactions have staged
	// names holds each topic name once.
	names map[string]string
	// expiry looks for offsets that are too old.
	expiry coordinator.Timer
}

// New returns a machine without groups.
func New(o *Options) *Machine {
	m := &Machine{
		opts:    o,
		groups:  make(map[string]group),
		offsets: make(map[string]*offsets),
		txns:    make(map[int64]*txn),
		names:   make(map[string]string),
	}
	m.expiry.Fire = m.expire
	return m
}

// settings are those of this moment.
func (m *Machine) settings() Settings { return m.opts.Settings() }

// Resigned fails what the groups have parked.
func (m *Machine) Resigned(err error) {
	for _, g := range m.groups {
		g.resigned(err)
	}
}

// replace puts a group of another kind in the place of one, whose records are
// buried. Offsets stay: they are the id's.
func (m *Machine) replace(t *coordinator.Turn, id string, by group) {
	if old := m.groups[id]; old != nil {
		old.bury(t)
		old.stop(t)
	}
	m.groups[id] = by
}
