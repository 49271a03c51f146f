package group

import (
	"encoding/binary"
	"fmt"
)

// offsets are what was committed for one group.
type offsets struct {
	topics map[string]map[int32]committed
	// pending counts, for each partition, the transactions that hold an offset.
	pending map[place]int
}

// place is a partition of a topic, by name: Kafka's records have no more.
type place struct {
	topic     string
	partition int32
}

// committed is an offset that was committed.
type committed struct {
	offset   int64
	at       int64 // when it was committed, in milliseconds
	expires  int64 // when it is to go, -1 unless its client has said so
	metadata string
	topicID  TopicID
	epoch    int32 // the leader epoch, -1 for none
}

// isOf tells whether the offset is one of the topic with that id; what is not
// known of either is no difference.
func (c *committed) isOf(id TopicID) bool {
	return c.topicID == id || c.topicID == TopicID{} || id == TopicID{}
}

// get is the offset of a partition.
func (o *offsets) get(topic string, partition int32) (committed, bool) {
	if o == nil {
		return committed{}, false
	}
	c, ok := o.topics[topic][partition]
	return c, ok
}

// isPending tells whether a transaction holds an offset of the partition.
func (o *offsets) isPending(topic string, partition int32) bool {
	return o != nil && len(o.pending) > 0 && o.pending[place{topic, partition}] > 0
}

// put keeps an offset.
func (m *Machine) put(group string, at place, c committed) {
	o := m.offsetsOf(group)
	parts := o.topics[at.topic]
	if parts == nil {
		parts = make(map[int32]committed, 1)
		o.topics[m.name(at.topic)] = parts
	}
	parts[at.partition] = c
}

// offsetsOf are the group's offsets, made if need be.
func (m *Machine) offsetsOf(group string) *offsets {
	o := m.offsets[group]
	if o == nil {
		o = &offsets{topics: make(map[string]map[int32]committed, 1)}
		m.offsets[group] = o
	}
	return o
}

// take forgets an offset; it tells whether there was one.
func (m *Machine) take(group string, at place) bool {
	o := m.offsets[group]
	if o == nil {
		return false
	}
	parts := o.topics[at.topic]
	if _, ok := parts[at.partition]; !ok {
		return false
	}
	delete(parts, at.partition)
	if len(parts) == 0 {
		delete(o.topics, at.topic)
	}
	m.forgetEmpty(group)
	return true
}

// forgetEmpty forgets that a group has offsets when it has none.
func (m *Machine) forgetEmpty(group string) {
	if o := m.offsets[group]; o != nil && len(o.topics) == 0 && len(o.pending) == 0 {
		delete(m.offsets, group)
	}
}

// name is a topic's name, held once for all that mention it.
func (m *Machine) name(topic string) string {
	if s, ok := m.names[topic]; ok {
		return s
	}
	if len(m.names) >= maxNames {
		m.names = make(map[string]string)
	}
	m.names[topic] = topic
	return topic
}

// Versions of an offset's value that are written: offsetValue, or, when the
// client has said how long to keep it, expiringValue, the last that can say so.
const (
	offsetValue   = 4
	expiringValue = 1
)

// offsetKey is the key of an offset's record:
//
//	int16 1 | group string | topic string | partition int32
func offsetKey(group string, at place) []byte {
	b := make([]byte, 0, 2+2+len(group)+2+len(at.topic)+4)
	b = binary.BigEndian.AppendUint16(b, keyOffset)
	b = appendString(b, group)
	b = appendString(b, at.topic)
	return binary.BigEndian.AppendUint32(b, uint32(at.partition))
}

// value is the value of an offset's record:
//
//	int16 4 | offset int64 | leader epoch int32 | metadata compact string | commit time int64 | tags: 0 topic id
//	int16 1 | offset int64 | metadata string | commit time int64 | expire time int64
func (c *committed) value() []byte {
	b := make([]byte, 0, 2+8+4+3+len(c.metadata)+8+8+20)
	if c.expires >= 0 {
		b = binary.BigEndian.AppendUint16(b, expiringValue)
		b = binary.BigEndian.AppendUint64(b, uint64(c.offset))
		b = appendString(b, c.metadata)
		b = binary.BigEndian.AppendUint64(b, uint64(c.at))
		return binary.BigEndian.AppendUint64(b, uint64(c.expires))
	}
	b = binary.BigEndian.AppendUint16(b, offsetValue)
	b = binary.BigEndian.AppendUint64(b, uint64(c.offset))
	b = binary.BigEndian.AppendUint32(b, uint32(c.epoch))
	b = binary.AppendUvarint(b, uint64(len(c.metadata))+1)
	b = append(b, c.metadata...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.at))
	if c.topicID == (TopicID{}) {
		return append(b, 0)
	}
	b = append(b, 1, 0, byte(len(c.topicID)))
	return append(b, c.topicID[:]...)
}

// read reads an offset's value of any version.
func (c *committed) read(b []byte) error {
	if len(b) < 10 {
		return errMalformed
	}
	version := int16(binary.BigEndian.Uint16(b))
	c.offset = int64(binary.BigEndian.Uint64(b[2:]))
	b = b[10:]
	c.epoch, c.expires = -1, -1
	if version >= 3 {
		if len(b) < 4 {
			return errMalformed
		}
		c.epoch, b = int32(binary.BigEndian.Uint32(b)), b[4:]
	}
	take := takeString
	if version >= 4 {
		take = takeCompact
	}
	metadata, b, err := take(b)
	if err != nil || len(b) < 8 {
		return errMalformed
	}
	c.metadata = string(metadata)
	c.at, b = int64(binary.BigEndian.Uint64(b)), b[8:]
	switch {
	case version < 0 || version > offsetValue:
		return fmt.Errorf("version %d: %w", version, errMalformed)
	case version == 1:
		if len(b) < 8 {
			return errMalformed
		}
		c.expires = int64(binary.BigEndian.Uint64(b))
	case version >= 4:
		return c.readTags(b)
	}
	return nil
}

// readTags reads the tags of an offset's value; unknown ones are left out.
func (c *committed) readTags(b []byte) error {
	n, k := binary.Uvarint(b)
	if k <= 0 {
		return errMalformed
	}
	b = b[k:]
	for range n {
		tag, k := binary.Uvarint(b)
		if k <= 0 {
			return errMalformed
		}
		size, l := binary.Uvarint(b[k:])
		if l <= 0 || size > uint64(len(b)-k-l) {
			return errMalformed
		}
		field := b[k+l : k+l+int(size)]
		if b = b[k+l+int(size):]; tag == 0 && len(field) == len(c.topicID) {
			copy(c.topicID[:], field)
		}
	}
	return nil
}

// replayOffset takes in an offset's record.
func (m *Machine) replayOffset(key, value []byte, producer int64) error {
	group, rest, err := takeString(key[2:])
	if err != nil {
		return fmt.Errorf("key of an offset: %w", err)
	}
	topic, rest, err := takeString(rest)
	if err != nil || len(rest) != 4 {
		return fmt.Errorf("key of an offset: %w", errMalformed)
	}
	partition := int32(binary.BigEndian.Uint32(rest))
	if value == nil {
		at := place{m.lent(topic), partition}
		m.forgetStaged(string(group), &at)
		m.take(string(group), at)
		return nil
	}
	var c committed
	if err := c.read(value); err != nil {
		return fmt.Errorf("value of an offset: %w", err)
	}
	if _, ok := m.groups[string(group)]; !ok {
		m.groups[string(group)] = m.newClassic(string(group))
	}
	if producer >= 0 {
		m.stage(producer, string(group), place{m.lent(topic), partition}, c)
		return nil
	}
	m.replayCommit(group, topic, partition, c)
	return nil
}

// replayCommit is put without memory for what is there already.
func (m *Machine) replayCommit(group, topic []byte, partition int32, c committed) {
	if o := m.offsets[string(group)]; o != nil {
		if parts := o.topics[string(topic)]; parts != nil && len(o.pending) == 0 {
			parts[partition] = c
			return
		}
	}
	at := place{m.lent(topic), partition}
	id := string(group)
	m.supersede(id, at, 0)
	m.put(id, at, c)
}

// lent is name for bytes.
func (m *Machine) lent(topic []byte) string {
	if s, ok := m.names[string(topic)]; ok {
		return s
	}
	return m.name(string(topic))
}
