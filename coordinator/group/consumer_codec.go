package group

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"

	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// Records of consumer groups. Strings, arrays and tags of values are compact, as in
// flexible versions of requests; those of keys are not. All values are of version 0,
// which an int16 in front says.
//
//	key 3   group              epoch int32 | tags: 0 hash of the topics int64
//	key 4   group              deleted only: older versions had the topics here
//	key 5   group, member      instance? rack? client host | names[] regex? | rebalance int32 | assignor? |
//	                           tags: 0 classic member: session int32 | protocols[]: name, metadata bytes, tags | tags
//	key 6   group              epoch int32 | tags: 0 when it was assigned int64
//	key 7   group, member      target[]
//	key 8   group, member      epoch int32 | previous epoch int32 | state int8 | assigned[] | revoking[] | tags
//	key 16  group, expression  topics[] | version int64 | when it was resolved int64 | tags
//
//	partitions[]   topic uuid | partitions int32[] | tags: 0 (of key 8) their epochs int32[]?
const (
	keyGroupEpoch  = 3
	keyOldTopics   = 4
	keyMember      = 5
	keyTargetEpoch = 6
	keyTarget      = 7
	keyCurrent     = 8
	keyPattern     = 16

	consumerVersion = 0
	noTags          = 0
	onlyTag         = 0 // Each struct with a tag has this one.
	structIsThere   = 1 // In front of a struct that might be null.
)

// consumerKey is the key of a record: of the group, or of something named in it.
func consumerKey(kind int16, group string, names ...string) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 48), uint16(kind))
	b = appendString(b, group)
	for _, name := range names {
		b = appendString(b, name)
	}
	return b
}

func patternKey(group, expression string) []byte { return consumerKey(keyPattern, group, expression) }

func newValue() []byte { return kbin.AppendInt16(make([]byte, 0, 64), consumerVersion) }

// appendTag appends the tags of a value that has one.
func appendTag(b, field []byte) []byte {
	b = append(b, 1, onlyTag)
	b = kbin.AppendUvarint(b, uint32(len(field)))
	return append(b, field...)
}

func appendNames(b []byte, names []string) []byte {
	b = kbin.AppendCompactArrayLen(b, len(names))
	for _, name := range names {
		b = kbin.AppendCompactString(b, name)
	}
	return b
}

func appendInts(b []byte, list []int32) []byte {
	b = kbin.AppendCompactArrayLen(b, len(list))
	for _, n := range list {
		b = kbin.AppendInt32(b, n)
	}
	return b
}

// appendSet appends partitions, with the epochs that since says if it is not nil.
func appendSet(b []byte, s assign.Set, since func(at partitionID) int32) []byte {
	b = kbin.AppendCompactArrayLen(b, len(s))
	for i := range s {
		b = kbin.AppendUuid(b, s[i].Topic)
		b = appendInts(b, s[i].Partitions)
		if since == nil {
			b = append(b, noTags)
			continue
		}
		epochs := make([]int32, len(s[i].Partitions))
		for j, p := range s[i].Partitions {
			epochs[j] = since(partitionID{s[i].Topic, p})
		}
		b = appendTag(b, appendInts(nil, epochs))
	}
	return b
}

func appendClassic(c *classicPart) []byte {
	b := kbin.AppendInt32([]byte{structIsThere}, int32(c.session.Milliseconds()))
	b = kbin.AppendCompactArrayLen(b, len(c.protocols))
	for i := range c.protocols {
		b = kbin.AppendCompactString(b, c.protocols[i].name)
		b = kbin.AppendCompactBytes(b, c.protocols[i].metadata)
		b = append(b, noTags)
	}
	return append(b, noTags)
}

// valueReader reads a value of a record.
type valueReader struct{ kbin.Reader }

// readValue begins to read a value; an unknown version is an error.
func readValue(b []byte) (*valueReader, error) {
	r := &valueReader{kbin.Reader{Src: b}}
	if v := r.Int16(); !r.Ok() || v != consumerVersion {
		return nil, fmt.Errorf("version %d: %w", v, errMalformed)
	}
	return r, nil
}

// err tells whether all that was read was there.
func (r *valueReader) err() error {
	if !r.Ok() {
		return errMalformed
	}
	return nil
}

// length is that of an array whose elements have at least so many bytes.
func (r *valueReader) length(least int) int {
	n := int(r.CompactArrayLen())
	if !r.Ok() || n <= 0 || n > len(r.Src)/least {
		if n > 0 {
			r.Span(len(r.Src) + 1) // There is not that much: nothing more is read.
		}
		return 0
	}
	return n
}

func (r *valueReader) names() []string {
	names := make([]string, r.length(1))
	for i := range names {
		names[i] = r.CompactString()
	}
	return names
}

func (r *valueReader) ints() []int32 {
	list := make([]int32, r.length(4))
	for i := range list {
		list[i] = r.Int32()
	}
	return list
}

// tag goes through tags and gives the field of the one that is known, nil if it is
// not there.
func (r *valueReader) tag() []byte {
	var known []byte
	for n := r.Uvarint(); n > 0 && r.Ok(); n-- {
		tag, size := r.Uvarint(), r.Uvarint()
		if int64(size) > int64(len(r.Src)) {
			size = uint32(len(r.Src)) + 1
		}
		if field := r.Span(int(size)); tag == onlyTag {
			known = field
		}
	}
	return known
}

// set reads partitions; each is given the epochs that stand with them, if any.
func (r *valueReader) set(each func(at partitionID, epoch int32)) assign.Set {
	n := r.length(18)
	of := make(map[TopicID][]int32, n)
	for range n {
		topic, partitions := r.Uuid(), r.ints()
		var epochs []int32
		if field := r.tag(); field != nil {
			inner := &valueReader{kbin.Reader{Src: field}}
			epochs = inner.ints()
		}
		of[topic] = append(of[topic], partitions...)
		for i, p := range partitions {
			if each != nil && i < len(epochs) {
				each(partitionID{topic, p}, epochs[i])
			}
		}
	}
	return assign.NewSet(of)
}

func (r *valueReader) classic() *classicPart {
	field := r.tag()
	if field == nil {
		return nil
	}
	in := &valueReader{kbin.Reader{Src: field}}
	if in.Int8() != structIsThere {
		return nil
	}
	c := &classicPart{session: time.Duration(in.Int32()) * time.Millisecond}
	c.protocols = make([]memberProtocol, in.length(3))
	for i := range c.protocols {
		c.protocols[i].name = in.CompactString()
		c.protocols[i].metadata = append([]byte{}, in.CompactBytes()...)
		in.tag()
	}
	if !in.Ok() {
		r.Span(len(r.Src) + 1)
		return nil
	}
	return c
}
