package protocol

import (
	"sync"
	"sync/atomic"
)

// budget bounds memory that many connections share. Whoever finds it spent
// waits in line; one that asks for more than the whole is let in alone.
type budget struct {
	limit int64
	used  atomic.Int64
	// waiting is the length of line, to be seen without mu.
	waiting atomic.Int32

	mu   sync.Mutex
	line []*budgetWaiter
}

type budgetWaiter struct {
	n       int64
	granted chan struct{}
}

// tryAcquire takes n bytes if they are there and nobody waits.
func (b *budget) tryAcquire(n int64) bool {
	return b.waiting.Load() == 0 && b.take(n)
}

func (b *budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if used > 0 && used+n > b.limit {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// acquire takes n bytes, waiting for them until one of the stops is closed.
func (b *budget) acquire(n int64, stop1, stop2 <-chan struct{}) bool {
	if b.tryAcquire(n) {
		return true
	}
	w := &budgetWaiter{n: n, granted: make(chan struct{})}
	b.mu.Lock()
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
	for i, other := range b.line {
		if other == w {
			b.line = append(b.line[:i], b.line[i+1:]...)
			b.grantLocked()
			return false
		}
	}
	// Granted in the meantime.
	b.used.Add(-n)
	b.grantLocked()
	return false
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	b.used.Add(-n)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	b.grantLocked()
	b.mu.Unlock()
}

// grantLocked lets in whom there is room for, in order.
//
// REQUIRES: mu held.
func (b *budget) grantLocked() {
	for len(b.line) > 0 && b.take(b.line[0].n) {
		close(b.line[0].granted)
		b.line[0] = nil
		b.line = b.line[1:]
	}
	b.waiting.Store(int32(len(b.line)))
}
