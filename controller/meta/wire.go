package meta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrupt says that the bytes are not a value of their kind.
var ErrCorrupt = errors.New("corrupt metadata value")

// TooNewError says that a value, or the whole layout, was written by a newer version of Mainstem.
type TooNewError struct {
	What           string
	Version, Known int
}

func (e *TooNewError) Error() string {
	return fmt.Sprintf("%s in etcd has version %d, this version of Mainstem reads up to %d: "+
		"it was written by a newer Mainstem, upgrade this one first", e.What, e.Version, e.Known)
}

// valueVersion is the version of every value written today.
const valueVersion = 1

// writer appends the fields of a value.
type writer struct{ b []byte }

func newWriter(size int) *writer {
	return &writer{b: append(make([]byte, 0, size), valueVersion)}
}

func (w *writer) u8(v byte)       { w.b = append(w.b, v) }
func (w *writer) uv(v uint64)     { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) sv(v int64)      { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) f64(v float64)   { w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(v)) }
func (w *writer) id(v [16]byte)   { w.b = append(w.b, v[:]...) }
func (w *writer) str(s string)    { w.uv(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) ids(ids []int32) { w.uv(uint64(len(ids))); w.each(ids) }

func (w *writer) each(ids []int32) {
	for _, id := range ids {
		w.uv(uint64(uint32(id)))
	}
}

// reader takes fields off a value. The first failure sticks; every length is bounded by the bytes that are left.
type reader struct {
	b   []byte
	err error
}

// newReader checks the version byte.
func newReader(what string, b []byte) *reader {
	r := &reader{b: b}
	v := r.u8()
	switch {
	case r.err != nil || v == 0:
		r.err = ErrCorrupt
	case v > valueVersion:
		r.err = &TooNewError{What: what, Version: int(v), Known: valueVersion}
	}
	return r
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = ErrCorrupt
	}
	r.b = nil
}

func (r *reader) u8() byte {
	if len(r.b) < 1 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uv() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) f64() float64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

// i32 reads a uv that fits a non-negative int32.
func (r *reader) i32() int32 {
	v := r.uv()
	if v > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int32(v)
}

// s32 reads an sv that fits an int32.
func (r *reader) s32() int32 {
	v, n := binary.Varint(r.b)
	if n <= 0 || v < math.MinInt32 || v > math.MaxInt32 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return int32(v)
}

// count reads the number of things of at least size bytes each.
func (r *reader) count(size int) int {
	v := r.uv()
	if v > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) id() (id [16]byte) {
	if len(r.b) < len(id) {
		r.fail()
		return id
	}
	copy(id[:], r.b)
	r.b = r.b[len(id):]
	return id
}

func (r *reader) str() string {
	n := r.count(1)
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) ids() []int32 {
	n := r.count(1)
	if n == 0 {
		return nil
	}
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.i32()
	}
	return ids
}

// end is the error of the whole value; bytes left over are one.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	return r.err
}
