package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// replayConsumer takes in a record of a consumer group. Records of kinds that are
// not known are left out: they belong to groups that are not served here.
func (m *Machine) replayConsumer(kind int16, key, value []byte) error {
	var named bool // The key names something in the group.
	switch kind {
	case keyGroupEpoch, keyOldTopics, keyTargetEpoch:
	case keyMember, keyTarget, keyCurrent, keyPattern:
		named = true
	default:
		return nil
	}
	id, rest, err := takeString(key[2:])
	var name []byte
	if err == nil && named {
		name, rest, err = takeString(rest)
	}
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("key %d of a consumer group: %w", kind, errMalformed)
	}
	g, known := m.groups[string(id)].(*Consumer)
	if value == nil {
		if known {
			m.replayTombstone(g, kind, string(name))
		}
		return nil
	}
	if !known {
		g = m.newConsumer(string(id))
		m.groups[g.id] = g
	}
	if err := g.replay(kind, string(name), value); err != nil {
		return fmt.Errorf("value of key %d of a consumer group: %w", kind, err)
	}
	return nil
}

// replayTombstone forgets what a record of a group told of.
func (m *Machine) replayTombstone(g *Consumer, kind int16, name string) {
	x := g.members[name]
	switch {
	case kind == keyGroupEpoch:
		delete(m.groups, g.id)
	case kind == keyOldTopics:
		g.oldRecords = false
	case kind == keyTargetEpoch:
		g.targetEpoch, g.assignedAt = 0, 0
	case kind == keyPattern:
		if p := g.patterns[name]; p != nil && p.members <= 0 {
			delete(g.patterns, name)
		}
	case x == nil:
	case kind == keyMember:
		g.unindex(x)
		delete(g.members, name)
		held, revoking := x.assigned, x.revoking
		x.assigned, x.revoking = nil, nil
		g.own(x, held, revoking)
	case kind == keyTarget:
		x.target = nil
	case kind == keyCurrent:
		held, revoking := x.assigned, x.revoking
		x.epoch, x.previous, x.state, x.assigned, x.revoking = 0, 0, memberStable, nil, nil
		g.own(x, held, revoking)
	}
}

// replay takes in a value.
func (g *Consumer) replay(kind int16, name string, value []byte) error {
	r, err := readValue(value)
	if err != nil {
		return err
	}
	switch kind {
	case keyGroupEpoch:
		epoch, hash := r.Int32(), r.tag()
		if err := r.err(); err != nil {
			return err
		}
		g.epoch, g.hash = epoch, int64Of(hash)
	case keyOldTopics:
		g.oldRecords = true
	case keyTargetEpoch:
		epoch, at := r.Int32(), r.tag()
		if err := r.err(); err != nil {
			return err
		}
		g.targetEpoch, g.assignedAt = epoch, int64Of(at)
	case keyMember:
		return g.replayMember(name, r)
	case keyTarget:
		target := r.set(nil)
		if err := r.err(); err != nil {
			return err
		}
		g.replayed(name).target = target
	case keyCurrent:
		return g.replayCurrent(name, r)
	case keyPattern:
		topics, version, at := r.names(), r.Int64(), r.Int64()
		if err := r.err(); err != nil {
			return err
		}
		slices.Sort(topics)
		p := g.patternOf(name)
		p.topics, p.version, p.at = g.m.shared(topics), version, at
	}
	return nil
}

// replayed is the member that a record tells of, made if need be.
func (g *Consumer) replayed(id string) *consumerMember {
	x := g.members[id]
	if x == nil {
		x = g.newMember(id)
		g.add(x)
	}
	return x
}

func (g *Consumer) replayMember(id string, r *valueReader) error {
	s := consumerMember{}
	s.instance, s.rack = r.CompactNullableString(), r.CompactNullableString()
	s.clientID, s.host = r.CompactString(), r.CompactString()
	s.names, s.regex = r.names(), r.CompactNullableString()
	s.rebalance = time.Duration(r.Int32()) * time.Millisecond
	s.assignor = r.CompactNullableString()
	s.classic = r.classic()
	if err := r.err(); err != nil {
		return err
	}
	x := g.replayed(id)
	g.unindex(x)
	x.instance, x.rack, x.clientID, x.host = s.instance, s.rack, s.clientID, s.host
	x.names, x.regex = g.m.shared(sortedNames(s.names)), s.regex
	x.rebalance, x.assignor, x.classic = s.rebalance, s.assignor, s.classic
	g.index(x)
	return nil
}

func (g *Consumer) replayCurrent(id string, r *valueReader) error {
	epoch, previous, state := r.Int32(), r.Int32(), memberState(r.Int8())
	since := make(map[partitionID]int32)
	note := func(at partitionID, epoch int32) { since[at] = epoch }
	assigned, revoking := r.set(note), r.set(note)
	if err := r.err(); err != nil {
		return err
	}
	x := g.replayed(id)
	held, before := x.assigned, x.revoking
	x.epoch, x.previous, x.state = epoch, previous, state
	x.assigned, x.revoking = assigned, revoking
	if state < memberStable || state > memberUnreleased {
		// A state of a newer version: it begins with giving back all that it may have.
		x.state, x.assigned, x.revoking = memberUnrevoked, nil, assigned.Or(revoking)
	}
	g.own(x, held, before)
	for _, s := range []assign.Set{x.assigned, x.revoking} {
		for i := range s {
			for _, p := range s[i].Partitions {
				at := partitionID{s[i].Topic, p}
				if e, ok := since[at]; ok {
					g.owners[at] = ownership{x, e}
				}
			}
		}
	}
	return nil
}

// int64Of is the field of a tag, 0 if it is not there.
func int64Of(field []byte) int64 {
	if len(field) != 8 {
		return 0
	}
	r := &valueReader{}
	r.Src = field
	return r.Int64()
}
