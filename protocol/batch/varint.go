package batch

import (
	"encoding/binary"
	"math"
)

// The numbers of a record are varints: base 128, least significant group first, with the sign in the lowest bit (zigzag).
const (
	maxVarint32 = 5
	maxVarint64 = 10
)

// varint32 decodes a number of at most 32 bits and returns the bytes that it took: 0 when b ends before the number does,
// below 0 when it is too long.
func varint32(b []byte) (value int32, n int) {
	if len(b) > 1 {
		if b[0] < 0x80 {
			return int32(b[0]>>1) ^ -int32(b[0]&1), 1
		}
		if u := uint32(b[0]&0x7f) | uint32(b[1])<<7; b[1] < 0x80 {
			return int32(u>>1) ^ -int32(u&1), 2
		}
	}
	return longVarint32(b)
}

func longVarint32(b []byte) (value int32, n int) {
	v, n := binary.Varint(b)
	switch {
	case n > 0 && n <= maxVarint32 && v >= math.MinInt32 && v <= math.MaxInt32:
		return int32(v), n
	case n == 0 && len(b) < maxVarint32:
		return 0, 0
	default:
		return 0, -1
	}
}

// varint64 is varint32 for 64 bits.
func varint64(b []byte) (value int64, n int) {
	if len(b) > 1 {
		if b[0] < 0x80 {
			return int64(b[0]>>1) ^ -int64(b[0]&1), 1
		}
		if u := uint64(b[0]&0x7f) | uint64(b[1])<<7; b[1] < 0x80 {
			return int64(u>>1) ^ -int64(u&1), 2
		}
	}
	return binary.Varint(b)
}

// appendVarint appends a number.
func appendVarint(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

// sizeVarint returns the bytes that a number takes.
func sizeVarint(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
