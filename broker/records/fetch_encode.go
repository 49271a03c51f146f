package records

import (
	"encoding/binary"

	"github.com/mainstem/mainstem/protocol"
)

// The answer to a fetch:
//
//	throttle time            int32
//	error code               int16, from v7
//	session id               int32, from v7
//	topics: array of
//	    name                 string, up to v12
//	    topic id             16 bytes, from v13
//	    partitions: array of
//	        index            int32
//	        error code       int16
//	        high watermark   int64
//	        last stable      int64
//	        log start        int64, from v5
//	        aborted          nullable array of (producer id int64, first offset int64)
//	        preferred read   int32, from v11
//	        records          bytes: whole batches
//	        tag 0            diverging epoch (epoch int32, end int64), from v12
//	        tag 1            current leader (id int32, epoch int32), from v12
//	tag 0                    node endpoints, from v16
//
// From v12 on it is flexible. The records are pieces of their own, not copied.

// cut says that a row's records belong at a place of the body.
type cut struct {
	at      int
	batches batches
}

// encode makes the pieces of the body.
func (f *fetch) encode() {
	f.encodeBody()
	f.assemble()
}

// encodeBody makes the body, and notes where records belong in it.
func (f *fetch) encodeBody() {
	f.cuts = f.cuts[:0]
	version := f.req.Version
	flexible := version >= 12
	b := appendInt32(f.body[:0], int32(f.wait.Milliseconds()))
	if version >= 7 {
		code := int16(0)
		if f.failed != nil {
			code = f.code(f.failed)
		}
		b = appendInt16(b, code)
		b = appendInt32(b, f.answerID)
	}
	topics := 0
	for i := range f.rows {
		if i == 0 || !f.rows[i].sameTopic(&f.rows[i-1]) {
			topics++
		}
	}
	b = appendArrayLen(b, topics, flexible)
	for first := 0; first < len(f.rows); {
		end := first + 1
		for end < len(f.rows) && f.rows[end].sameTopic(&f.rows[first]) {
			end++
		}
		if version >= 13 {
			b = append(b, f.rows[first].key.id[:]...)
		} else {
			b = appendString(b, f.rows[first].key.name, flexible)
		}
		b = appendArrayLen(b, end-first, flexible)
		for i := first; i < end; i++ {
			b = f.encodeRow(b, &f.rows[i])
		}
		b = appendNoTags(b, flexible)
		first = end
	}
	if flexible {
		b = f.leaders.appendEndpoints(b)
	}
	f.body = b
}

func (r *fetchRow) sameTopic(o *fetchRow) bool {
	return r.key.id == o.key.id && r.key.name == o.key.name
}

func (f *fetch) encodeRow(b []byte, r *fetchRow) []byte {
	version := f.req.Version
	flexible := version >= 12
	b = appendInt32(b, r.key.index)
	b = appendInt16(b, r.code)
	b = appendInt64(b, r.hw)
	b = appendInt64(b, r.lso)
	if version >= 5 {
		b = appendInt64(b, r.start)
	}
	if r.committed {
		b = appendArrayLen(b, len(r.aborted), flexible)
		for i := range r.aborted {
			b = appendInt64(b, r.aborted[i].ProducerID)
			b = appendInt64(b, r.aborted[i].First)
			b = appendNoTags(b, flexible)
		}
	} else {
		b = appendNullArray(b, flexible)
	}
	if version >= 11 {
		b = appendInt32(b, -1) // No other replica is preferred.
	}
	size := 0
	if r.batches != nil {
		size = r.batches.Size()
	}
	b = appendArrayLen(b, size, flexible)
	if size > 0 {
		f.cuts = append(f.cuts, cut{at: len(b), batches: r.batches})
	}
	if !flexible {
		return b
	}
	return r.encodeTags(b)
}

func (r *fetchRow) encodeTags(b []byte) []byte {
	tags := uint64(0)
	if r.diverging {
		tags++
	}
	if r.hint.known {
		tags++
	}
	b = binary.AppendUvarint(b, tags)
	if r.diverging {
		b = append(b, 0, 4+8+1)
		b = appendInt32(b, r.epoch)
		b = appendInt64(b, r.end)
		b = append(b, 0)
	}
	if r.hint.known {
		b = r.hint.appendCurrentLeader(b, 1)
	}
	return b
}

// assemble cuts the body where the records belong.
func (f *fetch) assemble() {
	pieces, insets := f.buffers.Pieces[:0], f.buffers.Insets[:0]
	from := 0
	for _, c := range f.cuts {
		pieces = append(pieces, f.body[from:c.at])
		pieces = append(pieces, c.batches.Buffers()...)
		if rest := c.batches.Rest(); rest > 0 {
			insets = append(insets, protocol.Inset{At: len(pieces), Size: rest, Source: c.batches, Begun: len(c.batches.Buffers()) > 0})
		}
		from = c.at
	}
	pieces = append(pieces, f.body[from:])
	f.buffers = protocol.Buffers{Pieces: pieces, Insets: insets, Release: f.releaseFunc}
}
