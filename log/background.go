package log

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

const (
	// checkpointGrowth is by how many times a checkpoint's size the log grows
	// before the next one is written.
	checkpointGrowth = 20
	// retryDelay is how long background work that failed waits.
	retryDelay = time.Second
)

// background is the store's one goroutine: it writes the indexes of sealed
// segments, checkpoints, and frees dead segments.
type background struct {
	checkpointBytes atomic.Int64
	checkpointLSN   atomic.Uint64
	live            []queue.LiveBytes // from the checkpoint, until the goroutine runs

	wake    chan struct{}
	quit    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	pending []*segment // sealed, without an index; in the order of the log
	broken  []*segment // with an index that turned out to be damaged
	collect bool
}

func (b *background) init() {
	b.wake, b.quit = make(chan struct{}, 1), make(chan struct{})
}

// start runs the goroutine until stop.
func (b *background) start(s *Store) {
	for _, l := range b.live {
		for _, seg := range s.segments.all() {
			if seg.id == l.Segment {
				seg.live.Store(l.Bytes)
			}
		}
	}
	b.live = nil
	b.running.Add(1)
	go b.run(s)
}

// stop ends the goroutine and waits for it.
func (b *background) stop() {
	close(b.quit)
	b.running.Wait()
}

func (b *background) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// pend queues a sealed segment for its index.
func (b *background) pend(seg *segment) {
	b.mu.Lock()
	for _, p := range b.pending {
		if p == seg {
			b.mu.Unlock()
			return
		}
	}
	b.pending = append(b.pending, seg)
	b.mu.Unlock()
	b.signal()
}

// mend queues a segment whose index is damaged.
func (b *background) mend(seg *segment) {
	b.mu.Lock()
	for _, p := range b.broken {
		if p == seg {
			b.mu.Unlock()
			return
		}
	}
	b.broken = append(b.broken, seg)
	b.mu.Unlock()
	b.signal()
}

// checkpointed notes the newest checkpoint.
func (b *background) checkpointed(size int64, upto commitlog.LSN) {
	b.checkpointBytes.Store(size)
	b.checkpointLSN.Store(uint64(upto))
}

// onSeal is called by the log for each segment that it closed.
func (s *Store) onSeal(i commitlog.SegmentInfo) { s.background.pend(s.segments.add(i)) }

// wakeCollector has dead segments looked for.
func (s *Store) wakeCollector() {
	s.background.mu.Lock()
	s.background.collect = true
	s.background.mu.Unlock()
	s.background.signal()
}

func (b *background) run(s *Store) {
	defer b.running.Done()
	timer := time.NewTimer(retryDelay)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-b.wake:
		case <-timer.C:
		}
		if err := b.work(s); err != nil && s.log.Poisoned() == nil {
			s.failed("index segments", err)
			timer.Reset(retryDelay)
		}
	}
}

// work does all that is due.
func (b *background) work(s *Store) error {
	for {
		b.mu.Lock()
		var seg *segment
		if len(b.pending) > 0 {
			seg = b.pending[0]
		}
		b.mu.Unlock()
		if seg == nil || s.closed.Load() {
			break
		}
		if err := s.index(seg); err != nil {
			return err
		}
		b.mu.Lock()
		b.pending = b.pending[1:]
		b.mu.Unlock()
		if err := s.checkpointIfDue(); err != nil {
			return err
		}
	}
	if err := b.mendAll(s); err != nil {
		return err
	}
	b.mu.Lock()
	collect := b.collect
	b.mu.Unlock()
	if !collect || s.closed.Load() {
		return nil
	}
	if err := s.collect(); err != nil {
		return err
	}
	b.mu.Lock()
	b.collect = false
	b.mu.Unlock()
	return nil
}

// mendAll rebuilds damaged indexes.
func (b *background) mendAll(s *Store) error {
	for {
		b.mu.Lock()
		var seg *segment
		if len(b.broken) > 0 {
			seg = b.broken[0]
		}
		b.mu.Unlock()
		if seg == nil || s.closed.Load() {
			return nil
		}
		if err := s.rebuild(seg); err != nil {
			return err
		}
		b.mu.Lock()
		b.broken = b.broken[1:]
		b.mu.Unlock()
	}
}

// checkpointIfDue writes a checkpoint when the log has grown enough.
func (s *Store) checkpointIfDue() error {
	grown := uint64(s.log.Next()) - s.background.checkpointLSN.Load()
	if grown < uint64(checkpointGrowth*s.background.checkpointBytes.Load()) {
		return nil
	}
	return s.checkpoint(false)
}
