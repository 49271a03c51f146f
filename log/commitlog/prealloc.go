package commitlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// maxRecyclable is how many dropped files wait for a new life.
const maxRecyclable = 2

// minSegmentBytes is the smallest segment.
const minSegmentBytes = 4 * pageSize

// prepare readies a segment of a size: its file is allocated, or a dropped one renamed; its header is written under a new salt; file
// and directory are synced; it is listed in the manifest. From then on the roll into it is a pointer, and writing needs fdatasync only.
// Nothing is ever cut off, punched or zeroed: an already written file syncs faster than fresh space. REQUIRES: one call at a time.
func (l *Log) prepare(size int64) error {
	m := l.manifest.Load()
	head := segmentHead{kind: kindFrames, id: m.nextID, salt: rand.Uint64(), base: m.nextBase, capacity: size}
	row := segmentRow{segmentHead: head, end: dataStart}
	s := newSegment(&row)
	if err := l.makeFile(s); err != nil {
		_ = s.closeFile()
		_ = l.fs.Remove(l.path(s.name))
		return diskFull("prepare segment", err)
	}
	err := l.edit(func(m *manifest) {
		m.clean = false
		m.nextID = head.id + 1
		m.nextBase = head.base + LSN(alignUp(head.capacity, pageSize))
		m.add(row)
	})
	if err != nil {
		_ = s.closeFile()
		_ = l.fs.Remove(l.path(s.name)) // It is not listed, so it goes at the next open at the latest.
		return fmt.Errorf("prepare segment: %w", err)
	}
	l.publish([]*segment{s}, nil)
	l.mu.Lock()
	l.ready = append(l.ready, s)
	l.grantLocked()
	l.mu.Unlock()
	return nil
}

func ids(segs []*segment) (out []SegmentID) {
	for _, s := range segs {
		out = append(out, s.id)
	}
	return out
}

// publish swaps the set of live segments.
func (l *Log) publish(add []*segment, without []SegmentID) {
	for {
		old := l.set.Load()
		if l.set.CompareAndSwap(old, old.with(add, without)) {
			return
		}
	}
}

// makeFile makes a segment's file from a dropped one of the same size or from nothing, and leaves it open.
func (l *Log) makeFile(s *segment) error {
	name := l.path(s.name)
	open := l.fs.Create
	if old := l.takeRecyclable(s.capacity); old != nil {
		err := l.checkFree(0)
		if err == nil {
			err = l.fs.Rename(l.path(old.name), name)
		}
		if err != nil {
			l.putRecyclable(old)
			return err
		}
		open = l.fs.OpenRW
	} else if s.capacity == l.o.SegmentBytes {
		if err := l.checkFree(s.capacity); err != nil {
			return err
		}
	}
	f, err := open(name)
	if err != nil {
		return err
	}
	s.file.Store(&fileHandle{f})
	if err := f.Allocate(0, s.capacity); err != nil { // Takes nothing if the file is as large already.
		return err
	}
	if _, err := f.WriteAt(s.segmentHead.encode(), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return l.fs.SyncDir(l.o.Dir)
}

// takeRecyclable returns a dropped segment whose file has that size, nil if there is none.
func (l *Log) takeRecyclable(size int64) *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.recyclable {
		if s.capacity == size {
			l.recyclable = append(l.recyclable[:i], l.recyclable[i+1:]...)
			return s
		}
	}
	return nil
}

func (l *Log) putRecyclable(s *segment) {
	l.mu.Lock()
	l.recyclable = append(l.recyclable, s)
	l.mu.Unlock()
}

// free recycles or removes the files of dropped segments whose last reader is gone.
func (l *Log) free() {
	l.mu.Lock()
	segs := l.unreferenced
	l.unreferenced = nil
	l.mu.Unlock()
	for _, s := range segs {
		l.mu.Lock()
		keep := len(l.recyclable) < maxRecyclable && s.space() == l.o.SegmentBytes && s.kind == kindFrames
		l.mu.Unlock()
		err := s.closeFile() // It may be open for reading only.
		if keep {
			l.putRecyclable(s)
		} else {
			err = errors.Join(err, l.fs.Remove(l.path(s.name)))
		}
		l.report("free segment", err)
		if l.o.Events.Freed != nil {
			l.o.Events.Freed(s.id, keep)
		}
	}
}

// report tells of a failure in the background that changes nothing but disk space.
func (l *Log) report(verb string, err error) {
	if err != nil && l.o.Events.Failed != nil {
		l.o.Events.Failed(verb, err)
	}
}

// Drop takes segments out of the log for good: durably out of the manifest first, then, after the last reader, their files are recycled
// or removed, their index files removed. Dropping what is not there does nothing; the open segment cannot be dropped.
func (l *Log) Drop(segs []SegmentID) error {
	var gone []*segment
	var indexes []string
	err := l.edit(func(m *manifest) {
		for _, id := range segs {
			r := m.row(id)
			if r == nil || !r.sealed {
				continue
			}
			if s := l.set.Load().find(id); s != nil {
				gone = append(gone, s)
			}
			if r.index != "" {
				indexes = append(indexes, r.index)
			}
			m.drop(id)
		}
	})
	if err != nil {
		return fmt.Errorf("drop segments: %w", err)
	}
	l.publish(nil, ids(gone))
	l.mu.Lock()
	for _, s := range gone {
		if s.index == "" && s.kind == kindFrames {
			l.unindexed--
		}
	}
	l.grantLocked()
	l.mu.Unlock()
	for _, name := range indexes {
		l.report("remove index", l.fs.Remove(l.path(name)))
	}
	for _, s := range gone {
		l.release(s)
	}
	return nil
}

// AttachIndex names a sealed segment's index file, which is durable in the data directory, in the manifest. One that was named before
// is removed.
func (l *Log) AttachIndex(id SegmentID, file string) error {
	old, found := "", false
	err := l.edit(func(m *manifest) {
		if r := m.row(id); r != nil && r.sealed {
			old, r.index, found = r.index, file, true
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("attach index: %w", err)
	case !found:
		return fmt.Errorf("attach index to segment %v: %w", id, ErrSegmentGone)
	}
	l.mu.Lock()
	if s := l.set.Load().find(id); s != nil {
		if s.index == "" && s.kind == kindFrames {
			l.unindexed--
		}
		s.index = file
	}
	l.grantLocked()
	l.mu.Unlock()
	l.removeReplaced(old, file)
	return nil
}

// SetCheckpoint names the checkpoint, which is durable in the data directory, in the manifest. The one before is removed.
func (l *Log) SetCheckpoint(file string, upto LSN) error {
	old := ""
	err := l.edit(func(m *manifest) {
		old, m.checkpoint, m.checkpointLSN = m.checkpoint, file, upto
	})
	if err != nil {
		return fmt.Errorf("set checkpoint: %w", err)
	}
	l.removeReplaced(old, file)
	return nil
}

func (l *Log) removeReplaced(old, file string) {
	if old != "" && old != file {
		l.report("remove replaced file", l.fs.Remove(l.path(old)))
	}
}

// Quarantine lists a span as corrupt, durably: reads of it fail from now on. A span that is listed already is not listed again. A log that is open for reading only reports it and lists nothing.
func (l *Log) Quarantine(e *CorruptError) error {
	if s, ok := l.manifest.Load().quarantinedAt(e.Segment, e.From, e.To); ok && s.From <= e.From && s.To >= e.To {
		return nil
	}
	if !l.o.ReadOnly {
		err := l.edit(func(m *manifest) {
			if m.row(e.Segment) != nil {
				m.quarantine(e.Span)
			}
		})
		if err != nil {
			return fmt.Errorf("quarantine: %w", err)
		}
	}
	if l.o.Events.Corrupt != nil {
		l.o.Events.Corrupt(e)
	}
	return nil
}
