package protocol

import (
	"container/heap"
	"sync"
	"time"
)

// alarms call functions when their time has come: one goroutine with one timer for
// all connections. What is called must return at once.
type alarms struct {
	mu      sync.Mutex
	line    alarmLine
	stopped bool
	changed chan struct{} // the first of the line is another one; holds one
}

// alarm is one function and its time.
type alarm struct {
	at   time.Time
	ring func()
	i    int // place in the line, -1 if it is not there
}

func newAlarms() *alarms { return &alarms{changed: make(chan struct{}, 1)} }

// set makes ring be called at a time; at once when run has ended.
func (a *alarms) set(at time.Time, ring func()) *alarm {
	one := &alarm{at: at, ring: ring, i: -1}
	a.mu.Lock()
	if a.stopped {
		a.mu.Unlock()
		ring()
		return one
	}
	heap.Push(&a.line, one)
	first := one.i == 0
	a.mu.Unlock()
	if first {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
	return one
}

// cancel takes an alarm back if it has not rung yet.
func (a *alarms) cancel(one *alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one.i >= 0 {
		heap.Remove(&a.line, one.i)
	}
}

// len is the number of alarms that have not rung yet.
func (a *alarms) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.line)
}

// run rings until stop is closed, and then rings all that is left.
func (a *alarms) run(stop <-chan struct{}) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		a.ringUntil(time.Now())
		if next, ok := a.first(); ok {
			t.Reset(time.Until(next))
		} else {
			t.Stop()
		}
		select {
		case <-t.C:
		case <-a.changed:
		case <-stop:
			a.stop()
			return
		}
	}
}

func (a *alarms) stop() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	for a.ringNext() {
	}
}

// first is when the next alarm rings.
func (a *alarms) first() (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.line) == 0 {
		return time.Time{}, false
	}
	return a.line[0].at, true
}

func (a *alarms) ringUntil(now time.Time) {
	for {
		if at, ok := a.first(); !ok || at.After(now) {
			return
		}
		a.ringNext()
	}
}

func (a *alarms) ringNext() bool {
	a.mu.Lock()
	if len(a.line) == 0 {
		a.mu.Unlock()
		return false
	}
	one := heap.Pop(&a.line).(*alarm)
	a.mu.Unlock()
	one.ring()
	return true
}

// alarmLine is a heap, the earliest first.
type alarmLine []*alarm

func (l alarmLine) Len() int           { return len(l) }
func (l alarmLine) Less(i, j int) bool { return l[i].at.Before(l[j].at) }

func (l alarmLine) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].i, l[j].i = i, j
}

// Push is of container/heap.
func (l *alarmLine) Push(x any) {
	one := x.(*alarm)
	one.i = len(*l)
	*l = append(*l, one)
}

// Pop is of container/heap.
func (l *alarmLine) Pop() any {
	last := len(*l) - 1
	one := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	one.i = -1
	return one
}
