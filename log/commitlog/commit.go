package commitlog

import (
	"fmt"
	"runtime"
	"time"
)

// How frames reach the disk. Placed frames collect in the open group. One goroutine at a time has the writer's role (Log.writing): it
// closes the group, waits for copies into it that are under way, writes it with one call, syncs the file if a frame or a waiter wants
// it, reports it by OnCommit, and releases those who waited. Meanwhile the next group fills. The role goes to
//
//   - whoever waits when nobody has it: a lone caller appends, writes and syncs without another goroutine;
//   - the first of those who wait for the next group, handed over after those of this one were released; it lets them go first, since
//     while it sits in the sync they could not run on its processor, and their next requests may still join the group;
//   - the background writer, for groups that nobody waits for.
//
// A failed write or sync poisons the log: everybody who waits gets the error, and nothing is written any more.

// maxMergedTouches bounds what one report of groups that were joined lists.
const maxMergedTouches = 1024

// longReport is how many partitions a report may list for the role to be handed over after it: the next write need not wait for a longer
// one.
const longReport = 256

// wake is what a waiter is told.
type wake uint8

const (
	wakeCheck wake = iota // look again: it is done, or the log is poisoned.
	wakeLead              // the writer's role is yours.
)

// waiter waits for a commit.
type waiter struct {
	upto LSN
	need Durability
	wake chan wake
}

// Commit returns when everything below upto is written, or synced, and was reported by OnCommit; upto comes from Place.End. Waiting for
// Written is for frames that were reserved with it: others are reported when they are synced. After a failed write or sync Commit
// returns ErrPoisoned for all that was not committed before.
func (l *Log) Commit(upto LSN, need Durability) error {
	for leading := false; leading || !l.reached(upto, need); {
		l.mu.Lock()
		var w *waiter
		var err error
		switch {
		case l.poisoned != nil:
			err = l.poisoned
		case upto > l.nextLocked():
			err = fmt.Errorf("commit up to %d: the log ends at %d: %w", upto, l.nextLocked(), ErrUsage)
		case l.reachedLocked(upto, need): // Its report is under way, or was made just now.
			if !l.reached(upto, need) {
				w = l.enqueueLocked(upto, need)
			}
		case leading || !l.writing:
			l.writing = true
			leading = l.roundLocked(upto, need)
		default:
			w = l.enqueueLocked(upto, need)
		}
		l.mu.Unlock()
		if err != nil {
			return err
		}
		if w != nil {
			leading = <-w.wake == wakeLead
			l.waiterPool.Put(w)
			if leading {
				runtime.Gosched()
			}
		}
	}
	return nil
}

// reached reports whether a commit was reported.
func (l *Log) reached(upto LSN, need Durability) bool {
	if need == Synced {
		return l.Durable() >= upto
	}
	return l.Written() >= upto
}

// reachedLocked reports whether a commit has happened; it may not be reported yet. REQUIRES: mu held.
func (l *Log) reachedLocked(upto LSN, need Durability) bool {
	if need == Synced {
		return l.durableLSN >= upto
	}
	return l.writtenLSN >= upto
}

// enqueueLocked has the caller told when its commit was reported, or when the writer's role comes to it. REQUIRES: mu held.
func (l *Log) enqueueLocked(upto LSN, need Durability) *waiter {
	w, ok := l.waiterPool.Get().(*waiter)
	if !ok {
		w = &waiter{wake: make(chan wake, 1)}
	}
	w.upto, w.need = upto, need
	l.waiters = append(l.waiters, w)
	return w
}

// releaseLocked wakes those whose commit was reported. REQUIRES: mu held.
func (l *Log) releaseLocked() {
	kept := l.waiters[:0]
	for _, w := range l.waiters {
		if l.reached(w.upto, w.need) {
			w.wake <- wakeCheck
		} else {
			kept = append(kept, w)
		}
	}
	l.waiters = kept
}

// handOverLocked gives the writer's role to the first who still needs it, or to nobody. REQUIRES: mu held, the role is the caller's.
func (l *Log) handOverLocked() {
	l.writing = false
	if l.poisoned != nil {
		return
	}
	for i, w := range l.waiters {
		if !l.reachedLocked(w.upto, w.need) {
			l.waiters = append(l.waiters[:i], l.waiters[i+1:]...)
			l.writing = true
			w.wake <- wakeLead
			return
		}
	}
	if l.kicked || len(l.closed) > 0 || len(l.unsynced) > 0 && !l.syncSoon {
		l.wakeWriter()
	}
}

// roundLocked writes one group, syncs it if that is wanted, and reports it. It gives the role on unless the commit that the caller
// waits for has not happened yet, and reports whether it kept it. REQUIRES: mu held, which is given up meanwhile; the role is ours.
func (l *Log) roundLocked(upto LSN, need Durability) (kept bool) {
	began := time.Now()
	g := l.takeGroupLocked()
	if g != nil {
		l.mu.Unlock()
		err := l.write(g)
		if err == nil && g.async {
			l.reportWritten(g)
			l.mu.Lock()
		} else {
			l.mu.Lock()
			if err != nil {
				l.failLocked(err)
				return false
			}
			l.wroteLocked(g)
		}
	}
	if len(l.unsynced) == 0 || !l.syncWantedLocked(upto, need) {
		if l.reachedLocked(upto, need) || g == nil {
			l.handOverLocked()
			return false
		}
		return true
	}
	seg, bytes := l.unsynced[len(l.unsynced)-1].seg, l.unsyncedBytes
	l.mu.Unlock()
	err := l.sync(seg)
	if err == nil && l.o.Events.Synced != nil {
		l.o.Events.Synced(time.Since(began), bytes)
	}
	if err == nil {
		return l.reportSynced(upto, need)
	}
	l.mu.Lock()
	l.failLocked(err)
	return false
}

// failLocked poisons the log and gives up the role. REQUIRES: mu held; it is given up meanwhile.
func (l *Log) failLocked(err error) {
	l.mu.Unlock()
	l.poison(err)
	l.mu.Lock()
	l.writing = false
}

// takeGroupLocked takes the oldest group that is not written, nil if there is none. REQUIRES: mu held.
func (l *Log) takeGroupLocked() *group {
	if len(l.closed) > 0 {
		g := l.closed[0]
		l.closed = l.closed[:copy(l.closed, l.closed[1:])]
		return g
	}
	g := l.openGroup
	l.openGroup = nil
	l.kicked = false
	return g
}

// write writes a group with one call, up to the end of a page: what lies behind the last frame is dead anyway, and the system need
// not read the page to fill it up.
func (l *Log) write(g *group) error {
	g.waitCopied()
	l.iov = l.ring.slices(l.iov[:0], g.start, g.to-g.from)
	if pad := alignUp(g.to, pageSize) - g.to; pad > 0 {
		l.iov = append(l.iov, l.zero[:pad])
	}
	var want int
	for _, b := range l.iov {
		want += len(b)
	}
	f, err := l.handle(g.seg)
	if err != nil {
		return err
	}
	n, err := f.WritevAt(l.iov, g.from)
	if err == nil && n != want {
		err = fmt.Errorf("short write: %d of %d bytes", n, want)
	}
	if err != nil {
		return fmt.Errorf("write segment %v: %w", g.seg.id, err)
	}
	l.counts.groups.Add(1)
	l.counts.bytes.Add(uint64(g.to - g.from))
	return nil
}

// sync makes all that was written to a segment durable.
func (l *Log) sync(s *segment) error {
	f, err := l.handle(s)
	if err == nil {
		err = f.SyncData()
	}
	if err != nil {
		return fmt.Errorf("sync segment %v: %w", s.id, err)
	}
	l.counts.syncs.Add(1)
	return nil
}

// wroteLocked notes that a group is written: its memory may be overtaken. REQUIRES: mu held.
func (l *Log) wroteLocked(g *group) {
	l.writtenLSN = g.lsn()
	l.unwritten -= g.to - g.from + g.waste
	l.unsynced = append(l.unsynced, g)
	l.unsyncedBytes += g.to - g.from
	if len(l.queue) > 0 {
		l.grantLocked()
	}
}

// syncWantedLocked reports whether what is written must be synced now: a frame of it wants it, its segment ends, somebody waits for
// it, or too much has gathered. REQUIRES: mu held.
func (l *Log) syncWantedLocked(upto LSN, need Durability) bool {
	if l.syncDue || l.unsyncedBytes >= int64(l.o.AsyncBytes) || need == Synced && upto > l.durableLSN && upto <= l.writtenLSN {
		return true
	}
	if g := l.unsynced[len(l.unsynced)-1]; g.sync || g.last { // Those before it would have been synced at once.
		return true
	}
	for _, w := range l.waiters {
		if w.need == Synced && w.upto > l.durableLSN && w.upto <= l.writtenLSN {
			return true
		}
	}
	return false
}

// reportWritten tells the owner of a group with frames that need no sync that it is written, and releases those who waited for that.
func (l *Log) reportWritten(g *group) {
	l.notifying.Lock()
	defer l.notifying.Unlock()
	l.mu.Lock()
	l.wroteLocked(g)
	l.mu.Unlock()
	if l.o.OnCommit != nil {
		l.o.OnCommit(Commit{Upto: g.lsn(), Touched: g.touched})
	}
	l.written.Store(uint64(g.lsn()))
	l.mu.Lock()
	l.releaseLocked()
	l.mergeUnsyncedLocked()
	l.mu.Unlock()
}

// mergeUnsyncedLocked joins the newest group that is only written with the one before it, so that a stream of small ones does not pile
// up until the next sync. REQUIRES: mu held, the role is the caller's.
func (l *Log) mergeUnsyncedLocked() {
	n := len(l.unsynced)
	if n < 2 {
		return
	}
	into, g := l.unsynced[n-2], l.unsynced[n-1]
	if g.sync || g.last || into.seg != g.seg || len(into.touched) > maxMergedTouches {
		return
	}
	for _, t := range g.touched {
		if k := len(into.touched); k > 0 && into.touched[k-1].Tag == t.Tag {
			into.touched[k-1] = t
		} else {
			into.touched = append(into.touched, t)
		}
	}
	into.to = g.to
	l.unsynced = l.unsynced[:n-1]
	l.recycleGroupLocked(g)
}

// reportSynced tells the owner what is durable now, releases those who waited for that, and hands the role over, before a long report
// even sooner; the lock keeps the reports in order. It returns with mu held.
func (l *Log) reportSynced(upto LSN, need Durability) (kept bool) {
	l.notifying.Lock()
	defer l.notifying.Unlock()
	l.mu.Lock()
	groups := l.reporting[:0]
	groups = append(groups, l.unsynced...)
	l.unsynced, l.unsyncedBytes, l.syncDue = l.unsynced[:0], 0, false
	end := groups[len(groups)-1].lsn()
	l.durableLSN = end
	kept = !l.reachedLocked(upto, need)
	owed := !kept && !long(groups)
	if !kept && !owed {
		l.handOverLocked()
	}
	l.mu.Unlock()
	if l.o.OnCommit != nil {
		for _, g := range groups {
			l.o.OnCommit(Commit{Upto: g.lsn(), Synced: true, Touched: g.touched})
		}
	}
	l.written.Store(max(uint64(end), l.written.Load()))
	l.durable.Store(uint64(end))
	l.mu.Lock()
	l.releaseLocked()
	if owed {
		l.handOverLocked()
	}
	for _, g := range groups {
		if g.last {
			l.sealing = append(l.sealing, g.seg)
			l.wakeKeeper()
		}
		l.recycleGroupLocked(g)
	}
	l.reporting = groups[:0]
	return kept
}

// long reports whether the report of groups takes long.
func long(groups []*group) bool {
	n := 0
	for _, g := range groups {
		n += len(g.touched)
	}
	return n > longReport
}
