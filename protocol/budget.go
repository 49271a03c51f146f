package protocol

import (
	"slices"
	"sync"
	"sync/atomic"
)

// smallBytes is what a request may take without waiting for those that take
// more.
const smallBytes = 64 << 10

// budget bounds memory that many connections share. Whoever finds it spent waits
// in line. Small amounts are let in up to twice the limit, so that large requests
// do not hold up the small ones.
//
// A request may take more while it holds some already, so all could wait for each
// other. Therefore one of them at a time, the owner, may go beyond the limit as
// far as it needs: it will end, and give everything back.
type budget struct {
	limit int64
	used  atomic.Int64
	// waiting is the length of line, to be seen without mu.
	waiting atomic.Int32

	// owner is changed under mu.
	owner atomic.Pointer[Call]

	mu   sync.Mutex
	line []*budgetWaiter
}

type budgetWaiter struct {
	call    *Call
	n       int64
	granted chan struct{}
}

// take takes n bytes if no more than bound are taken then.
func (b *budget) take(n, bound int64) bool {
	for {
		used := b.used.Load()
		if used+n > bound {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// tryAcquire takes n bytes for a call if that needs no waiting.
func (b *budget) tryAcquire(n int64) bool {
	if n <= smallBytes {
		return b.take(n, 2*b.limit)
	}
	return b.waiting.Load() == 0 && b.take(n, b.limit)
}

// acquire takes n bytes for a call, waiting for them until one of the stops is
// closed.
func (b *budget) acquire(call *Call, n int64, stop1, stop2 <-chan struct{}) bool {
	w := &budgetWaiter{call: call, n: n, granted: make(chan struct{})}
	b.mu.Lock()
	if b.owner.Load() == call {
		b.used.Add(n)
		b.mu.Unlock()
		return true
	}
	b.line = append(b.line, w)
	b.waiting.Store(int32(len(b.line)))
	b.grantLocked()
	b.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-stop1:
	case <-stop2:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.line, w); i >= 0 {
		b.line = slices.Delete(b.line, i, i+1)
	} else {
		b.used.Add(-n) // granted in the meantime
		b.owner.CompareAndSwap(call, nil)
	}
	b.grantLocked()
	return false
}

// release gives back all that a call has taken.
func (b *budget) release(call *Call, n int64) {
	b.used.Add(-n)
	if b.waiting.Load() == 0 && b.owner.Load() != call {
		return
	}
	b.mu.Lock()
	b.owner.CompareAndSwap(call, nil)
	b.grantLocked()
	b.mu.Unlock()
}

// grantLocked lets in whom there is room for, in order.
//
// REQUIRES: mu held.
func (b *budget) grantLocked() {
	for len(b.line) > 0 {
		w := b.line[0]
		if !b.take(w.n, b.limit) {
			if b.owner.Load() != nil {
				break
			}
			b.owner.Store(w.call)
			b.used.Add(w.n)
		}
		close(w.granted)
		b.line = slices.Delete(b.line, 0, 1)
	}
	b.waiting.Store(int32(len(b.line)))
}
