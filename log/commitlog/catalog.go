package commitlog

import "fmt"

// What the owner of the log edits in the manifest.

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
			m.freed = true
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

// SetCheckpoint names the checkpoint, which is durable in the data directory, in the manifest. The one before is removed, and its copy.
func (l *Log) SetCheckpoint(file string, upto LSN) error {
	old := ""
	err := l.edit(func(m *manifest) {
		old, m.checkpoint, m.checkpointLSN = m.checkpoint, file, upto
	})
	if err != nil {
		return fmt.Errorf("set checkpoint: %w", err)
	}
	l.removeReplaced(old, file)
	if old != file && old != "" {
		if err := l.fs.Remove(l.path(CopyName(old))); !missing(err) { // There may be none.
			l.report("remove replaced file", err)
		}
	}
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
