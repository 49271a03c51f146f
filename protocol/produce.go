package protocol

import (
	"encoding/binary"
	"fmt"
)

// ProduceRequest is a Produce request of versions 3 to 13, read by hand: the
// records lie in the frame, and no memory is taken a partition. On the wire,
// with compact lengths and tags (*) from version 9:
//
//	string  transactional id, may be null
//	int16   acks
//	int32   timeout
//	array   topics, for each
//	          string  name, up to version 12; uuid from version 13
//	          array   partitions, for each
//	                    int32   index
//	                    bytes   records, may be null
//	                    tags *
//	          tags *
//	tags *
type ProduceRequest struct {
	Version         int16
	TransactionalID *string
	Acks            int16
	TimeoutMillis   int32
	Topics          []ProduceTopic

	// partitions holds those of all topics; ends tells where each topic's end.
	partitions []ProducePartition
	ends       []int
	// names are topic names seen before, so that they are not made anew for each
	// request.
	names map[string]string
	pool  *Server
}

// ProduceTopic is a topic of a Produce request: by ID from version 13, by Name
// below.
type ProduceTopic struct {
	// Name may be kept.
	Name       string
	ID         [16]byte
	Partitions []ProducePartition
}

// ProducePartition is what is appended to one partition.
type ProducePartition struct {
	Index int32
	// Records is nil if the client sent null. It lies in the frame.
	Records []byte
}

const (
	// keepPartitions and keepNames bound what a request that is used again
	// holds on to.
	keepPartitions = 16 << 10
	keepNames      = 256
	// maxTopicName is the longest name that a topic may have.
	maxTopicName = 249
)

// DecodeProduce is the API.Decode of Produce: Call.Body becomes a
// *ProduceRequest, valid until the answer was given.
func DecodeProduce(c *Call, body []byte) error {
	var r *ProduceRequest
	if c.conn != nil {
		s := c.conn.srv
		if r, _ = s.produces.Get().(*ProduceRequest); r == nil {
			r = &ProduceRequest{pool: s}
		}
	} else {
		r = new(ProduceRequest)
	}
	c.Body = r
	return r.Decode(c.Version, body)
}

// Decode reads a request's body, in place of what was in r. Records lie in body.
func (r *ProduceRequest) Decode(version int16, body []byte) error {
	r.reset()
	r.Version = version
	d := fieldReader{b: body, flexible: version >= 9}
	if id, null := d.text(); !null {
		s := string(id)
		r.TransactionalID = &s
	}
	r.Acks = int16(d.uint16())
	r.TimeoutMillis = int32(d.uint32())
	for n := d.count(); n > 0 && !d.bad; n-- {
		var t ProduceTopic
		if version >= 13 {
			copy(t.ID[:], d.take(16))
		} else {
			name, null := d.text()
			d.bad = d.bad || null
			t.Name = r.intern(name)
		}
		for m := d.count(); m > 0 && !d.bad; m-- {
			index := int32(d.uint32())
			r.partitions = append(r.partitions, ProducePartition{index, d.bytes()})
			d.tags()
		}
		d.tags()
		r.Topics = append(r.Topics, t)
		r.ends = append(r.ends, len(r.partitions))
	}
	d.tags()
	if d.bad {
		return fmt.Errorf("%w: Produce version %d", ErrMalformed, version)
	}
	start := 0
	for i, end := range r.ends {
		r.Topics[i].Partitions = r.partitions[start:end:end]
		start = end
	}
	return nil
}

// reset empties a request, keeping its memory.
func (r *ProduceRequest) reset() {
	clear(r.Topics)
	clear(r.partitions)
	r.Topics, r.partitions, r.ends = r.Topics[:0], r.partitions[:0], r.ends[:0]
	r.TransactionalID = nil
}

// reuse gives a request back when its call is over.
func (r *ProduceRequest) reuse() {
	if cap(r.partitions) > keepPartitions || cap(r.Topics) > keepPartitions || r.pool == nil {
		return
	}
	r.reset()
	r.pool.produces.Put(r)
}

// intern makes a name that may be kept.
func (r *ProduceRequest) intern(name []byte) string {
	if s, ok := r.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if len(s) <= maxTopicName {
		if r.names == nil || len(r.names) >= keepNames {
			r.names = make(map[string]string)
		}
		r.names[s] = s
	}
	return s
}

// fieldReader reads the fields of a body. Once bad, it gives zeros.
type fieldReader struct {
	b        []byte
	flexible bool
	bad      bool
}

func (d *fieldReader) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *fieldReader) uint16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *fieldReader) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// compact reads a compact length, below zero for null.
func (d *fieldReader) compact() int {
	u, n := uvarint(d.b)
	if n == 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return int(u) - 1
}

// text reads a string.
func (d *fieldReader) text() (b []byte, null bool) {
	var n int
	if d.flexible {
		n = d.compact()
	} else {
		n = int(int16(d.uint16()))
	}
	if n < 0 {
		return nil, true
	}
	return d.take(n), false
}

// bytes reads bytes, nil for null.
func (d *fieldReader) bytes() []byte {
	var n int
	if d.flexible {
		n = d.compact()
	} else {
		n = int(int32(d.uint32()))
	}
	if n < 0 {
		return nil
	}
	return d.take(n)
}

// count reads the count of an array that may not be null.
func (d *fieldReader) count() int {
	var n int
	if d.flexible {
		n = d.compact()
	} else {
		n = int(int32(d.uint32()))
	}
	if n < 0 || n > len(d.b) {
		d.bad = true
	}
	return n
}

// tags skips tagged fields: Produce has none that are known.
func (d *fieldReader) tags() {
	if !d.flexible || d.bad {
		return
	}
	w := walker{b: d.b}
	d.bad = w.tags(&unknownTags) != nil
	d.b = w.b
}

// unknownTags is the step over tagged fields of which none is known.
var unknownTags = op{code: opTags, name: "tags"}
