package coordinator

import "unicode/utf16"

// Partition is the partition of an internal topic that is responsible for an id:
// Java's hash of the string, whose sign is taken away, modulo the number of
// partitions. Tools compute it themselves.
func Partition(id string, partitions int) int32 {
	h := Hash(id)
	if h < 0 {
		h = -h
	}
	if h < 0 { // The smallest number has no positive counterpart.
		h = 0
	}
	return h % int32(partitions)
}

// Hash is Java's hash of a string.
func Hash(s string) (h int32) {
	for _, r := range s {
		if r < 0x10000 {
			h = 31*h + r
			continue
		}
		high, low := utf16.EncodeRune(r)
		h = 31*(31*h+high) + low
	}
	return h
}
