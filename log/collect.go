package log

import (
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// collect frees the sealed segments in which nothing is live, wherever they
// stand in the log. The control frames that made them dead are synced, and a
// checkpoint holds what their frames said, before they go.
func (s *Store) collect() error {
	var dead []*segment
	for _, seg := range s.segments.all() {
		if !seg.indexed() {
			continue
		}
		isDead, err := s.isDead(seg)
		if err != nil {
			return fmt.Errorf("collect segment %s: %w", seg.file, err)
		}
		if isDead {
			dead = append(dead, seg)
		}
	}
	if len(dead) == 0 {
		return nil
	}
	upto := commitlog.LSN(s.background.checkpointLSN.Load())
	if last := dead[len(dead)-1]; last.end > upto {
		if err := s.checkpoint(false); err != nil {
			return err
		}
	} else if err := s.log.Commit(s.log.Next(), commitlog.Synced); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	ids, gone, files := make([]commitlog.SegmentID, len(dead)), make(map[commitlog.SegmentID]bool, len(dead)), make([]string, len(dead))
	for i, seg := range dead {
		ids[i], files[i] = seg.id, seg.file
		gone[seg.id] = true
	}
	// Out of the readers' list first: an index that vanishes under a reader is then known to have gone.
	s.segments.remove(gone)
	for _, seg := range dead {
		seg.dropped.Store(true)
		s.indexes.replace(seg.id)
	}
	if err := s.log.Drop(ids); err != nil {
		s.segments.restore(dead)
		return fmt.Errorf("free dead segments: %w", err)
	}
	if s.o.Events.Freed != nil {
		s.o.Events.Freed(files)
	}
	return nil
}

// isDead reports whether nothing in a segment is live, and counts what is.
// As long as the data that was live at the last count is, nothing is read.
func (s *Store) isDead(seg *segment) (bool, error) {
	if w := seg.witness.Load(); w != nil && s.liveIn(seg, w.id, w.row) > 0 {
		return false, nil
	}
	x, err := s.indexes.get(seg)
	if err != nil {
		return false, s.indexFailed(seg, err)
	}
	defer s.indexes.release(x)
	var live int64
	var found *witness
	err = x.Rows(func(id PartitionID, r queue.Row) bool {
		if r.Entries == 0 {
			return true
		}
		at := rowRange{r.First, r.Last}
		if share := s.liveIn(seg, id, at); share > 0 {
			live += int64(share * float64(r.Bytes))
			if found == nil || r.Last-r.First > found.row.last-found.row.first {
				found = &witness{id: id, row: at}
			}
		}
		return true
	})
	if err != nil {
		return false, s.indexFailed(seg, err)
	}
	seg.live.Store(live)
	seg.witness.Store(found)
	return found == nil, nil
}

// liveIn returns which share of a partition's offsets in a segment is live.
func (s *Store) liveIn(seg *segment, id PartitionID, r rowRange) float64 {
	p := s.Partition(id)
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleted != 0 {
		return 0
	}
	first, end := max(r.first, p.q.Start()), r.last+1
	for _, c := range p.q.Cuts() {
		if c.LSN >= seg.end { // An earlier one was applied before the index was written.
			end = min(end, c.Offset)
		}
	}
	if first >= end {
		return 0
	}
	return float64(end-first) / float64(r.last+1-r.first)
}
