package log

import (
	"fmt"
	"slices"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// stateLocked encodes the partition's state. Aborted transactions whose
// marker lies below abortedFrom are left out. REQUIRES: mu held.
func (p *Partition) stateLocked(b []byte, abortedFrom int64) []byte {
	if p.deleted != 0 {
		return queue.Tombstone(p.deleted).Append(b)
	}
	st := queue.State{Topic: p.topic, Async: p.Durability() == Async, HighWatermark: p.highWatermark.Load(), Queue: p.q, AbortedFrom: abortedFrom}
	return st.Append(b)
}

// abortedFromLocked returns the offset from which on the state in a segment's
// index lists aborted transactions: no state before that index need hold
// them, whatever was truncated since. REQUIRES: mu held.
func (p *Partition) abortedFromLocked(seg *segment, first int64) int64 {
	from := min(first, p.q.MemoryBase())
	for _, c := range p.q.Cuts() {
		if c.LSN >= seg.base {
			from = min(from, c.Offset)
		}
	}
	return from
}

// index writes the index of a sealed segment from what memory holds, puts it
// in force, and lets the entries leave memory.
func (s *Store) index(seg *segment) error {
	begin := time.Now()
	parts, touched := s.captureSegment(seg)
	slices.SortFunc(parts, func(a, b queue.IndexPart) int { return queue.CompareIDs(a.ID, b.ID) })
	if err := s.writeIndex(seg, parts); err != nil {
		return err
	}
	for _, p := range touched {
		p.mu.Lock()
		p.q.Drop(seg.id)
		switch {
		case p.q.AsOf() < seg.end:
			p.dirty = 0
		default:
			p.dirty = max(p.dirty, seg.end)
		}
		p.mu.Unlock()
	}
	s.forgetTombs(seg.end)
	if s.o.Events.Sealed != nil {
		s.o.Events.Sealed(seg.file, len(parts), time.Since(begin))
	}
	return nil
}

// captureSegment gathers what the index of a segment holds: the entries of
// the segment, and the state of each partition that a frame in it touched.
// States may be ahead of the segment: each says as of when it is.
func (s *Store) captureSegment(seg *segment) (parts []queue.IndexPart, touched []*Partition) {
	s.capture.Lock()
	defer s.capture.Unlock()
	var states arena
	for _, p := range s.all() {
		p.mu.Lock()
		es := p.q.InSegment(seg.id)
		if len(es) == 0 && (p.dirty == 0 || p.dirty >= seg.end) {
			p.mu.Unlock()
			continue
		}
		first := p.q.End()
		if p.deleted != 0 {
			es = nil
		} else if len(es) > 0 {
			first = es[0].Base
		}
		from := p.abortedFromLocked(seg, first)
		parts = append(parts, queue.IndexPart{ID: p.id, Entries: es, State: states.add(func(b []byte) []byte { return p.stateLocked(b, from) })})
		touched = append(touched, p)
		p.mu.Unlock()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.tombs {
		if t.lsn >= seg.base && t.lsn < seg.end {
			parts = append(parts, queue.IndexPart{ID: t.id, State: t.state()})
		}
	}
	return parts, touched
}

// writeIndex writes an index and puts it in force. parts are sorted. What a
// state may hold of frames after the segment is made durable before.
func (s *Store) writeIndex(seg *segment, parts []queue.IndexPart) error {
	if err := s.log.Commit(s.log.Next(), commitlog.Synced); err != nil {
		return fmt.Errorf("index segment %s: %w", seg.file, err)
	}
	name := commitlog.IndexName(seg.id)
	var size int64
	err := s.log.WithReserve(func() (err error) {
		size, err = queue.WriteIndex(s.o.FS, s.o.Dir, name, queue.IndexInfo{Segment: seg.id, First: seg.base, End: seg.end}, parts)
		return err
	})
	if err != nil {
		return fmt.Errorf("index segment %s: %w", seg.file, err)
	}
	if err := s.log.AttachIndex(seg.id, name); err != nil {
		return fmt.Errorf("index segment %s: %w", seg.file, err)
	}
	var live int64
	for i := range parts {
		for j := range parts[i].Entries {
			live += int64(parts[i].Entries[j].Size)
		}
	}
	seg.live.Store(live)
	seg.indexBytes.Store(size)
	s.indexes.replace(seg.id)
	seg.index.Store(&name)
	return nil
}

// forgetTombs drops the deletions whose frames an index covers.
func (s *Store) forgetTombs(end commitlog.LSN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tombs = slices.DeleteFunc(s.tombs, func(t tomb) bool { return t.lsn < end })
	if len(s.tombs) == 0 {
		s.tombs = nil
	}
}

// checkpoint writes all partitions' states, and with complete the entries in
// memory as well.
func (s *Store) checkpoint(complete bool) error {
	begin := time.Now()
	parts, upto := s.captureAll(complete)
	slices.SortFunc(parts, func(a, b queue.CheckpointPart) int { return queue.CompareIDs(a.ID, b.ID) })
	if err := s.log.Commit(s.log.Next(), commitlog.Synced); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	c := queue.Checkpoint{Upto: upto, Complete: complete}
	for _, seg := range s.segments.all() {
		c.Live = append(c.Live, queue.LiveBytes{Segment: seg.id, Bytes: seg.live.Load()})
	}
	name := commitlog.CheckpointName(upto)
	var size int64
	err := s.log.WithReserve(func() (err error) {
		size, err = queue.WriteCheckpoint(s.o.FS, s.o.Dir, name, c, parts)
		return err
	})
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	// One damaged file must not take what the log has freed with it.
	if _, err := queue.WriteCheckpoint(s.o.FS, s.o.Dir, commitlog.CopyName(name), c, parts); err != nil {
		s.failed("write the checkpoint's copy", err)
	}
	if err := s.log.SetCheckpoint(name, upto); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	s.background.checkpointed(size, upto)
	if s.o.Events.Checkpoint != nil {
		s.o.Events.Checkpoint(len(parts), size, time.Since(begin))
	}
	return nil
}

// captureAll gathers all partitions' states. All frames below upto are in them.
func (s *Store) captureAll(complete bool) (parts []queue.CheckpointPart, upto commitlog.LSN) {
	s.capture.Lock()
	defer s.capture.Unlock()
	upto = s.log.Next()
	var states arena
	for _, p := range s.all() {
		p.mu.Lock()
		if p.deleted == 0 {
			part := queue.CheckpointPart{ID: p.id, State: states.add(func(b []byte) []byte { return p.stateLocked(b, 0) })}
			if complete {
				part.Runs = p.q.Runs()
			}
			parts = append(parts, part)
		}
		p.mu.Unlock()
	}
	return parts, upto
}

// arena holds many small byte slices in few large ones.
type arena struct{ free []byte }

const arenaPiece = 1 << 20

// add appends what fn appends and returns it.
func (a *arena) add(fn func([]byte) []byte) []byte {
	const room = 4 << 10 // Most states fit; append moves those that do not.
	if cap(a.free)-len(a.free) < room {
		a.free = make([]byte, 0, arenaPiece)
	}
	at := len(a.free)
	b := fn(a.free[at:at:cap(a.free)])
	if len(b) <= cap(a.free)-at { // Else it was moved out.
		a.free = a.free[:at+len(b)]
	}
	return b[:len(b):len(b)]
}
