package commitlog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/mainstem/mainstem/log/vfs"
)

// Log is the shared commitlog. Open makes one, Recover readies it for appends, Close ends it. Its methods are safe for concurrent use
// after Recover.
type Log struct {
	o        Options
	fs       vfs.FS
	lock     io.Closer
	wasClean bool
	isNew    bool

	editing  chan struct{} // holds a token while the manifest is edited.
	sealTurn chan struct{} // holds a token while filled segments are listed as sealed.
	manifest atomic.Pointer[manifest]
	set      atomic.Pointer[segmentSet]
	ring     *ring
	usable   int64 // bytes of the ring that may be unwritten or reserved.

	// What committers and readers see, stored after OnCommit returned.
	written, durable, next atomic.Uint64
	counts                 counters
	reserveUsers           atomic.Int32 // who has taken the reserve away and writes into its room.
	waiterPool             sync.Pool
	buffers                bufferPools
	files                  openFiles

	done      chan struct{} // closed by poison.
	stop      chan struct{} // closed by Close.
	wakeups   wakeups
	running   sync.WaitGroup
	notifying sync.Mutex // held around OnCommit; taken before mu.

	mu       sync.Mutex
	poisoned error
	accept   bool     // between Recover and Close.
	refused  error    // why clients are refused.
	opening  *opening // an edit that must be made before anything is placed.

	// The append position.
	cur       *segment
	pos       int64 // in cur's file.
	at        cursor
	ready     []*segment // prepared, in LSN order.
	unindexed int        // segments that were closed and have no index yet.

	// Room.
	reservedBytes  int64 // of frames that may still be placed.
	reservedFrames int
	unwritten      int64 // bytes of the ring that are placed and not written.
	queue          []*reserver
	idleReservers  []*reserver

	// Groups and who waits for them.
	groupID       uint64
	openGroup     *group
	closed        []*group // closed since their segment ended; before open.
	unsynced      []*group // written and not synced.
	reporting     []*group // scratch of reportSynced; guarded by notifying.
	idleGroups    []*group
	unsyncedBytes int64
	syncSoon      bool // the background writer has a timer for what is only written.
	syncDue       bool // the next round syncs.
	writing       bool // somebody has the writer's role.
	kicked        bool
	waiters       []*waiter
	writtenLSN    LSN // ahead of the atomic ones while OnCommit runs.
	durableLSN    LSN

	// Work for the keeper.
	sealing      []*segment // filled and synced.
	unreferenced []*segment
	recyclable   []*segment // at most maxRecyclable files that wait for a new life.

	iov  [][]byte // the writer's.
	zero [pageSize]byte
}

// counters count what happened.
type counters struct {
	groups, syncs, bytes, frames, ringHits, diskReads atomic.Uint64
}

// wakeups are the signals to the two goroutines of the log; a signal that is already there is enough.
type wakeups struct {
	writer, keeper chan struct{}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Log) wakeWriter() { signal(l.wakeups.writer) }
func (l *Log) wakeKeeper() { signal(l.wakeups.keeper) }

// path returns the name of a file in the data directory.
func (l *Log) path(name string) string { return filepath.Join(l.o.Dir, name) }

// Durable returns the end of what is synced and was reported.
func (l *Log) Durable() LSN { return LSN(l.durable.Load()) }

// Written returns the end of what is written and was reported.
func (l *Log) Written() LSN { return LSN(l.written.Load()) }

// Next returns the end of what is placed.
func (l *Log) Next() LSN { return LSN(l.next.Load()) }

// Done is closed when the log is poisoned.
func (l *Log) Done() <-chan struct{} { return l.done }

// Poisoned returns what poisoned the log, nil if nothing did. It wraps ErrPoisoned.
func (l *Log) Poisoned() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.poisoned
}

// MaxPayload returns the largest payload that can be reserved.
func (l *Log) MaxPayload() int {
	room := min(l.usable, alignUp(l.o.SegmentBytes, pageSize)-dataStart-frameHeader)
	return int(room)&^(frameAlign-1) - frameHeader - frameAlign
}

// poison ends the log: a write or a sync failed, so that nobody knows what a crash would leave. It is final.
func (l *Log) poison(cause error) {
	l.mu.Lock()
	if l.poisoned != nil {
		l.mu.Unlock()
		return
	}
	l.poisoned = fmt.Errorf("%w: %w", ErrPoisoned, cause)
	for _, w := range l.waiters {
		w.wake <- wakeCheck
	}
	l.waiters = l.waiters[:0]
	l.grantLocked()
	err := l.poisoned
	l.mu.Unlock()
	close(l.done)
	if l.o.Events.Poisoned != nil {
		l.o.Events.Poisoned(err)
	}
}

// Close commits everything, marks the log clean and closes its files. The caller has no reservation, wait or pin left. A poisoned log
// stays unclean, so that the next open scans its tail.
func (l *Log) Close() error {
	l.mu.Lock()
	accepted := l.accept
	l.accept = false
	l.grantLocked()
	upto := l.nextLocked()
	l.mu.Unlock()
	var err error
	if accepted {
		err = l.Commit(upto, Synced)
	}
	close(l.stop)
	l.running.Wait()
	if accepted && err == nil {
		err = l.closeClean()
	}
	return errors.Join(err, l.closeFiles())
}

// closeClean writes the manifest of a clean stop.
func (l *Log) closeClean() error {
	err := l.finishOpening() // Else the tail that recovery found would pass for empty.
	if err == nil {
		err = l.sealFilled()
	}
	if err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	l.mu.Lock()
	var last segmentRow
	if l.cur != nil {
		last = l.cur.row()
	}
	l.mu.Unlock()
	err = l.edit(func(m *manifest) {
		m.clean = true
		if r := m.row(last.id); r != nil {
			r.end, r.frames = last.end, last.frames
		}
	})
	if err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

// closeFiles closes all that is open. REQUIRES: nobody uses the log.
func (l *Log) closeFiles() error {
	var errs []error
	for _, s := range l.set.Load().list {
		errs = append(errs, s.closeFile())
	}
	for _, s := range append(l.recyclable, l.unreferenced...) {
		errs = append(errs, s.closeFile())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

// Stats returns counters and gauges.
func (l *Log) Stats() Stats {
	s := Stats{
		Next: l.Next(), Written: l.Written(), Durable: l.Durable(),
		Groups: l.counts.groups.Load(), Syncs: l.counts.syncs.Load(), BytesWritten: l.counts.bytes.Load(),
		FramesPlaced: l.counts.frames.Load(), RingHits: l.counts.ringHits.Load(), DiskReads: l.counts.diskReads.Load(),
	}
	set := l.set.Load()
	s.Segments = len(set.list)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seg := range set.list {
		s.SegmentBytes += seg.space()
	}
	for _, seg := range l.recyclable {
		s.SegmentBytes += seg.space()
	}
	s.Refused = l.refused
	return s
}
