package metrics

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets are log-linear: each power of two microseconds is split in four, from
// 32 µs (all that is faster is the first bucket) to 64 s (all that is slower is
// the last). A quantile read off them is at most a fifth too high.
const (
	subBits     = 2
	sub         = 1 << subBits
	minExponent = 5                                                // 2^5 µs.
	maxExponent = 26                                               // 2^26 µs.
	numBuckets  = 1 + (maxExponent-minExponent)*sub + 1            // Fast, log-linear, slow.
	lowest      = time.Microsecond << minExponent                  // Upper bound of the first bucket.
	highest     = time.Duration(1<<maxExponent) * time.Microsecond // Lower bound of the last.
)

// Histogram counts durations. The zero value is ready; it must not be copied.
type Histogram struct {
	buckets [numBuckets]atomic.Uint64
	nanos   atomic.Uint64
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(d)].Add(1)
	h.nanos.Add(uint64(d))
}

func bucketOf(d time.Duration) int {
	if d < lowest {
		return 0
	}
	if d >= highest {
		return numBuckets - 1
	}
	us := uint64(d / time.Microsecond)
	exp := bits.Len64(us) - 1
	return 1 + (exp-minExponent)*sub + int(us>>(exp-subBits))&(sub-1)
}

// upperBound is the first duration that no longer belongs to bucket i; the last
// bucket has none and answers where it begins.
func upperBound(i int) time.Duration {
	if i == 0 {
		return lowest
	}
	if i >= numBuckets-1 {
		return highest
	}
	exp, part := minExponent+(i-1)/sub, (i-1)%sub
	return time.Duration((sub+part+1)<<(exp-subBits)) * time.Microsecond
}

// counts is a histogram at one moment.
type counts struct {
	buckets [numBuckets]uint64
	total   uint64
	sum     time.Duration
}

func (h *Histogram) read() counts {
	var c counts
	for i := range h.buckets {
		c.buckets[i] = h.buckets[i].Load()
		c.total += c.buckets[i]
	}
	c.sum = time.Duration(h.nanos.Load())
	return c
}

func (c counts) minus(o counts) counts {
	for i := range c.buckets {
		c.buckets[i] -= o.buckets[i]
	}
	c.total -= o.total
	c.sum -= o.sum
	return c
}

// quantile returns the upper bound of the bucket in which the q-th part of all
// observations lies, 0 when there are none.
func (c counts) quantile(q float64) time.Duration {
	if c.total == 0 {
		return 0
	}
	rank, seen := uint64(q*float64(c.total)), uint64(0)
	for i, n := range c.buckets {
		if seen += n; seen > rank {
			return upperBound(i)
		}
	}
	return highest
}

// cumulative gives the counts below each bound of a Prometheus histogram that
// has one bucket for every step powers of two.
func (c counts) cumulative(step int) map[float64]uint64 {
	out := make(map[float64]uint64)
	below := c.buckets[0]
	for i, exp := 1, minExponent; exp <= maxExponent; exp++ {
		if (exp-minExponent)%step == 0 {
			out[(time.Duration(1<<exp) * time.Microsecond).Seconds()] = below
		}
		for range sub {
			if i < numBuckets-1 {
				below += c.buckets[i]
				i++
			}
		}
	}
	return out
}
