package commitlog

import (
	"fmt"
	"slices"

	"github.com/mainstem/mainstem/log/vfs"
)

// Recovery. After a clean stop the open segment goes on at the end that the manifest names. After any other one the segments that are
// not sealed are read, in the order of the stream, and their frames handed out:
//
//   - The first bad frame at or above the highest durable mark of any frame behind it, or of the manifest, is where the torn tail
//     begins. It is cut there, also when valid frames follow: no one was told that they are safe.
//   - A bad frame below it is corruption: it is quarantined and reported, and reading goes on at the next valid frame.
//   - What lies between the durable mark and the cut is written again in place and synced, since after a failed sync, or a kill before
//     one, it may be in the system's memory only.
//   - Then one edit of the manifest seals the segment at the cut and forgets those behind it; only now the past is fixed. A crash
//     before the edit repeats all this, and nothing of what was found was shown to anyone.
//   - Writing goes on in a new segment with a new salt and a base above all that was ever given, so that no dead byte comes back.

// tail is what recovery finds.
type tail struct {
	l       *Log
	segs    []*segment // not sealed, in LSN order.
	mark    LSN        // the highest durable mark that was seen.
	marked  bool       // the marks of all that follows are in it.
	seen    *segment   // where the last frame lies that was seen behind a bad one, and its end.
	seenEnd int64
	cut     LSN
	dead    Span // frames, or parts of one, at and behind the cut; empty if there are none.
	damaged []*CorruptError
}

// Recover reads the open tail, calls fn for its frames in order, and readies the log for appends. Segments that recovery sealed are
// reported to OnSeal before it returns. It is called once. If the disk is so full that appends cannot go on, it returns nil all the
// same: Reserve refuses until there is room.
func (l *Log) Recover(fn func(Frame) error) error {
	t := tail{l: l, mark: l.manifest.Load().durable}
	for _, s := range l.set.Load().list {
		if s.kind == kindFrames && !s.sealed {
			t.segs = append(t.segs, s)
		}
	}
	slices.SortFunc(t.segs, func(a, b *segment) int {
		if a.base < b.base {
			return -1
		}
		return 1
	})
	var err error
	if l.wasClean {
		err = t.resume()
	} else {
		err = t.scan(fn)
	}
	if err != nil {
		return fmt.Errorf("recover log: %w", err)
	}
	if l.o.ReadOnly {
		return nil
	}
	return l.start()
}

// start begins to accept appends.
func (l *Log) start() error {
	l.mu.Lock()
	l.accept = true
	l.mu.Unlock()
	if err := l.keepFirst(); err != nil {
		return err
	}
	l.running.Add(2)
	go l.keeper()
	go l.backgroundWriter()
	l.wakeKeeper()
	return nil
}

// keepFirst readies the first segment before anyone can append. On a full disk the log opens and refuses; all other errors are final.
func (l *Log) keepFirst() error {
	l.mu.Lock()
	have := l.cur != nil || len(l.ready) > 0
	l.mu.Unlock()
	if have {
		return nil
	}
	if err := l.keep(); err != nil && !isDiskFull(err) {
		return err
	}
	return l.Poisoned()
}

// resume goes on where the last clean stop ended. Of a segment whose file is missing the frames are damaged, and writing goes on in
// another one; without frames it is forgotten.
func (t *tail) resume() error {
	l := t.l
	if l.o.ReadOnly {
		return nil
	}
	var lost, forgotten []*segment
	for _, s := range t.segs {
		f, err := l.fs.OpenRW(l.path(s.name))
		empty := s.end.Load() == dataStart
		switch {
		case missing(err) && empty:
			forgotten = append(forgotten, s)
		case missing(err):
			gone := scanner{seg: s, gone: true}
			t.damaged = append(t.damaged, gone.corrupt(dataStart, s.end.Load()))
			lost = append(lost, s)
		case err != nil:
			return fmt.Errorf("open segment: %w", err)
		case empty:
			s.file.Store(&fileHandle{f})
			l.ready = append(l.ready, s)
		default:
			s.file.Store(&fileHandle{f})
			l.cur, l.pos = s, s.end.Load()
			l.setPositions(s.lsn(l.pos))
		}
	}
	if len(lost)+len(forgotten) > 0 {
		return t.fix(lost, forgotten)
	}
	// Before anything is written the stop is no longer clean. On a full disk this waits until there is room, and appends with it.
	return l.beginWith(func(m *manifest) { m.clean = false }, func() {})
}

// beginWith makes the edit without which nothing may be appended, and then calls then. On a full disk the keeper does both later.
func (l *Log) beginWith(change func(*manifest), then func()) error {
	err := l.edit(change)
	if err == nil {
		then()
		return nil
	}
	if !isDiskFull(err) {
		return err
	}
	l.mu.Lock()
	l.opening = &opening{change: change, then: then}
	l.mu.Unlock()
	return nil
}

// opening is an edit that a full disk has put off.
type opening struct {
	change func(*manifest)
	then   func()
}

// finishOpening makes the edit that a full disk has put off.
func (l *Log) finishOpening() error {
	l.mu.Lock()
	o := l.opening
	l.mu.Unlock()
	if o == nil {
		return nil
	}
	if err := l.edit(o.change); err != nil {
		return err
	}
	o.then()
	l.mu.Lock()
	l.opening = nil
	l.mu.Unlock()
	return nil
}

// scan is recovery after a stop that was not clean.
func (t *tail) scan(fn func(Frame) error) error {
	last := -1
	for i, s := range t.segs {
		if t.cut != 0 {
			break
		}
		if err := t.scanSegment(i, fn); err != nil {
			return err
		}
		if s.end.Load() > dataStart {
			last = i
		}
	}
	if t.l.o.ReadOnly {
		t.report()
		return nil
	}
	if err := t.rewrite(t.segs[:last+1]); err != nil {
		return err
	}
	return t.fix(t.segs[:last+1], t.segs[last+1:])
}

// scanSegment reads one segment, up to the cut if it lies there, and sets its end.
func (t *tail) scanSegment(i int, fn func(Frame) error) error {
	s := t.segs[i]
	s.frames = 0
	sc, err := t.l.newScanner(s, s.capacity)
	if err != nil {
		return err
	}
	pos := int64(dataStart)
	for pos+frameHeader <= s.capacity {
		h, payload, v, err := sc.frame(pos)
		if err != nil {
			return err
		}
		if v == frameGood {
			t.mark = max(t.mark, h.durable)
			pos += h.size()
			if h.Kind == kindEnd {
				break
			}
			s.frames++
			if err := fn(frameAt(s, pos-h.size(), &h, payload)); err != nil {
				return err
			}
			continue
		}
		if err := t.lookAhead(i, pos); err != nil {
			return err
		}
		if s.lsn(pos) >= t.mark {
			t.cut = s.lsn(pos)
			t.noteDead(s, pos, &h, v)
			break
		}
		if pos, err = t.skip(sc, pos, &h, v); err != nil {
			return err
		}
	}
	s.end.Store(min(pos, s.capacity))
	return nil
}

// lookAhead collects the durable marks of all valid frames behind a bad one.
func (t *tail) lookAhead(i int, pos int64) error {
	if t.marked {
		return nil
	}
	t.marked = true
	for _, s := range t.segs[i:] {
		sc, err := t.l.newScanner(s, s.capacity)
		if err != nil {
			return err
		}
		for pos < s.capacity {
			at, h, err := sc.next(pos, s.capacity)
			if err != nil {
				return err
			}
			if at == s.capacity {
				break
			}
			t.mark = max(t.mark, h.durable)
			pos = at + h.size()
			t.seen, t.seenEnd = s, pos
		}
		pos = dataStart
	}
	return nil
}

// noteDead tells apart a log that simply ends from one whose last write was torn: behind the cut there are frames, or the cut is in one.
func (t *tail) noteDead(s *segment, pos int64, h *frameHead, v verdict) {
	switch {
	case t.seen == s && t.seenEnd > pos:
		t.dead = Span{Segment: s.id, From: pos, To: t.seenEnd}
	case v == frameBadPayload || h.lsn == s.lsn(pos):
		t.dead = Span{Segment: s.id, From: pos, To: min(pos+h.size(), s.capacity)}
	case t.seen != nil && t.seen.base > s.base:
		t.dead = Span{Segment: s.id, From: pos, To: s.capacity}
	}
}

// skip notes damage and returns where reading goes on. The durable mark is where a frame begins, so damage ends there at the latest.
func (t *tail) skip(sc *scanner, pos int64, h *frameHead, v verdict) (int64, error) {
	if v == frameBadPayload {
		t.damaged = append(t.damaged, sc.corruptPayload(pos, h))
		t.mark = max(t.mark, h.durable)
		return pos + h.size(), nil
	}
	limit := sc.seg.capacity
	if t.mark < sc.seg.lsn(limit) {
		limit = int64(t.mark - sc.seg.base)
	}
	to, _, err := sc.next(pos+frameAlign, limit)
	if err != nil {
		return 0, err
	}
	t.damaged = append(t.damaged, sc.corrupt(pos, to))
	return to, nil
}

// rewrite writes what may be in the system's memory only once more and syncs it.
func (t *tail) rewrite(segs []*segment) error {
	for _, s := range segs {
		from, to := int64(dataStart), s.end.Load()
		if t.mark > s.lsn(from) {
			from = int64(min(t.mark, s.lsn(to)) - s.base)
		}
		if from >= to {
			continue
		}
		f, err := t.l.fs.OpenRW(t.l.path(s.name))
		if err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		err = rewriteRange(f, from, to)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("write tail of segment %v again: %w", s.id, err)
		}
	}
	return nil
}

// rewriteRange writes what a file holds in a range in its place again, and syncs it.
func rewriteRange(f vfs.File, from, to int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	to = min(to, size) // A file that somebody cut may lack the padding of its last frame.
	buf := make([]byte, min(to-from, windowBytes))
	for pos := from; pos < to; pos += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), to-pos)]
		if _, err := readFull(f, buf, pos); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf, pos); err != nil {
			return err
		}
	}
	return f.Sync()
}

// fix makes what was found the past: segments with frames are sealed where they end, those behind the cut are forgotten.
func (t *tail) fix(sealed, forgotten []*segment) error {
	l := t.l
	end := max(t.mark, l.nextLocked())
	for _, s := range sealed {
		s.sealed = true
		end = max(end, s.lsn(s.end.Load()))
	}
	change := func(m *manifest) {
		m.clean = false
		for _, s := range sealed {
			*m.row(s.id) = s.row()
		}
		for _, s := range forgotten {
			m.drop(s.id)
		}
		for _, e := range t.damaged {
			m.quarantine(e.Span)
		}
	}
	l.publish(nil, ids(forgotten))
	l.unindexed += len(sealed)
	l.setPositions(end)
	t.report()
	return l.beginWith(change, func() {
		for _, s := range forgotten {
			l.release(s)
		}
		for _, s := range sealed {
			if l.o.OnSeal != nil {
				r := s.row()
				l.o.OnSeal(r.info())
			}
		}
	})
}

// report tells what was cut and what is damaged.
func (t *tail) report() {
	e := &t.l.o.Events
	for _, d := range t.damaged {
		if e.Corrupt != nil {
			e.Corrupt(d)
		}
	}
	if t.dead.To > 0 && e.Cut != nil {
		e.Cut(t.dead)
	}
}
