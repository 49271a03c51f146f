package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// DeleteGroup deletes a group without members, with its offsets. The promise is
// kept with an error code.
func (m *Machine) DeleteGroup(t *coordinator.Turn, id string, p *coordinator.Promise[int16]) {
	g, ok := m.groups[id]
	if !ok {
		p.Keep(kerr.GroupIDNotFound.Code)
		return
	}
	if err := g.checkDelete(); err != nil {
		p.Keep(codeOf(err))
		return
	}
	m.dropOffsets(t, id)
	m.dropGroup(t, id)
	coordinator.Deliver(t, p, 0)
}

// dropGroup deletes a group's own state.
func (m *Machine) dropGroup(t *coordinator.Turn, id string) {
	g := m.groups[id]
	g.bury(t)
	g.stop(t)
	delete(m.groups, id)
}

// dropOffsets deletes all offsets of a group, those of open transactions too.
func (m *Machine) dropOffsets(t *coordinator.Turn, id string) {
	o := m.offsets[id]
	if o == nil {
		return
	}
	places := make(map[place]struct{})
	for topic, parts := range o.topics {
		for partition := range parts {
			places[place{topic, partition}] = struct{}{}
		}
	}
	for at := range o.pending {
		places[at] = struct{}{}
	}
	for at := range places {
		t.Append(offsetKey(id, at), nil)
	}
	m.forgetStaged(id, nil)
	delete(m.offsets, id)
}

// dropOffset deletes one offset, if there is one or if a transaction holds one.
func (m *Machine) dropOffset(t *coordinator.Turn, id string, at place) {
	o := m.offsets[id]
	if _, ok := o.get(at.topic, at.partition); !ok && !o.isPending(at.topic, at.partition) {
		return
	}
	t.Append(offsetKey(id, at), nil)
	m.forgetStaged(id, &at)
	m.take(id, at)
}

// TopicPartitions names partitions of a topic.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// OffsetsDeleted is the answer to DeleteOffsets: a code for the whole, and one for
// each topic, as all partitions of a topic fare alike.
type OffsetsDeleted struct {
	Code   int16
	Topics []int16
}

// DeleteOffsets serves an OffsetDelete of partitions that are known to exist.
func (m *Machine) DeleteOffsets(t *coordinator.Turn, id string, topics []TopicPartitions, p *coordinator.Promise[OffsetsDeleted]) {
	g, ok := m.groups[id]
	if !ok {
		p.Keep(OffsetsDeleted{Code: kerr.GroupIDNotFound.Code})
		return
	}
	if err := g.checkDeleteOffsets(); err != nil {
		p.Keep(OffsetsDeleted{Code: codeOf(err)})
		return
	}
	answer := OffsetsDeleted{Topics: make([]int16, len(topics))}
	for i := range topics {
		if g.reads(topics[i].Topic) {
			answer.Topics[i] = kerr.GroupSubscribedToTopic.Code
			continue
		}
		for _, partition := range topics[i].Partitions {
			m.dropOffset(t, id, place{topics[i].Topic, partition})
		}
	}
	coordinator.Deliver(t, p, answer)
}

// ForgetTopics deletes the offsets of topics that were deleted.
func (m *Machine) ForgetTopics(t *coordinator.Turn, deleted func(name string, id TopicID) bool) {
	for _, id := range slices.Collect(maps.Keys(m.offsets)) {
		o := m.offsets[id]
		var gone []place
		for topic, parts := range o.topics {
			for partition, c := range parts {
				if deleted(topic, c.topicID) {
					gone = append(gone, place{topic, partition})
				}
			}
		}
		for at := range o.pending {
			if m.stagedFor(id, at, deleted) {
				gone = append(gone, at)
			}
		}
		for _, at := range gone {
			m.dropOffset(t, id, at)
		}
	}
}

// stagedFor tells whether an offset that a transaction holds is of a deleted topic.
func (m *Machine) stagedFor(id string, at place, deleted func(name string, id TopicID) bool) bool {
	for _, x := range m.txns {
		if s, ok := x.groups[id][at]; ok && deleted(at.topic, s.topicID) {
			return true
		}
	}
	return false
}

// forgetDeletedTopics catches up with what was deleted while nobody led the
// partition.
func (m *Machine) forgetDeletedTopics(t *coordinator.Turn) {
	m.ForgetTopics(t, func(name string, id TopicID) bool { return id != TopicID{} && m.opts.Topics.Deleted(name, id) })
}
