package replica

import (
	"sync"
	"sync/atomic"
)

// Waiter is whoever waits for partitions to move. One goroutine owns it at a
// time: it hangs watches, takes the marked ones and blocks on Signal. Use
// NewWaiter.
type Waiter struct {
	mu          sync.Mutex
	first, last *Watch // marked watches in the order of their marks, guarded by mu
	signal      chan struct{}
}

// NewWaiter returns a waiter without watches.
func NewWaiter() *Waiter {
	return &Waiter{signal: make(chan struct{}, 1)}
}

// Signal receives after a watch was marked. A signal may also be left over from
// a mark that was taken since, so the receiver looks and waits again.
func (w *Waiter) Signal() <-chan struct{} { return w.signal }

// Take returns the watches marked since the last Take, in the order of their
// marks, chained by Watch.Next; nil if there are none. Their marks are cleared:
// what moves from now on marks them again. Watches that were dropped since do
// not come out.
func (w *Waiter) Take() *Watch {
	w.mu.Lock()
	x := w.first
	w.first, w.last = nil, nil
	w.mu.Unlock()

	var head, tail *Watch
	for x != nil {
		next := x.nextMarked
		x.nextMarked, x.nextTaken = nil, nil
		x.marked.Store(false)
		if x.part != nil {
			if tail == nil {
				head = x
			} else {
				tail.nextTaken = x
			}
			tail = x
		}
		x = next
	}
	return head
}

// Watch is the hook of a Waiter on one Partition. It is part of the object that
// wants to know, so that hanging it takes no memory. The zero value is ready.
type Watch struct {
	// Of is what the watch is part of, for the owner's use.
	Of any

	part       *Partition // owner's; nil when not hung
	waiter     *Waiter
	prev, next *Watch // guarded by part.mu
	marked     atomic.Bool
	nextMarked *Watch // guarded by waiter.mu while marked
	nextTaken  *Watch // owner's
}

// Hung tells whether the watch hangs on a partition.
func (x *Watch) Hung() bool { return x.part != nil }

// Next goes along the chain that Take has returned.
func (x *Watch) Next() *Watch { return x.nextTaken }

// Hang hooks the watch on p for w. What moves before Hang is not seen: look at
// p after hanging, not before. A watch hangs on one partition at a time.
func (x *Watch) Hang(w *Waiter, p *Partition) {
	x.waiter, x.part = w, p
	p.mu.Lock()
	x.prev, x.next = nil, p.watches
	if p.watches != nil {
		p.watches.prev = x
	}
	p.watches = x
	p.mu.Unlock()
}

// Drop unhooks the watch. No mark comes after it returns; one that came before
// is left out by the next Take.
func (x *Watch) Drop() {
	p := x.part
	if p == nil {
		return
	}
	p.mu.Lock()
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		p.watches = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	x.prev, x.next = nil, nil
	p.mu.Unlock()
	x.part = nil
}

// mark queues the watch and wakes its waiter, unless it is queued already.
func (x *Watch) mark() {
	if x.marked.Load() || !x.marked.CompareAndSwap(false, true) {
		return
	}
	w := x.waiter
	w.mu.Lock()
	if w.last == nil {
		w.first = x
	} else {
		w.last.nextMarked = x
	}
	w.last = x
	w.mu.Unlock()
	w.Wake()
}

// Wake sends a signal without marking anything.
func (w *Waiter) Wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// wake marks all watches that hang on the partition.
func (p *Partition) wake() {
	p.mu.Lock()
	for x := p.watches; x != nil; x = x.next {
		x.mark()
	}
	p.mu.Unlock()
}
