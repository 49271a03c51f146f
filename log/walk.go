package log

import (
	"errors"
	"math"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// minTime is below every timestamp.
const minTime = math.MinInt64

// walker visits a partition's live batches in offset order: first what
// indexes of sealed segments hold, then what is in memory.
type walker struct {
	p            *Partition
	from         int64
	minTimestamp int64 // batches that are older for sure may be left out
	// lazy looks into one segment after the other, from the one named on,
	// instead of finding all that hold the partition: for a walk that ends soon.
	lazy  bool
	first commitlog.SegmentID
	// row may decide on all batches of a row at once: true passes over it.
	// It is asked only if all of the row is live and at or above from.
	row func(r *queue.Row) bool
	// entry returns false to end. It is called with the partition's lock held
	// for entries in memory, so it must be quick and take no lock.
	entry func(seg commitlog.SegmentID, e *queue.Entry) bool
}

// walk visits. An error is ErrSegmentGone if segments went meanwhile.
func (w *walker) walk() error {
	p := w.p
	next := w.from
	p.mu.Lock()
	for {
		memory, cuts := p.q.MemoryBase(), p.q.Cuts()
		if next >= memory {
			break
		}
		p.mu.Unlock()
		goOn, err := w.cold(&next, cuts)
		if err != nil || !goOn {
			return err
		}
		p.mu.Lock()
		if p.q.MemoryBase() == memory {
			break
		} // Else entries went from memory to an index meanwhile.
	}
	defer p.mu.Unlock()
	p.q.Each(next, func(seg commitlog.SegmentID, e *queue.Entry) bool {
		return e.MaxTimestamp < w.minTimestamp || w.entry(seg, e)
	})
	return nil
}

// cold visits what indexes hold from *next on and moves *next behind it.
func (w *walker) cold(next *int64, cuts []queue.Cut) (goOn bool, err error) {
	s := w.p.store
	if w.lazy {
		for _, seg := range s.segments.all() {
			if seg.id < w.first || !seg.indexed() {
				continue
			}
			row, ok, err := s.lookup(seg, w.p.id)
			if err != nil {
				return false, err
			}
			if !ok || row.Entries == 0 {
				continue
			}
			if goOn, err := w.visit(&segmentRow{seg, row}, next, cuts); err != nil || !goOn {
				return false, err
			}
		}
		return true, nil
	}
	rows, err := s.rows(w.p.id)
	if err != nil {
		return false, err
	}
	for i := range rows {
		if goOn, err := w.visit(&rows[i], next, cuts); err != nil || !goOn {
			return false, err
		}
	}
	return true, nil
}

// visit visits one row.
func (w *walker) visit(r *segmentRow, next *int64, cuts []queue.Cut) (goOn bool, err error) {
	if r.row.Last < *next || r.row.MaxTimestamp < w.minTimestamp {
		return true, nil
	}
	if w.row != nil && r.row.First >= *next && allLive(cuts, r) && w.row(&r.row) {
		*next = r.row.Last + 1
		return true, nil
	}
	goOn = true
	err = w.p.store.scanRow(r, *next, w.minTimestamp, func(e *queue.Entry) bool {
		if e.Next() > *next && queue.Live(cuts, e) {
			*next = e.Next()
			goOn = w.entry(r.seg.id, e)
		}
		return goOn
	})
	return goOn, err
}

// allLive reports whether no cut reaches into the row.
func allLive(cuts []queue.Cut, r *segmentRow) bool {
	for _, c := range cuts {
		if c.LSN > r.seg.base && c.Offset <= r.row.Last {
			return false
		}
	}
	return true
}

// firstFrom finds the first live batch that reaches beyond offset.
func (p *Partition) firstFrom(offset int64) (found queue.Entry, ok bool, err error) {
	w := walker{p: p, from: offset, minTimestamp: minTime, entry: func(_ commitlog.SegmentID, e *queue.Entry) bool {
		found, ok = *e, true
		return false
	}}
	err = w.walk()
	return found, ok, err
}

// bytesBelow returns the bytes of the live batches that end at or below the
// offset and reach beyond the log start.
func (p *Partition) bytesBelow(offset int64) (int64, error) {
	p.mu.Lock()
	if offset >= p.q.End() {
		defer p.mu.Unlock()
		return p.q.Bytes(), nil
	}
	start := p.q.Start()
	p.mu.Unlock()
	var sum int64
	w := walker{p: p, from: start, minTimestamp: minTime}
	w.row = func(r *queue.Row) bool {
		if r.Last < offset {
			sum += r.Bytes
			return true
		}
		return false
	}
	w.entry = func(_ commitlog.SegmentID, e *queue.Entry) bool {
		if e.Next() > offset {
			return false
		}
		sum += int64(e.Size)
		return true
	}
	for attempt := 0; ; attempt++ {
		sum = 0
		if err := w.walk(); !errors.Is(err, commitlog.ErrSegmentGone) || attempt == maxAttempts {
			return sum, err
		}
	}
}
