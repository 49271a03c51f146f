package txns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
)

const (
	// maxRuns is how many groups of transactions are written at a time: while one
	// waits for the disk the next one's markers are appended.
	maxRuns = 4
	// A marker that cannot be written is tried again after minRest, then after
	// twice as long, up to maxRest.
	minRest = 50 * time.Millisecond
	maxRest = 5 * time.Second
	// markerPatience bounds the wait for replicas until it is looked again whether
	// this broker leads at all.
	markerPatience = 30 * time.Second
)

// writer writes the markers of transactions whose end is decided. Its goroutines
// exist while there is something to write.
type writer struct {
	h       *Handlers
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	runs   int
	queue  []*ending
	// known are the endings that are not complete, by transactional id. What a
	// shard tells of again after it was loaded is among them.
	known map[string]*ending
}

// ending is a decided transaction on its way to completion.
type ending struct {
	txn.Ending
	left  []txn.Place // without a marker
	rest  time.Duration
	timer *time.Timer // of the next try, nil before the first failure
}

func newWriter(h *Handlers) *writer {
	w := &writer{h: h, known: make(map[string]*ending)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// add takes a decided transaction. It does not wait.
func (w *writer) add(e txn.Ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.known[e.ID]; old != nil && old.Producer == e.Producer && old.Commit == e.Commit {
		return
	}
	x := &ending{Ending: e, left: e.Places, rest: minRest}
	w.known[e.ID] = x
	w.queueLocked(x)
}

// queueLocked has an ending worked on. REQUIRES: mu held.
func (w *writer) queueLocked(x *ending) {
	if w.closed {
		return
	}
	w.queue = append(w.queue, x)
	if w.runs < maxRuns {
		w.runs++
		w.running.Go(w.run)
	}
}

// run writes until nothing is queued.
func (w *writer) run() {
	for {
		w.mu.Lock()
		group := w.queue
		w.queue = nil
		if len(group) == 0 || w.closed {
			w.runs--
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		w.write(group)
	}
}

// write writes the markers of a group of transactions, and completes those that
// have all of them.
func (w *writer) write(group []*ending) {
	group = slices.DeleteFunc(group, func(x *ending) bool { return !w.mine(x) })
	batch := &marks{h: w.h}
	of := make([][]*mark, len(group))
	for i, x := range group {
		of[i] = w.append(batch, x)
	}
	batch.wait(w.ctx, markerPatience, w.ctx.Done())
	for i, x := range group {
		x.left = nil
		var failed error
		for _, m := range of[i] {
			if !m.settled() {
				x.left = append(x.left, m.place)
				failed = m.err
				continue
			}
			if errors.Is(m.err, kerr.InvalidProducerEpoch) {
				w.h.logger.Warn("partition has records of a newer producer epoch, the marker was left out",
					zap.String("transactional_id", x.ID), zap.String("topic", m.place.Topic), zap.Int32("partition", m.place.Partition))
			}
		}
		if failed != nil {
			w.later(x, failed)
			continue
		}
		w.complete(x)
	}
}

// append appends the markers that are left.
func (w *writer) append(batch *marks, x *ending) []*mark {
	epoch := w.h.runtime.Leads(x.Shard)
	var list []*mark
	for _, place := range x.left {
		m := &mark{place: place, raised: x.Bumped, marker: coordinator.Marker{
			Producer: x.Producer, Commit: x.Commit, CoordinatorEpoch: epoch,
		}}
		batch.append(m)
		list = append(list, m)
	}
	return list
}

// mine tells whether the transaction is still this broker's to end, and forgets it
// if it is not: who leads now has read of it in the log. Another end of the same id
// may have taken its place, which must not be completed in its stead.
func (w *writer) mine(x *ending) bool {
	w.mu.Lock()
	current := w.known[x.ID] == x
	w.mu.Unlock()
	if current && w.h.runtime.Leads(x.Shard) < 0 {
		w.forget(x)
		return false
	}
	return current
}

// complete has the shard note that all markers are written.
func (w *writer) complete(x *ending) {
	if w.h.runtime.Leads(x.Shard) < 0 {
		w.forget(x) // Who leads now has read of it in the log.
		return
	}
	w.h.runtime.Shard(x.Shard).Do(&completion{w, x})
}

// completion is the turn that completes a transaction.
type completion struct {
	w *writer
	x *ending
}

// Run completes the transaction. It is known until that is committed: the shard may
// have been replaced by one that has read of it before.
func (c *completion) Run(m *txn.Machine, t *coordinator.Turn) {
	m.Ended(t, c.x.Ending)
	t.Reply(func(err error) {
		if err != nil {
			c.w.later(c.x, err)
			return
		}
		c.w.forget(c.x)
	})
}

// Fail tries again: the shard may be loading.
func (c *completion) Fail(err error) { c.w.later(c.x, err) }

// forget ends the work on an ending.
func (w *writer) forget(x *ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[x.ID] == x {
		delete(w.known, x.ID)
	}
}

// later tries again after a rest.
func (w *writer) later(x *ending, cause error) {
	if w.h.runtime.Leads(x.Shard) < 0 {
		w.forget(x)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.known[x.ID] != x {
		return
	}
	if x.timer == nil {
		w.h.logger.Info("markers of a transaction could not be written yet; it is tried again",
			zap.String("transactional_id", x.ID), zap.Int("partitions", len(x.left)), zap.Error(cause))
	}
	x.timer = time.AfterFunc(x.rest, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queueLocked(x)
	})
	x.rest = min(2*x.rest, maxRest)
}

// close ends the work. What is not complete is found in the log by whoever leads
// its shard next.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	for _, x := range w.known {
		if x.timer != nil {
			x.timer.Stop()
		}
	}
	clear(w.known)
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
}
