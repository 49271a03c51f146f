package records

import "encoding/binary"

// These append what Kafka's bodies are made of. Flexible versions count arrays,
// strings and bytes by an unsigned varint of the length plus one, so that zero
// stands for null; the others by a fixed width with -1 for null.

func appendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// appendArrayLen appends the number of elements of an array that is not null.
func appendArrayLen(b []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(b, uint64(n)+1)
	}
	return appendInt32(b, int32(n))
}

// appendNullArray appends an array that is null.
func appendNullArray(b []byte, flexible bool) []byte {
	if flexible {
		return append(b, 0)
	}
	return appendInt32(b, -1)
}

func appendString(b []byte, s string, flexible bool) []byte {
	if flexible {
		b = binary.AppendUvarint(b, uint64(len(s))+1)
	} else {
		b = appendInt16(b, int16(len(s)))
	}
	return append(b, s...)
}

func appendNullableString(b []byte, s *string, flexible bool) []byte {
	switch {
	case s != nil:
		return appendString(b, *s, flexible)
	case flexible:
		return append(b, 0)
	}
	return appendInt16(b, -1)
}

// appendNoTags ends a structure of a flexible version.
func appendNoTags(b []byte, flexible bool) []byte {
	if flexible {
		return append(b, 0)
	}
	return b
}

// uvarintLen is the number of bytes that v takes as an unsigned varint.
func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
