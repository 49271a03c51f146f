package coordinator

import (
	"container/heap"
	"time"
)

// Timer calls a machine at a time, in a turn. It is part of what it times, and
// belongs to one shard. The zero value with Fire set is ready. A deadline that
// moves all the time (a session) is better kept beside the timer, and looked at
// when it goes off.
type Timer struct {
	// Fire is called once for each Set whose time has come.
	Fire func(t *Turn)

	at    time.Time
	place int // in the heap, from 1; 0 is not set
}

// IsSet tells whether the timer is going to go off.
func (x *Timer) IsSet() bool { return x.place > 0 }

// At is when it is going to go off.
func (x *Timer) At() time.Time { return x.at }

// timers are the timers of a shard that are set.
type timers struct{ queue timerQueue }

func (s *timers) set(x *Timer, at time.Time) {
	x.at = at
	if x.place > 0 {
		heap.Fix(&s.queue, x.place-1)
		return
	}
	heap.Push(&s.queue, x)
}

func (s *timers) stop(x *Timer) {
	if x.place > 0 {
		heap.Remove(&s.queue, x.place-1)
	}
}

// due takes out a timer whose time has come, nil if there is none.
func (s *timers) due(now time.Time) *Timer {
	if len(s.queue) == 0 || s.queue[0].at.After(now) {
		return nil
	}
	return heap.Pop(&s.queue).(*Timer)
}

// next is when the next timer goes off; false if none is set.
func (s *timers) next() (time.Time, bool) {
	if len(s.queue) == 0 {
		return time.Time{}, false
	}
	return s.queue[0].at, true
}

// timerQueue is a heap, the next timer first.
type timerQueue []*Timer

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

func (q *timerQueue) Push(x any) {
	t := x.(*Timer)
	*q = append(*q, t)
	t.place = len(*q)
}

func (q *timerQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.place = 0
	return t
}
