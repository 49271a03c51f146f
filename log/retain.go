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
// long as at least the limit is left. It also forgets idle producers.
func (s *Store) Retain(now time.Time, policy func(*Partition) Retention) error {
	var moves []startMove
	var errs []error
	var freed int64
	idle := now.Add(-s.o.ProducerExpiry()).UnixMilli()
	oldest := s.oldest()
	for _, p := range s.all() {
		p.tidy(idle, oldest)
		r := policy(p)
		if !r.Delete || !p.mayExpire(now.UnixMilli(), r) {
			continue
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

// tidy forgets idle producers and cuts that no segment needs any more.
func (p *Partition) tidy(idle int64, oldest commitlog.LSN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.q.Producers.Expire(idle)
	p.q.ForgetCuts(oldest)
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
	left := p.q.Bytes()
	below := min(p.highWatermark.Load(), p.durable.Load())
	p.mu.Unlock()
	var stopped *queue.Entry
	expired := func(newest int64) bool { return r.Ms >= 0 && now-newest > r.Ms }
	surplus := func(size int64) bool { return r.Bytes >= 0 && left-size >= r.Bytes }
	aging := true // Time stops at the first batch that is young enough.
	remove := func(next, size int64) {
		m.to, m.removed, left = next, m.removed+size, left-size
	}
	w := walker{p: p, from: m.from, minTimestamp: minTime}
	w.row = func(row *queue.Row) bool {
		if row.Last >= below || !(aging && expired(row.MaxTimestamp)) && !surplus(row.Bytes) {
			return false
		}
		aging = aging && expired(row.MaxTimestamp)
		remove(row.Last+1, row.Bytes)
		return true
	}
	w.entry = func(_ commitlog.SegmentID, e *queue.Entry) bool {
		aging = aging && expired(e.MaxTimestamp)
		if e.Next() > below || !aging && !surplus(int64(e.Size)) {
			stopped = &queue.Entry{Base: e.Base, MaxTimestamp: e.MaxTimestamp}
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
	p.head = headTime{}
	if stopped != nil {
		p.head = headTime{start: max(m.to, m.from), timestamp: stopped.MaxTimestamp, known: true}
	}
	return m, nil
}
