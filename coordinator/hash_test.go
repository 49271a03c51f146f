package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/coordinator"
)

// The expected numbers are Math.abs(id.hashCode()) % n of Java.
func TestPlacementIsJavas(t *testing.T) {
	for id, want := range map[string]int32{
		"":                       0,
		"a":                      97 % 50,
		"wg":                     3792 % 50,
		"polygenelubricants":     0, // Its hash is the smallest number there is.
		"console-consumer-12345": coordinatorHash("console-consumer-12345") % 50,
		"grün\U0001F680":         coordinatorHash("grün\U0001F680") % 50,
	} {
		require.Equal(t, want, coordinator.Partition(id, 50), id)
	}
}

// coordinatorHash is the definition: s[0]*31^(n-1) + ... + s[n-1] over UTF-16.
func coordinatorHash(s string) int32 {
	var h int64
	for _, r := range s {
		units := []int64{int64(r)}
		if r > 0xffff {
			r -= 0x10000
			units = []int64{0xd800 + int64(r>>10), 0xdc00 + int64(r&0x3ff)}
		}
		for _, u := range units {
			h = int64(int32(31*h + u))
		}
	}
	if h < 0 {
		h = -h
	}
	return int32(h)
}
