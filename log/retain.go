package log

import (
	"errors"
	"fmt"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// Retain runs one retention pass over all partitions and has dead segments
// freed. Batches go from the head of a partition, only below its high
// watermark: by time up to the first batch that is young enough, by size as
// long as at least the limit is left.
func (s *Store) Retain(now time.Time, policy func(*Partition) Retention) error {
	var moves []startMove
	var freed int64
	oldest := s.oldest()
	limits := make(map[*Partition]Retention)
	for _, p := range s.all() {
		p.forgetCuts(oldest)
		if r := policy(p); r.Delete && p.mayExpire(now.UnixMilli(), r) {
			limits[p] = r
		}
	}
	var errs []error
	if err := s.findHeads(limits); err != nil {
		errs = append(errs, fmt.Errorf("retain: %w", err))
	}
	for p, r := range limits {
		if !p.mayExpire(now.UnixMilli(), r) {
			continue // What was found of its head settles it.
		}
		m, err := p.planRetention(now.UnixMilli(), r)
		if err != nil {
			errs = append(errs, fmt.Errorf("retain %v: %w", p.id, err))
			continue
		}
		if m.to > m.from {
			moves = append(moves, m)
			freed += m.removed
		}
	}
	if len(moves) > 0 {
		s.serial <- struct{}{}
		t, _, err := s.moveSerial(moves) // What another move overtook waits for the next pass.
		<-s.serial
		if err == nil {
			err = s.Commit(t)
		}
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("retain: %w", err))...)
		}
		if s.o.Events.StartsMoved != nil {
			s.o.Events.StartsMoved(len(moves), freed)
		}
	}
	s.wakeCollector()
	return errors.Join(errs...)
}

// oldest returns the first LSN that any segment holds.
func (s *Store) oldest() commitlog.LSN {
	if all := s.segments.all(); len(all) > 0 {
		return all[0].base
	}
	return 0
}

// forgetCuts forgets cuts that no segment needs any more.
func (p *Partition) forgetCuts(oldest commitlog.LSN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.q.ForgetCuts(oldest)
}

// ExpireProducers forgets producers that have been idle for Options.ProducerExpiry.
func (s *Store) ExpireProducers(now time.Time) {
	idle := now.Add(-s.o.ProducerExpiry()).UnixMilli()
	for _, p := range s.all() {
		p.mu.Lock()
		p.q.Producers.Expire(idle)
		p.mu.Unlock()
	}
}

// mayExpire tells without reading whether a pass must look closer.
func (p *Partition) mayExpire(now int64, r Retention) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := p.q.Start()
	if p.gone || start == p.q.End() || p.highWatermark.Load() <= start {
		return false
	}
	if r.Bytes >= 0 && p.q.Bytes() > r.Bytes {
		return true
	}
	if r.Ms < 0 {
		return false
	}
	return !p.head.known || p.head.start != start || now-p.head.timestamp > r.Ms
}

// planRetention works out where the log start goes.
func (p *Partition) planRetention(now int64, r Retention) (startMove, error) {
	for attempt := 0; ; attempt++ {
		m, err := p.tryRetention(now, r)
		if !errors.Is(err, commitlog.ErrSegmentGone) || attempt == maxAttempts {
			return m, err
		}
	}
}

func (p *Partition) tryRetention(now int64, r Retention) (startMove, error) {
	p.mu.Lock()
	m := startMove{p: p, from: p.q.Start(), to: p.q.Start()}
	first := commitlog.SegmentID(0)
	if p.head.known && p.head.start == m.from {
		first = p.head.seg
	}
	left := p.q.Bytes()
	below := min(p.highWatermark.Load(), p.durable.Load())
	p.mu.Unlock()
	head := headTime{}
	expired := func(newest int64) bool { return r.Ms >= 0 && now-newest > r.Ms }
	surplus := func(size int64) bool { return r.Bytes >= 0 && left-size >= r.Bytes }
	aging := true // Time stops at the first batch that is young enough.
	remove := func(next, size int64) {
		m.to, m.removed, left = next, m.removed+size, left-size
	}
	w := walker{p: p, from: m.from, minTimestamp: minTime, lazy: true, first: first}
	w.row = func(row *queue.Row) bool {
		if row.Last >= below || !(aging && expired(row.MaxTimestamp)) && !surplus(row.Bytes) {
			return false
		}
		aging = aging && expired(row.MaxTimestamp)
		remove(row.Last+1, row.Bytes)
		return true
	}
	w.entry = func(seg commitlog.SegmentID, e *queue.Entry) bool {
		aging = aging && expired(e.MaxTimestamp)
		if e.Next() > below || !aging && !surplus(int64(e.Size)) {
			head = headTime{start: m.to, timestamp: e.MaxTimestamp, seg: seg, known: true}
			return false
		}
		remove(e.Next(), int64(e.Size))
		return true
	}
	if err := w.walk(); err != nil {
		return m, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head = head
	return m, nil
}

// fewHeads is how many partitions are looked up one by one rather than by
// going through whole directories.
const fewHeads = 32

// findHeads finds the first live batch of the partitions of which it is not
// known. It goes through the directories, oldest first, so that each is read
// once for all partitions.
func (s *Store) findHeads(limits map[*Partition]Retention) error {
	wanted := make(map[PartitionID]*Partition)
	for p := range limits {
		if p.headUnknown() {
			wanted[p.id] = p
		}
	}
	if len(wanted) <= fewHeads {
		return nil
	}
	for _, seg := range s.segments.all() {
		if len(wanted) == 0 {
			return nil
		}
		if !seg.indexed() {
			continue
		}
		if err := s.headsIn(seg, wanted); err != nil && !errors.Is(err, commitlog.ErrSegmentGone) {
			return err
		}
	}
	return nil
}

// headUnknown reports whether the first batch lies in an index and was not looked up.
func (p *Partition) headUnknown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := p.q.Start()
	return !(p.head.known && p.head.start == start) && start < p.q.MemoryBase()
}

// headsIn notes and strikes off the partitions whose first batch lies in a segment.
func (s *Store) headsIn(seg *segment, wanted map[PartitionID]*Partition) error {
	x, err := s.indexes.get(seg)
	if err != nil {
		return s.indexFailed(seg, err)
	}
	defer s.indexes.release(x)
	var failed error
	err = x.Rows(func(id PartitionID, r queue.Row) bool {
		p := wanted[id]
		if p == nil || r.Entries == 0 || r.Last < p.Start() {
			return true
		}
		p.mu.Lock()
		start, cuts := p.q.Start(), p.q.Cuts()
		p.mu.Unlock()
		failed = x.Scan(&r, start, minTime, func(e *queue.Entry) bool {
			if !queue.Live(cuts, e) {
				return true
			}
			p.mu.Lock()
			p.head = headTime{start: start, timestamp: e.MaxTimestamp, seg: seg.id, known: true}
			p.mu.Unlock()
			delete(wanted, id)
			return false
		})
		return failed == nil
	})
	return s.indexFailed(seg, errors.Join(err, failed))
}
