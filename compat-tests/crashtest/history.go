// Package crashtest kills brokers under load and judges what is left: nothing
// acknowledged is missing, nothing is there twice, offsets have no holes.
package crashtest

import (
	"fmt"
	"sync"
)

// slot names one partition.
type slot struct {
	topic     string
	partition int32
}

// history is what producers were told. Values are unique.
type history struct {
	mu    sync.Mutex
	acked map[slot]map[int64]string // offset -> value
	count int
}

func newHistory() *history { return &history{acked: map[slot]map[int64]string{}} }

// ack notes an acknowledged record. Two records at one offset are a fault.
func (h *history) ack(s slot, offset int64, value string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.acked[s]
	if m == nil {
		m = map[int64]string{}
		h.acked[s] = m
	}
	if old, taken := m[offset]; taken {
		return fmt.Errorf("%v offset %d was acknowledged for %q and for %q", s, offset, old, value)
	}
	m[offset] = value
	h.count++
	return nil
}

// observed is what readers saw of one partition so far.
type observed struct {
	next   int64             // the offset that must come next
	values map[int64]string  // everything read
	seen   map[string]int64  // value -> offset
	last   map[string]uint64 // producer -> its highest number
}

// log is what was read of every partition.
type readLog struct{ parts map[slot]*observed }

func newReadLog() *readLog { return &readLog{parts: map[slot]*observed{}} }

func (r *readLog) at(s slot) *observed {
	o := r.parts[s]
	if o == nil {
		o = &observed{values: map[int64]string{}, seen: map[string]int64{}, last: map[string]uint64{}}
		r.parts[s] = o
	}
	return o
}

// read takes the next record of a partition in and judges it by itself.
func (r *readLog) read(s slot, offset int64, value string) error {
	o := r.at(s)
	if offset != o.next {
		return fmt.Errorf("%v: offset %d follows %d: a hole", s, offset, o.next-1)
	}
	if at, twice := o.seen[value]; twice {
		return fmt.Errorf("%v: %q stands at %d and again at %d", s, value, at, offset)
	}
	var producer string
	var number uint64
	if _, err := fmt.Sscanf(value, "%s %d", &producer, &number); err != nil {
		return fmt.Errorf("%v offset %d holds %q: %w", s, offset, value, err)
	}
	if last, before := o.last[producer]; before && number <= last {
		return fmt.Errorf("%v: record %d of producer %s follows its record %d", s, number, producer, last)
	}
	o.next, o.seen[value], o.values[offset], o.last[producer] = offset+1, offset, value, number
	return nil
}

// verify compares everything acknowledged with everything read.
func (h *history) verify(r *readLog) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, acked := range h.acked {
		o := r.at(s)
		for offset, value := range acked {
			if got, there := o.values[offset]; !there || got != value {
				return fmt.Errorf("%v offset %d: %q was acknowledged, %q is there (end %d)", s, offset, value, got, o.next)
			}
		}
	}
	return nil
}
