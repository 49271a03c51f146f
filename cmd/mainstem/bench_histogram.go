package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets of a histogram: 64 for each power of two, so that a value is known to
// 1.6 percent, up to about an hour.
const (
	histogramBits    = 6
	histogramSteps   = 1 << histogramBits
	histogramBuckets = (42 - histogramBits + 1) * histogramSteps
)

// histogram counts durations. It is safe for concurrent use.
type histogram struct {
	counts [histogramBuckets]atomic.Int64
	sum    atomic.Int64
	most   atomic.Int64
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < histogramSteps {
		return int(n)
	}
	shift := bits.Len64(n) - histogramBits - 1
	return min((shift+1)<<histogramBits+int(n>>shift)-histogramSteps, histogramBuckets-1)
}

// bucketEnd is the largest duration that a bucket counts.
func bucketEnd(i int) time.Duration {
	if i < histogramSteps {
		return time.Duration(i)
	}
	shift := i>>histogramBits - 1
	return time.Duration((i&(histogramSteps-1)+histogramSteps+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
	for {
		most := h.most.Load()
		if int64(d) <= most || h.most.CompareAndSwap(most, int64(d)) {
			return
		}
	}
}

// snapshot is a histogram at one moment.
type snapshot struct {
	counts []int64
	total  int64
	sum    time.Duration
	most   time.Duration
}

func (h *histogram) snapshot() snapshot {
	s := snapshot{counts: make([]int64, histogramBuckets), sum: time.Duration(h.sum.Load()), most: time.Duration(h.most.Load())}
	for i := range h.counts {
		s.counts[i] = h.counts[i].Load()
		s.total += s.counts[i]
	}
	return s
}

// since is what came after an earlier snapshot.
func (s snapshot) since(before snapshot) snapshot {
	d := snapshot{counts: make([]int64, histogramBuckets), total: s.total - before.total, sum: s.sum - before.sum, most: s.most}
	for i := range d.counts {
		d.counts[i] = s.counts[i]
		if before.counts != nil {
			d.counts[i] -= before.counts[i]
		}
	}
	return d
}

// quantile returns the duration that a part q of all do not exceed.
func (s snapshot) quantile(q float64) time.Duration {
	rank, seen := int64(q*float64(s.total)+0.5), int64(0)
	for i, n := range s.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(bucketEnd(i), s.most)
		}
	}
	return s.most
}

// latencies are what is told of a histogram, in milliseconds.
type latencies struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	Max   float64 `json:"max"`
}

// summary returns nil when nothing was counted.
func (s snapshot) summary() *latencies {
	if s.total == 0 {
		return nil
	}
	return &latencies{
		Count: s.total, Mean: milliseconds(s.sum / time.Duration(s.total)), P50: milliseconds(s.quantile(0.5)), P90: milliseconds(s.quantile(0.9)),
		P99: milliseconds(s.quantile(0.99)), P999: milliseconds(s.quantile(0.999)), Max: milliseconds(s.most),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
