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
		return fmt.Errorf("prepare segment: %w", err) // The file stays: the edit may have arrived. Else the next try takes it.
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
	recycled, err := l.recycle(name, s.capacity)
	switch {
	case err != nil:
		return err
	case recycled:
		open = l.fs.OpenRW
	case s.capacity == l.o.SegmentBytes:
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
	if _, err := f.WriteAt(s.encode(), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return l.fs.SyncDir(l.o.Dir)
}

// recycle gives a dropped file of a size a new name, and reports whether there was one.
func (l *Log) recycle(name string, size int64) (bool, error) {
	for {
		old := l.takeRecyclable(size)
		if old == nil {
			return false, nil
		}
		err := l.checkFree(0)
		if err == nil {
			err = l.fs.Rename(l.path(old.name), name)
		}
		if err == nil {
			return true, nil
		}
		if !missing(err) { // One that somebody removed is of no use.
			l.putRecyclable(old)
			return false, err
		}
	}
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
