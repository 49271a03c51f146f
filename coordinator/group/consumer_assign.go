package group

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// advance brings the group's epochs forward after a member was heard, and then the
// member. owned is what it says it holds.
func (g *Consumer) advance(t *coordinator.Turn, x *consumerMember, s *ConsumerSettings, news change, owned assign.Set) {
	g.refreshFor(t, news)
	if g.epoch > g.targetEpoch && g.mayAssign(t, s.AssignmentInterval) {
		g.assign(t, s)
	}
	g.reconcile(t, x, news.subscription, owned)
}

// refreshFor looks at the topics anew if there is a reason to.
func (g *Consumer) refreshFor(t *coordinator.Turn, news change) {
	if news.topics || g.outdated {
		g.refresh(t, news.topics)
	}
}

// refresh looks at the topics anew; a change of them, or of a subscription, is a
// new epoch. The first target is computed for the epoch that the group begins with.
func (g *Consumer) refresh(t *coordinator.Turn, changed bool) {
	outdated := g.outdated
	g.outdated = false
	if outdated {
		for _, expression := range slices.Sorted(maps.Keys(g.patterns)) {
			if g.patterns[expression].isResolved() {
				g.resolve(t, expression)
			}
		}
	}
	if hash := g.topicsHash(); hash != g.hash {
		g.hash, changed = hash, true
	}
	if changed {
		g.epoch++
		g.writeEpoch(t)
	}
}

// names are those of all topics that members are subscribed to, in order.
func (g *Consumer) names() []string {
	all := make(map[string]struct{}, len(g.topics))
	for name := range g.topics {
		all[name] = struct{}{}
	}
	for _, p := range g.patterns {
		if p.members > 0 {
			for _, name := range p.topics {
				all[name] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// topicsHash is a number that changes with all that assigning depends on: which of
// the subscribed topics exist, their partitions, and the racks of those.
func (g *Consumer) topicsHash() int64 {
	h, found := fnv.New64a(), false
	var b []byte
	for _, name := range g.names() {
		topic, ok := g.m.topic(name)
		if !ok {
			continue
		}
		found = true
		b = appendString(b[:0], name)
		b = append(b, topic.ID[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(topic.Partitions))
		for _, racks := range topic.Racks {
			b = append(b, 0)
			for _, rack := range racks {
				b = appendString(b, rack)
			}
		}
		_, _ = h.Write(b)
	}
	if !found {
		return 0
	}
	return int64(h.Sum64())
}

// mayAssign tells whether the last target is old enough for a new one.
func (g *Consumer) mayAssign(t *coordinator.Turn, interval time.Duration) bool {
	return g.assignedAt == 0 || interval <= 0 || t.NowMillis() >= g.assignedAt+interval.Milliseconds()
}

// assign computes the target for the group's epoch, and records what it changes.
func (g *Consumer) assign(t *coordinator.Turn, s *ConsumerSettings) {
	topics := make(map[TopicID]Topic)
	for _, name := range g.names() {
		if topic, ok := g.m.topic(name); ok {
			topics[topic.ID] = topic
		}
	}
	list := g.sortedMembers()
	members := make([]assign.Member, len(list))
	known := make(map[string][]TopicID)
	for i, x := range list {
		members[i] = assign.Member{ID: *x.id, Topics: g.topicIDs(x, known), Target: x.target}
		if x.instance != nil {
			members[i].Instance = *x.instance
		}
		if x.rack != nil {
			members[i].Rack = *x.rack
		}
	}
	for i, target := range assign.ByName(g.assignor(s))(topics, members) {
		if x := list[i]; !x.target.Equal(target) {
			x.target = target
			g.writeTarget(t, x)
		}
	}
	g.targetEpoch, g.assignedAt = g.epoch, t.NowMillis()
	g.writeTargetEpoch(t)
}

// topicIDs are the topics that a member is subscribed to and that exist. Members
// with the same subscription share them through known.
func (g *Consumer) topicIDs(x *consumerMember, known map[string][]TopicID) []TopicID {
	var b []byte
	for _, name := range x.names {
		b = appendString(b, name)
	}
	key := string(append(append(b, 0, 0), x.pattern()...))
	if ids, ok := known[key]; ok {
		return ids
	}
	ids := make([]TopicID, 0, len(x.names))
	for _, name := range x.names {
		if topic, ok := g.m.topic(name); ok {
			ids = append(ids, topic.ID)
		}
	}
	if p := g.patterns[x.pattern()]; p != nil {
		for _, name := range p.topics {
			if topic, ok := g.m.topic(name); ok && !slices.Contains(x.names, name) {
				ids = append(ids, topic.ID)
			}
		}
	}
	known[key] = ids
	return ids
}

// assignor is the one that most members ask for, or the default. A tie goes to the
// one that is configured first.
func (g *Consumer) assignor(s *ConsumerSettings) string {
	best := s.Assignors[0]
	for _, name := range s.Assignors {
		if g.assignors[name] > g.assignors[best] {
			best = name
		}
	}
	return best
}
