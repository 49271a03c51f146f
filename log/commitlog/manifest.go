package commitlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/mainstem/mainstem/log/vfs"
)

// clone returns a copy that may be changed.
func (m *manifest) clone() *manifest {
	c := *m
	c.rows = slices.Clone(m.rows)
	c.quarantined = slices.Clone(m.quarantined)
	return &c
}

// row returns a segment's row, nil if there is none.
func (m *manifest) row(id SegmentID) *segmentRow {
	i, ok := slices.BinarySearchFunc(m.rows, id, func(r segmentRow, id SegmentID) int { return cmp.Compare(r.id, id) })
	if !ok {
		return nil
	}
	return &m.rows[i]
}

// add puts a segment's row in its place.
func (m *manifest) add(r segmentRow) {
	i, _ := slices.BinarySearchFunc(m.rows, r.id, func(r segmentRow, id SegmentID) int { return cmp.Compare(r.id, id) })
	m.rows = slices.Insert(m.rows, i, r)
}

// drop takes a segment and what is quarantined of it out.
func (m *manifest) drop(id SegmentID) {
	m.rows = slices.DeleteFunc(m.rows, func(r segmentRow) bool { return r.id == id })
	m.quarantined = slices.DeleteFunc(m.quarantined, func(s Span) bool { return s.Segment == id })
}

// quarantine adds a span and joins it with those that it touches.
func (m *manifest) quarantine(s Span) {
	m.quarantined = append(m.quarantined, s)
	slices.SortFunc(m.quarantined, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.From, b.From))
	})
	out := m.quarantined[:1]
	for _, s := range m.quarantined[1:] {
		last := &out[len(out)-1]
		if last.Segment == s.Segment && s.From <= last.To {
			last.To = max(last.To, s.To)
		} else {
			out = append(out, s)
		}
	}
	m.quarantined = out
}

// quarantinedAt returns the listed span that a range of a segment meets.
func (m *manifest) quarantinedAt(id SegmentID, from, to int64) (Span, bool) {
	for _, s := range m.quarantined {
		if s.Segment == id && s.From < to && from < s.To {
			return s, true
		}
	}
	return Span{}, false
}

// info describes a row to the owner of the log.
func (r *segmentRow) info() SegmentInfo {
	i := SegmentInfo{
		ID: r.id, File: segmentName(r.id), Clustered: r.kind == kindClustered, AsOf: r.asOf, Base: r.base,
		EndOffset: r.end, Capacity: r.capacity, Frames: r.frames, Sealed: r.sealed, Index: r.index,
	}
	if !i.Clustered {
		i.End = r.base + LSN(r.end)
	}
	return i
}

// readManifest reads the manifest of a directory, nil if there is none.
func readManifest(fsys vfs.FS, dir string) (*manifest, error) {
	name := filepath.Join(dir, manifestName)
	b, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return m, nil
}

// readFile reads a whole file.
func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	var b []byte
	if err == nil {
		b = make([]byte, size)
		_, err = readFull(f, b, 0)
	}
	return b, errors.Join(err, f.Close())
}

// edit changes the manifest durably: fn works on a clone, which is published when it is on disk. Edits come one after the other.
// On a full disk the reserve is given up for it. A failure of any other kind leaves open which manifest a crash would find, and
// poisons the log.
func (l *Log) edit(fn func(*manifest)) error {
	if l.o.ReadOnly {
		return fmt.Errorf("write manifest: the log is open for reading only: %w", ErrUsage)
	}
	l.editing <- struct{}{}
	defer func() { <-l.editing }()
	if err := l.Poisoned(); err != nil {
		return err
	}
	next := l.manifest.Load().clone()
	fn(next)
	next.durable = max(next.durable, l.Durable())
	err := l.WithReserve(func() error {
		return vfs.WriteAtomic(l.fs, l.path(manifestName), next.encode())
	})
	switch {
	case err == nil:
		l.manifest.Store(next)
		return nil
	case vfs.IsNoSpace(err):
		return fmt.Errorf("write manifest: %w: %w", ErrDiskFull, err)
	default:
		err = fmt.Errorf("write manifest: %w", err)
		l.poison(err)
		return err
	}
}

// Manifest returns what the manifest says now.
func (l *Log) Manifest() ManifestInfo {
	m := l.manifest.Load()
	info := ManifestInfo{
		ClusterID: m.clusterID, NodeID: m.nodeID, Clean: l.wasClean, New: l.isNew, Freed: m.freed, ReadOnly: l.o.ReadOnly,
		Checkpoint: m.checkpoint, CheckpointLSN: m.checkpointLSN, Quarantined: slices.Clone(m.quarantined),
	}
	for i := range m.rows {
		info.Segments = append(info.Segments, m.rows[i].info())
	}
	return info
}
