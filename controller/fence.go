package controller

import (
	"sync"
	"sync/atomic"
	"time"
)

// fence knows until when this broker may act. Its answer depends on the clock alone, so it holds even if every goroutine
// of the process stood still until now.
type fence struct {
	grant atomic.Pointer[grant] // nil = fenced
	kick  chan struct{}         // holds one token after a change
	stop  chan struct{}
	once  sync.Once

	mu        sync.Mutex
	listeners []func(bool)
	ended     bool // for good
}

// grant is one renewal.
type grant struct {
	asked time.Time // before etcd was asked
	life  time.Duration
}

func newFence() *fence {
	return &fence{kick: make(chan struct{}, 1), stop: make(chan struct{})}
}

// fenced tells whether the grant has ended. The monotonic clock stands still while the machine sleeps, the wall clock may be set back:
// whichever is ahead counts. A wall clock that is set forward fences until the next renewal, which is soon.
func (f *fence) fenced() bool {
	g := f.grant.Load()
	return g == nil || g.left(time.Now()) <= 0
}

func (g *grant) left(now time.Time) time.Duration {
	return g.life - max(now.Sub(g.asked), now.Round(0).Sub(g.asked.Round(0)))
}

// renew lets the broker act until a tenth of ttl before the end of ttl after asked.
func (f *fence) renew(asked time.Time, ttl time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.grant.Store(&grant{asked: asked, life: ttl - ttl/10})
	f.poke()
}

// drop fences now.
func (f *fence) drop() {
	f.grant.Store(nil)
	f.poke()
}

// end fences for good. run tells the listeners and returns.
func (f *fence) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.drop()
	f.once.Do(func() { close(f.stop) })
}

func (f *fence) poke() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

func (f *fence) listen(fn func(bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, fn)
}

// run tells the listeners of changes until the fence has ended.
func (f *fence) run() {
	was := true
	deadline := time.NewTimer(time.Hour)
	defer deadline.Stop()
	for {
		if is := f.fenced(); is != was {
			was = is
			f.tell(is)
		}
		deadline.Reset(time.Hour)
		if g := f.grant.Load(); g != nil {
			deadline.Reset(max(g.left(time.Now()), 0) + time.Millisecond)
		}
		select {
		case <-f.kick:
		case <-deadline.C:
		case <-f.stop:
			if !was {
				f.tell(true)
			}
			return
		}
	}
}

func (f *fence) tell(fenced bool) {
	f.mu.Lock()
	listeners := f.listeners[:len(f.listeners):len(f.listeners)]
	f.mu.Unlock()
	for _, fn := range listeners {
		fn(fenced)
	}
}
