package records

import (
	"sync"
	"sync/atomic"
	"time"
)

// minGrant is the least that is granted, as a part of the limit: who is let in
// counts for something at once, so that many at a time do not pass the limit by far.
const minGrant = 512

// budget shares memory out among those who hold it for a while. Who comes late gets
// less, and nothing once all of it is held: then he may wait.
type budget struct {
	limit   int64
	used    atomic.Int64
	waiting atomic.Int32 // who is in wait

	mu    sync.Mutex
	freed chan struct{} // closed when some was given back; nil while nobody waits; guarded by mu
}

// take gives what is wanted, but no more than half of what is left; false if
// nothing is.
func (b *budget) take(want int) (int, bool) {
	for {
		used := b.used.Load()
		if used >= b.limit {
			return 0, false
		}
		grant := min(int64(want), max((b.limit-used)/2, b.limit/minGrant))
		if b.used.CompareAndSwap(used, used+grant) {
			return int(grant), true
		}
	}
}

// wait is take, as soon as somebody has given enough back; false when one of the
// stops comes before.
func (b *budget) wait(want int, hungUp, draining <-chan struct{}, late <-chan time.Time) (int, bool) {
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for {
		freed := b.nextFreed()
		if grant, ok := b.take(want); ok {
			return grant, true
		}
		select {
		case <-freed:
		case <-hungUp:
			return 0, false
		case <-draining:
			return 0, false
		case <-late:
			return 0, false
		}
	}
}

// nextFreed is closed when something is given back from now on.
func (b *budget) nextFreed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return b.freed
}

// change corrects what was taken by what it has turned out to be.
func (b *budget) change(by int) {
	b.used.Add(int64(by))
	if by >= 0 || b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
	b.mu.Unlock()
}

// spent tells whether all of it is held.
func (b *budget) spent() bool { return b.used.Load() >= b.limit }
