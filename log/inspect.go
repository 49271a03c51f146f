package log

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// Report is what Check found.
type Report struct {
	Segments, Partitions int
	Frames, Batches      int64
	Records, Bytes       int64
	Clean                bool     // the last stop was clean
	Torn                 int64    // bytes behind the last whole frame, which the next start cuts off
	Problems             []string // empty: all is well
}

// openReadOnly recovers a stopped store without changing anything.
func openReadOnly(fs vfs.FS, dir string, e Events) (*Store, error) {
	s := newStore(Options{FS: fs, Dir: dir, Events: e}.defaults())
	o := s.logOptions()
	o.ReadOnly = true
	l, err := commitlog.Open(o)
	if err != nil {
		return nil, fmt.Errorf("open log in %s: %w", dir, err)
	}
	s.log = l
	if err := s.recover(); err != nil {
		s.indexes.close()
		return nil, errors.Join(fmt.Errorf("open log in %s: %w", dir, err), l.Close())
	}
	return s, nil
}

// closeReadOnly ends what openReadOnly began.
func (s *Store) closeReadOnly() error {
	s.indexes.close()
	return s.log.Close()
}

// frames calls fn for the frames of a segment. After an unclean stop those of
// the open tail are the ones that recovery will find.
func (s *Store) frames(i commitlog.SegmentInfo, fn func(commitlog.Frame) error) error {
	if i.Sealed || s.log.Manifest().Clean {
		return s.log.Scan(i.ID, fn)
	}
	l, err := commitlog.Open(commitlog.Options{FS: s.o.FS, Dir: s.o.Dir, ReadOnly: true})
	if err != nil {
		return err
	}
	err = l.Recover(func(f commitlog.Frame) error {
		if f.Segment != i.ID {
			return nil
		}
		return fn(f)
	})
	return errors.Join(err, l.Close())
}

// Check walks everything in a stopped store without changing it: every frame,
// batch and record, every index against the frames, every partition's chain
// of offsets. What it finds wrong is in the report; an error means that it
// could not look.
func Check(fs vfs.FS, dir string) (Report, error) {
	c := checker{}
	s, err := openReadOnly(fs, dir, Events{
		Corrupt: func(sp CorruptSpan) {
			c.problem("%s: %d bytes at %d are damaged (%s), offsets %d to %d of %q %v", sp.File, sp.Size, sp.Pos, sp.Reason, sp.First, sp.Last, sp.Topic, sp.ID)
		},
		Background: func(what string, err error) { c.problem("%s: %v", what, err) },
		TornTail:   func(_ string, _, n int64) { c.Torn += n },
	})
	if err != nil {
		return c.Report, err
	}
	c.s = s
	m := s.log.Manifest()
	c.Clean = m.Clean
	for _, seg := range m.Segments {
		if err := c.segment(seg); err != nil {
			return c.Report, errors.Join(err, s.closeReadOnly())
		}
	}
	for _, p := range sortedIDs(s.all()) {
		c.Partitions++
		if err := c.partition(p); err != nil {
			return c.Report, errors.Join(err, s.closeReadOnly())
		}
	}
	return c.Report, s.closeReadOnly()
}

// checker gathers a report.
type checker struct {
	Report
	s *Store
}

func (c *checker) problem(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

// segment checks a segment's frames and its index against them.
func (c *checker) segment(i commitlog.SegmentInfo) error {
	c.Segments++
	found := make(map[PartitionID][]queue.Entry)
	err := c.s.frames(i, func(f commitlog.Frame) error {
		c.Frames++
		c.Bytes += int64(f.Size)
		if f.Kind == commitlog.Data {
			c.batch(i.File, &f)
			found[f.ID] = append(found[f.ID], entryOf(&f))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check segment %s: %w", i.File, err)
	}
	c.quarantined(i)
	if i.Index == "" {
		return nil
	}
	x, err := queue.OpenIndex(c.s.o.FS, c.s.o.Dir, i.Index)
	if err != nil {
		c.problem("index of segment %s: %v", i.File, err)
		return nil
	}
	defer func() { _ = x.Close() }() // Nothing was written.
	if x.Info().Segment != i.ID || x.Info().End != i.End {
		c.problem("index %s is of segment %v up to %d, not %v up to %d", i.Index, x.Info().Segment, x.Info().End, i.ID, i.End)
	}
	c.index(i, x, found)
	return nil
}

// quarantined reports the spans of a segment that were set aside before, and
// whose offsets they hold.
func (c *checker) quarantined(i commitlog.SegmentInfo) {
	for _, span := range c.s.log.Manifest().Quarantined {
		if span.Segment != i.ID {
			continue
		}
		known := false
		for _, p := range sortedIDs(c.s.all()) {
			err := p.eachIn(i.ID, func(e *queue.Entry) {
				if int64(e.Pos) < span.To && int64(e.Pos)+int64(e.Size) > span.From {
					known = true
					c.problem("%s: %d bytes at %d are damaged and set aside: partition %s-%d, offsets %d to %d", i.File, span.To-span.From, span.From, p.topic, p.id.Partition, e.Base, e.Last())
				}
			})
			if err != nil {
				c.problem("index of segment %s: partition %v: %v", i.File, p.id, err)
			}
		}
		if !known {
			c.problem("%s: %d bytes at %d are damaged and set aside: no live record lies there", i.File, span.To-span.From, span.From)
		}
	}
}

// eachIn calls fn for the partition's live entries in one segment.
func (p *Partition) eachIn(id commitlog.SegmentID, fn func(*queue.Entry)) error {
	for _, e := range p.q.InSegment(id) {
		fn(&e)
	}
	for _, seg := range p.store.segments.all() {
		if seg.id != id || !seg.indexed() {
			continue
		}
		row, ok, err := p.store.lookup(seg, p.id)
		if err != nil || !ok {
			return err
		}
		return p.store.scanRow(&segmentRow{seg, row}, p.q.Start(), minTime, func(e *queue.Entry) bool {
			if p.q.Live(e) {
				fn(e)
			}
			return true
		})
	}
	return nil
}

// batch checks one batch against its frame, and its records.
func (c *checker) batch(file string, f *commitlog.Frame) {
	c.Batches++
	h, err := batch.ParseHeader(f.Payload)
	if err != nil {
		c.problem("%s at %d: %v", file, f.Offset, err)
		return
	}
	if h.BaseOffset != f.BaseOffset || h.LeaderEpoch != f.LeaderEpoch || h.LastOffsetDelta+1 != f.OffsetCount || h.Size() != len(f.Payload) {
		c.problem("%s at %d: batch header differs from its frame's", file, f.Offset)
	}
	for _, err := range batch.Records(f.Payload) {
		if err != nil {
			c.problem("%s at %d: partition %v offset %d: %v", file, f.Offset, f.ID, f.BaseOffset, err)
			return
		}
		c.Records++
	}
}

// index compares an index with the frames of its segment.
func (c *checker) index(i commitlog.SegmentInfo, x *queue.Index, found map[PartitionID][]queue.Entry) {
	indexed := make(map[PartitionID]map[queue.Entry]bool)
	err := x.Rows(func(id PartitionID, r queue.Row) bool {
		have := make(map[queue.Entry]bool, r.Entries)
		sum := int64(0)
		if err := x.Scan(&r, 0, minTime, func(e *queue.Entry) bool {
			have[*e] = true
			sum += int64(e.Size)
			return true
		}); err != nil {
			c.problem("index %s: partition %v: %v", i.Index, id, err)
		}
		if sum != r.Bytes {
			c.problem("index %s: partition %v: row says %d bytes, entries %d", i.Index, id, r.Bytes, sum)
		}
		indexed[id] = have
		return true
	})
	if err == nil {
		err = x.States(func(PartitionID, *queue.State) error { return nil })
	}
	if err != nil {
		c.problem("index %s: %v", i.Index, err)
	}
	for id, es := range found {
		p := c.s.Partition(id)
		for _, e := range es {
			if indexed[id][e] {
				delete(indexed[id], e)
			} else if p != nil && e.Next() > p.q.Start() && p.q.Live(&e) {
				c.problem("index %s: partition %v: live batch at offset %d is missing", i.Index, id, e.Base)
			}
		}
	}
	for id, left := range indexed {
		for e := range left {
			if p := c.s.Partition(id); p == nil || !p.inHole(e.Base) {
				c.problem("index %s: partition %v: offset %d names no frame", i.Index, id, e.Base)
			}
		}
	}
}

func (p *Partition) inHole(offset int64) bool {
	_, ok := p.q.HoleAt(offset)
	return ok
}

// partition checks that a partition's batches follow each other from its
// start to its end, and what they add up to.
func (c *checker) partition(p *Partition) error {
	next, sum := p.Start(), int64(0)
	w := walker{p: p, from: p.Start(), minTimestamp: minTime, entry: func(_ commitlog.SegmentID, e *queue.Entry) bool {
		if e.Base > next {
			c.gap(p, next, e.Base)
		}
		if e.Base < next && next != p.q.Start() {
			c.problem("partition %v: batch at %d overlaps the one before, which ends at %d", p.id, e.Base, next)
		}
		next = e.Next()
		sum += int64(e.Size)
		return true
	}}
	if err := w.walk(); err != nil {
		c.problem("partition %v: %v", p.id, err)
		return nil
	}
	if next < p.End() {
		c.gap(p, next, p.End())
	}
	if next > p.End() {
		c.problem("partition %v: batches end at %d, the log at %d", p.id, next, p.End())
	}
	if got := p.q.Bytes(); got != sum && len(p.q.Holes()) == 0 {
		c.problem("partition %v: %d bytes counted, batches add up to %d", p.id, got, sum)
	}
	if p.highWatermark.Load() > p.End() {
		c.problem("partition %v: high watermark %d is above the end %d", p.id, p.HighWatermark(), p.End())
	}
	return nil
}

// gap reports missing offsets; known damage is reported as such.
func (c *checker) gap(p *Partition, from, to int64) {
	for _, h := range p.q.Holes() {
		if h.First <= from && to-1 <= h.Last {
			c.problem("partition %v (%s): offsets %d to %d are damaged", p.id, p.topic, from, to-1)
			return
		}
	}
	c.problem("partition %v (%s): offsets %d to %d are missing", p.id, p.topic, from, to-1)
}
