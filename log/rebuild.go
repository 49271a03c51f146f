package log

import (
	"fmt"
	"slices"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// rebuild makes a sealed segment's index anew from its frames.
func (s *Store) rebuild(seg *segment) error {
	if !slices.Contains(s.segments.all(), seg) {
		return nil
	}
	found := make(map[PartitionID][]queue.Entry)
	touch := func(id PartitionID) {
		if _, ok := found[id]; !ok {
			found[id] = nil
		}
	}
	err := s.log.Scan(seg.id, func(f commitlog.Frame) error {
		switch f.Kind {
		case commitlog.Data:
			found[f.ID] = append(found[f.ID], entryOf(&f))
		case commitlog.Create:
			return readCreates(f.Payload, func(c CreateSpec) { touch(c.ID) })
		case commitlog.Delete:
			return readDeletes(f.Payload, touch)
		case commitlog.LogStart:
			return readStarts(f.Payload, func(i startItem) { touch(i.id) })
		default:
			touch(f.ID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("rebuild index of segment %s: %w", seg.file, err)
	}
	parts := s.captureFound(seg, found)
	slices.SortFunc(parts, func(a, b queue.IndexPart) int { return queue.CompareIDs(a.ID, b.ID) })
	if err := s.writeIndex(seg, parts); err != nil {
		return err
	}
	s.cache.clear()
	s.failed("read index", fmt.Errorf("segment %s: damaged index was rebuilt", seg.file))
	return nil
}

// captureFound gathers the live entries and present states of the partitions
// that a segment touches. Partitions that are no more get a tombstone.
func (s *Store) captureFound(seg *segment, found map[PartitionID][]queue.Entry) []queue.IndexPart {
	s.capture.Lock()
	defer s.capture.Unlock()
	parts := make([]queue.IndexPart, 0, len(found))
	var states arena
	for id, es := range found {
		p := s.Partition(id)
		if p == nil {
			parts = append(parts, queue.IndexPart{ID: id, State: tomb{id, seg.end - 1}.state()})
			continue
		}
		p.mu.Lock()
		live := es[:0]
		for i := range es {
			if p.deleted == 0 && p.q.Live(&es[i]) {
				live = append(live, es[i])
			}
		}
		first := p.q.End()
		if len(live) > 0 {
			first = live[0].Base
		}
		from := p.abortedFromLocked(seg, first)
		parts = append(parts, queue.IndexPart{ID: id, Entries: live, State: states.add(func(b []byte) []byte { return p.stateLocked(b, from) })})
		p.mu.Unlock()
	}
	return parts
}
