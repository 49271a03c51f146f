package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// txn is what a producer's open transaction has committed, by group.
type txn struct {
	groups map[string]map[place]staged
}

// staged is an offset that counts once its transaction has committed, unless a
// newer one was committed since.
type staged struct {
	committed
	order int64 // of staging, among all of the machine
	stale bool  // a newer offset was committed
}

// stage keeps an offset of an open transaction.
func (m *Machine) stage(producer int64, group string, at place, c committed) {
	x := m.txns[producer]
	if x == nil {
		x = &txn{groups: make(map[string]map[place]staged, 1)}
		m.txns[producer] = x
	}
	held := x.groups[group]
	if held == nil {
		held = make(map[place]staged, 1)
		x.groups[group] = held
	}
	at.topic = m.name(at.topic)
	if _, again := held[at]; !again {
		o := m.offsetsOf(group)
		if o.pending == nil {
			o.pending = make(map[place]int, 1)
		}
		o.pending[at]++
	}
	m.staged++
	held[at] = staged{committed: c, order: m.staged}
}

// supersede tells open transactions that a newer offset was committed: theirs that
// were staged before it do not count any more. before 0 stands for now.
func (m *Machine) supersede(group string, at place, before int64) {
	if o := m.offsets[group]; !o.isPending(at.topic, at.partition) {
		return
	}
	for _, x := range m.txns {
		if s, ok := x.groups[group][at]; ok && (before == 0 || s.order < before) {
			s.stale = true
			x.groups[group][at] = s
		}
	}
}

// ReplayEnd takes in the end of a transaction.
func (m *Machine) ReplayEnd(marker coordinator.Marker) error {
	m.settleTxn(marker.Producer.ID, marker.Commit)
	return nil
}

// settleTxn has what a transaction has staged count, or forgets it.
func (m *Machine) settleTxn(producer int64, commit bool) {
	x := m.txns[producer]
	if x == nil {
		return
	}
	delete(m.txns, producer)
	for group, held := range x.groups {
		o := m.offsets[group]
		for at, s := range held {
			if o.pending[at]--; o.pending[at] <= 0 {
				delete(o.pending, at)
			}
			if commit && !s.stale {
				m.supersede(group, at, s.order)
				m.put(group, at, s.committed)
			}
		}
		m.forgetEmpty(group)
	}
}

// forgetStaged forgets what open transactions hold for a group, or, if at is
// given, for one partition of it.
func (m *Machine) forgetStaged(group string, at *place) {
	o := m.offsets[group]
	if o == nil || len(o.pending) == 0 {
		return
	}
	for producer, x := range m.txns {
		for held := range x.groups[group] {
			if at != nil && held != *at {
				continue
			}
			delete(x.groups[group], held)
			if o.pending[held]--; o.pending[held] <= 0 {
				delete(o.pending, held)
			}
		}
		if len(x.groups[group]) == 0 {
			delete(x.groups, group)
		}
		if len(x.groups) == 0 {
			delete(m.txns, producer)
		}
	}
	m.forgetEmpty(group)
}

// CommitTxnOffsets serves a TxnOffsetCommit of offsets whose partitions are known
// to exist, and answers with a code for each. Whether the producer may use the
// transaction is for others to say.
func (m *Machine) CommitTxnOffsets(t *coordinator.Turn, c Client, req *kmsg.TxnOffsetCommitRequest, list []Offset, p *Codes) {
	id := req.Group
	g, known := m.groups[id]
	switch {
	case known:
	case tooLong(id):
		p.Keep(allCodes(list, kerr.InvalidGroupID))
		return
	case req.Generation >= 0:
		p.Keep(allCodes(list, kerr.IllegalGeneration))
		return
	default:
		g = m.newClassic(id)
	}
	by := commitBy{memberID: req.MemberID, instanceID: req.InstanceID, epoch: req.Generation, version: c.Version, inTxn: true}
	if err := g.checkCommit(t, by); err != nil {
		p.Keep(allCodes(list, err))
		return
	}
	codes := m.checkOffsets(list)
	checkEach(g, by, list, codes)
	now := t.NowMillis()
	staged := make([]committed, len(list))
	records := make([]coordinator.Record, 0, len(list))
	for i := range list {
		if codes[i] == 0 {
			staged[i] = list[i].at(now, -1)
			records = append(records, coordinator.Record{Key: offsetKey(id, list[i].place()), Value: staged[i].value()})
		}
	}
	if len(records) > 0 {
		if err := t.AppendTxn(coordinator.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}, records...); err != nil {
			p.Keep(allCodes(list, err))
			return
		}
		m.groups[id] = g
	}
	for i := range list {
		if codes[i] == 0 {
			m.stage(req.ProducerID, id, list[i].place(), staged[i])
		}
	}
	coordinator.Deliver(t, p, codes)
}

// EndTxn ends a producer's transaction on this partition, and keeps the promise
// once that is committed.
func (m *Machine) EndTxn(t *coordinator.Turn, marker coordinator.Marker, p *coordinator.Promise[struct{}]) {
	if err := t.AppendMarker(marker); err != nil {
		p.Fail(err)
		return
	}
	m.settleTxn(marker.Producer.ID, marker.Commit)
	coordinator.Deliver(t, p, struct{}{})
}
