package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/mainstem/mainstem/log/vfs"
)

// healEvery is how often a log that refuses clients looks whether it can serve them again.
const healEvery = time.Second

// keeper is the one goroutine for what appends must not wait for: it readies the next segment, lists filled ones as sealed, frees
// dropped ones and restores the reserve.
func (l *Log) keeper() {
	defer l.running.Done()
	timer := time.NewTimer(healEvery)
	timer.Stop()
	for {
		select {
		case <-l.stop:
			timer.Stop()
			return
		case <-l.wakeups.keeper:
		case <-timer.C:
		}
		if l.keep() != nil {
			timer.Reset(healEvery)
		}
	}
}

// keep does what there is to do, and returns what must be tried again later.
func (l *Log) keep() error {
	if l.Poisoned() != nil {
		return nil // The manifest on disk may not be the one in memory: no file is touched any more.
	}
	l.free()
	err := l.finishOpening()
	if err == nil {
		err = l.sealFilled()
	}
	if err == nil {
		err = l.provide()
	}
	if l.Poisoned() != nil {
		return nil
	}
	l.trim()
	l.refuse(err)
	return err
}

// trimFraction is which part of a segment may stay unused behind its end.
const trimFraction = 16

// trim gives the unused space of segments that were sealed early, by recovery or Seal, back to the system. Such a file is shorter than
// others and is not recycled.
func (l *Log) trim() {
	for _, s := range l.set.Load().list {
		l.mu.Lock()
		size := alignUp(s.end.Load(), pageSize)
		wanted := s.sealed && s.kind == kindFrames && s.trimmedTo == 0 && s.capacity-size > l.o.SegmentBytes/trimFraction
		l.mu.Unlock()
		if !wanted {
			continue
		}
		f, err := l.fs.OpenRW(l.path(s.name))
		if err == nil {
			err = errors.Join(f.Truncate(size), f.Close())
		}
		l.report("give back unused space", err)
		l.mu.Lock()
		s.trimmedTo = size
		l.mu.Unlock()
	}
}

// refuse has clients refused with an error, or served again with nil, and tells those who wait for room.
func (l *Log) refuse(err error) {
	l.mu.Lock()
	changed := (err == nil) != (l.refused == nil)
	l.refused = err
	l.grantLocked()
	l.mu.Unlock()
	if changed && l.o.Events.DiskFull != nil {
		l.o.Events.DiskFull(err)
	}
}

// sealFilled lists segments that are filled and synced as sealed, and reports them.
func (l *Log) sealFilled() error {
	l.sealTurn <- struct{}{}
	defer func() { <-l.sealTurn }()
	l.mu.Lock()
	segs := append([]*segment(nil), l.sealing...)
	rows := make([]segmentRow, len(segs))
	for i, s := range segs {
		rows[i] = s.row()
		rows[i].sealed = true
	}
	l.mu.Unlock()
	if len(segs) == 0 {
		return nil
	}
	err := l.edit(func(m *manifest) {
		for _, row := range rows {
			if r := m.row(row.id); r != nil {
				*r = row
			}
		}
	})
	if err != nil {
		return fmt.Errorf("seal segment: %w", err)
	}
	l.mu.Lock()
	for _, s := range segs {
		s.sealed = true
	}
	l.sealing = l.sealing[:copy(l.sealing, l.sealing[len(segs):])]
	l.mu.Unlock()
	for _, s := range segs {
		l.files.opened(s)
	}
	for i := range rows {
		if l.o.OnSeal != nil {
			l.o.OnSeal(rows[i].info())
		}
	}
	return nil
}

// provide sees to it that a segment waits behind the current one, that the reserve is there, and that others find disk space. What it
// cannot do is why clients are refused.
func (l *Log) provide() error {
	if l.reserveUsers.Load() > 0 {
		return fmt.Errorf("restore reserve: it is in use: %w", ErrDiskFull) // They wake the keeper again; until then the room is theirs.
	}
	if err := l.restoreReserve(); err != nil {
		return l.provideSmall(err)
	}
	l.mu.Lock()
	have := slices.ContainsFunc(l.ready, func(s *segment) bool { return s.capacity >= l.o.SegmentBytes })
	l.mu.Unlock()
	if have {
		return l.checkFree(0)
	}
	err := l.prepare(l.o.SegmentBytes)
	if err == nil {
		return l.checkFree(0)
	}
	return l.provideSmall(err)
}

// checkFree reports whether others find enough disk space when so much more is taken.
func (l *Log) checkFree(more int64) error {
	if l.o.MinFree < 0 {
		return nil
	}
	free, _, err := l.fs.Space(l.o.Dir)
	if err != nil {
		return fmt.Errorf("ask for disk space: %w", err)
	}
	if free < uint64(l.o.MinFree)+uint64(more) {
		return fmt.Errorf("%d bytes are free, %d more must stay so: %w", free, uint64(l.o.MinFree)+uint64(more)-free, ErrDiskFull)
	}
	return nil
}

// provideSmall readies a small segment for those who free space when a normal one cannot be had and the current one is nearly used up.
// It returns why there is none of the normal size.
func (l *Log) provideSmall(cause error) error {
	if l.Poisoned() != nil {
		return cause
	}
	small := l.smallBytes()
	l.mu.Lock()
	enough := len(l.ready) > 0 || l.cur != nil && l.cur.capacity-l.pos >= small/2
	l.mu.Unlock()
	if !enough {
		_ = l.WithReserve(func() error { return l.prepare(small) }) // The cause is told; this comes back to be tried again.
	}
	return cause
}

// smallBytes is the size of a segment that the reserve makes room for.
func (l *Log) smallBytes() int64 {
	return min(l.o.SegmentBytes, alignUp(max(l.o.ReserveBytes/2, minSegmentBytes), pageSize))
}

// Seal closes the open segment, if it holds frames: it is committed, listed as sealed, and reported to OnSeal before Seal returns. It
// waits for reservations that have no place elsewhere.
func (l *Log) Seal() error {
	l.mu.Lock()
	ok, err := len(l.queue) == 0, error(nil)
	if ok {
		ok, err = l.sealLocked()
	}
	if err == nil && !ok {
		err = l.waitRoomLocked(reserver{seal: true})
	}
	upto := l.nextLocked()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.Commit(upto, Synced); err != nil {
		return err
	}
	return l.sealFilled()
}

// WithReserve runs fn, which writes files. If it meets a full disk, the reserve file is removed and fn runs once more; the reserve
// comes back when there is room and nobody uses it.
func (l *Log) WithReserve(fn func() error) error {
	err := fn()
	if err == nil || !vfs.IsNoSpace(err) || l.o.ReadOnly {
		return err
	}
	l.reserveUsers.Add(1)
	rerr := l.fs.Remove(l.path(reserveName))
	if rerr == nil {
		err = fn()
	} // Else the first error is the one to tell, also when the reserve was used up before.
	l.reserveUsers.Add(-1)
	if rerr == nil {
		l.wakeKeeper()
	}
	return err
}

// restoreReserve makes the reserve file, if it is not there or smaller than it should be. If there is no room for all of it, it takes
// what there is.
func (l *Log) restoreReserve() error {
	name := l.path(reserveName)
	if info, err := l.fs.Stat(name); err == nil && info.Size >= l.o.ReserveBytes {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restore reserve: %w", err)
	}
	var first error
	for size := l.o.ReserveBytes; size >= pageSize; size /= 2 {
		err := l.writeReserve(name, size)
		if err == nil {
			break
		}
		first = errors.Join(first, err)
		if !vfs.IsNoSpace(err) {
			break
		}
	}
	if first != nil {
		return diskFull("restore reserve", first)
	}
	return nil
}

func (l *Log) writeReserve(name string, size int64) error {
	f, err := l.fs.Create(name)
	if err != nil {
		return err
	}
	err = errors.Join(f.Allocate(0, size), f.Close())
	if err != nil {
		_ = l.fs.Remove(name) // Half a reserve would pass for a whole one.
	}
	return err
}

func isDiskFull(err error) bool { return errors.Is(err, ErrDiskFull) }

// diskFull wraps an error, and makes it ErrDiskFull if the system says so.
func diskFull(verb string, err error) error {
	if vfs.IsNoSpace(err) && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("%s: %w: %w", verb, ErrDiskFull, err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}
