package quota

import (
	"math"
	"time"
)

// Window is over what time a rate is taken: the present sample and those before it.
type Window struct {
	Samples int
	Length  time.Duration // of one sample
}

// whole is the time after which nothing of what was counted is left.
func (w Window) whole() time.Duration { return time.Duration(w.Samples) * w.Length }

// full is the time that even a rate just begun is spread over.
func (w Window) full() time.Duration { return time.Duration(w.Samples-1) * w.Length }

// sample is a part of the window with what was counted in it.
type sample struct {
	start, last time.Duration // when it was begun, and when it was counted in last
	sum         float64
	count       int
}

// rate is a sum over a window that moves on. Times are counted from one beginning.
type rate struct {
	samples []sample // the oldest first
}

// add counts v, which may be negative to take back what was counted.
func (r *rate) add(w Window, v float64, now time.Duration) {
	r.purge(w, now)
	if n := len(r.samples); n == 0 || now-r.samples[n-1].start >= w.Length {
		r.samples = append(r.samples, sample{start: now})
	}
	s := &r.samples[len(r.samples)-1]
	s.last = now
	s.sum += v
	s.count++
}

// purge drops samples that are out of the window altogether.
func (r *rate) purge(w Window, now time.Duration) {
	kept := r.samples[:0]
	for _, s := range r.samples {
		if now-s.last < w.whole() {
			kept = append(kept, s)
		}
	}
	r.samples = kept
}

// measure gives the rate a second and the time over which it was taken: from the
// oldest sample on, but no less than a window without its present sample, so that a
// burst after a pause is not taken for a high rate.
func (r *rate) measure(w Window, now time.Duration) (perSecond float64, over time.Duration) {
	r.purge(w, now)
	sum := 0.0
	if len(r.samples) > 0 {
		over = now - r.samples[0].start
	}
	for i := range r.samples {
		sum += r.samples[i].sum
	}
	if missing := w.Samples - 1 - int(over/w.Length); missing > 0 {
		over += time.Duration(missing) * w.Length
	}
	over = max(over, time.Millisecond)
	return sum / over.Seconds(), over
}

// average is the mean of what was counted in the window, 0 if nothing was.
func (r *rate) average(w Window, now time.Duration) float64 {
	r.purge(w, now)
	sum, n := 0.0, 0
	for i := range r.samples {
		sum += r.samples[i].sum
		n += r.samples[i].count
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// excess is how long to wait until the rate is back at its bound.
func (r *rate) excess(w Window, bound float64, now time.Duration) time.Duration {
	perSecond, over := r.measure(w, now)
	if perSecond <= bound {
		return 0
	}
	return millis((perSecond - bound) / bound * float64(over.Milliseconds()))
}

// millis is a throttle time of whole milliseconds, as answers carry it.
func millis(ms float64) time.Duration {
	ms = math.Round(max(ms, 0))
	return time.Duration(min(ms, math.MaxInt32)) * time.Millisecond
}

// bucket holds tokens that come back with time. It begins full.
type bucket struct {
	begun  bool
	tokens float64
	at     time.Duration
}

// refill gives the tokens that there are now. At most a window's worth gathers.
func (b *bucket) refill(w Window, bound float64, now time.Duration) float64 {
	most := w.whole().Seconds() * bound
	if !b.begun {
		b.begun, b.tokens, b.at = true, most, now
	}
	b.tokens = min(most, b.tokens+bound*(now-b.at).Seconds())
	b.at = now
	return b.tokens
}

// debt is how long to wait until no token is owed.
func (b *bucket) debt(w Window, bound float64, now time.Duration) time.Duration {
	tokens := b.refill(w, bound, now)
	if tokens >= 0 {
		return 0
	}
	return millis(-tokens / bound * 1000)
}
