package records

import "encoding/binary"

// The answer to a produce:
//
//	topics: array of
//	    name                string, up to v12
//	    topic id            16 bytes, from v13
//	    partitions: array of
//	        index           int32
//	        error code      int16
//	        base offset     int64
//	        log append time int64
//	        log start       int64, from v5
//	        record errors   array of (batch index int32, message nullable string), from v8
//	        error message   nullable string, from v8
//	        tag 0           current leader (id int32, epoch int32), from v10
//	throttle time           int32
//	tag 0                   node endpoints, from v10
//
// From v9 on it is flexible.

// encode appends the body for the rows, whose topics are contiguous.
func (p *produce) encode(b []byte) []byte {
	version := p.req.Version
	flexible := version >= 9
	topics := 0
	for i := range p.rows {
		if i == 0 || p.rows[i].topic != p.rows[i-1].topic {
			topics++
		}
	}
	b = appendArrayLen(b, topics, flexible)
	for first := 0; first < len(p.rows); {
		end := first + 1
		for end < len(p.rows) && p.rows[end].topic == p.rows[first].topic {
			end++
		}
		t := &p.req.Topics[p.rows[first].topic]
		if version >= 13 {
			b = append(b, t.ID[:]...)
		} else {
			b = appendString(b, t.Name, flexible)
		}
		b = appendArrayLen(b, end-first, flexible)
		for i := first; i < end; i++ {
			b = p.rows[i].encode(b, version)
		}
		b = appendNoTags(b, flexible)
		first = end
	}
	b = appendInt32(b, int32(p.wait.Milliseconds()))
	if flexible {
		b = p.leaders.appendEndpoints(b)
	}
	return b
}

func (r *row) encode(b []byte, version int16) []byte {
	flexible := version >= 9
	b = appendInt32(b, r.index)
	b = appendInt16(b, r.code)
	b = appendInt64(b, r.base)
	b = appendInt64(b, r.time)
	if version >= 5 {
		b = appendInt64(b, r.start)
	}
	if version >= 8 {
		b = appendArrayLen(b, len(r.records), flexible)
		for i := range r.records {
			b = appendInt32(b, r.records[i].Index)
			b = appendString(b, r.records[i].Message, flexible)
			b = appendNoTags(b, flexible)
		}
		b = appendNullableString(b, r.message, flexible)
	}
	if !flexible {
		return b
	}
	if !r.hint.known {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, 1)
	return r.hint.appendCurrentLeader(b, 0)
}
