package txn

import "encoding/binary"

// reader reads the fields of a record, one after the other. Once a field is not
// there it has failed, and every further one is zero.
type reader struct {
	b       []byte
	compact bool // strings and arrays are counted by varints
	failed  bool
}

// take is the next n bytes.
func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.b) {
		r.failed = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) int8() int8 {
	if v := r.take(1); v != nil {
		return int8(v[0])
	}
	return 0
}

func (r *reader) int16() int16 {
	if v := r.take(2); v != nil {
		return int16(binary.BigEndian.Uint16(v))
	}
	return 0
}

func (r *reader) int32() int32 {
	if v := r.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (r *reader) int64() int64 {
	if v := r.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	if r.failed {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count is the number of elements of an array, -1 for null. Each takes at least
// least bytes.
func (r *reader) count(least int) int {
	n := int64(0)
	if r.compact {
		n = int64(r.uvarint()) - 1
	} else {
		n = int64(r.int32())
	}
	if n < -1 || n > int64(len(r.b)/least) {
		r.failed = true
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	if r.compact {
		n := r.uvarint()
		if n == 0 || n-1 > uint64(len(r.b)) {
			r.failed = true
			return ""
		}
		return string(r.take(int(n - 1)))
	}
	return string(r.take(int(r.int16())))
}

// places are the partitions of a transaction, nil if there are none.
func (r *reader) places() places {
	n := r.count(1)
	if n <= 0 {
		return nil
	}
	s := make(places, min(n, 64))
	for range n {
		topic := r.string()
		for range max(r.count(4), 0) {
			s.add(Place{topic, r.int32()})
		}
		if r.compact {
			r.tags(nil)
		}
		if r.failed {
			return nil
		}
	}
	if len(s) == 0 {
		return nil
	}
	return s
}

// tags hands out the tagged fields that are there; fn may be nil.
func (r *reader) tags(fn func(tag uint64, field *reader)) {
	for range r.uvarint() {
		tag, size := r.uvarint(), r.uvarint()
		if size > uint64(len(r.b)) {
			r.failed = true
		}
		if r.failed {
			return
		}
		field := reader{b: r.take(int(size))}
		if fn != nil {
			fn(tag, &field)
			r.failed = r.failed || field.failed
		}
	}
}
