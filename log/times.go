package log

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/protocol/batch"
)

// located is an entry and the segment it lies in.
type located struct {
	seg commitlog.SegmentID
	queue.Entry
}

func (l *located) place() commitlog.Place {
	return commitlog.Place{LSN: l.LSN, Segment: l.seg, Offset: int64(l.Pos), Size: l.Size}
}

// OffsetForTime finds the first record below upto whose timestamp is at least
// ts and whose offset is at least the log start. Damaged batches are passed over.
func (p *Partition) OffsetForTime(ts, upto int64) (offset, timestamp int64, epoch int32, ok bool, err error) {
	from := p.Start()
	for attempt := 0; ; {
		e, found, err := p.firstAtTime(from, ts)
		if err == nil && found && e.Base < upto {
			offset, timestamp, ok, err = p.searchBatch(&e, ts, p.Start())
			if err == nil && ok {
				return offset, timestamp, e.Epoch, offset < upto, nil
			}
		}
		switch {
		case errors.Is(err, commitlog.ErrSegmentGone) && attempt < maxAttempts:
			attempt++
			from = max(from, p.Start())
		case err != nil && !errors.Is(err, commitlog.ErrCorrupt):
			return -1, -1, -1, false, fmt.Errorf("find offset for time in %v: %w", p.id, err)
		case !found || e.Base >= upto:
			return -1, -1, -1, false, nil
		default:
			from = e.Next() // No record of the batch is meant, or it is damaged.
		}
	}
}

// firstAtTime finds the first batch that reaches beyond offset and may hold a
// record that is not older than ts.
func (p *Partition) firstAtTime(offset, ts int64) (found located, ok bool, err error) {
	w := walker{p: p, from: offset, minTimestamp: ts, entry: func(seg commitlog.SegmentID, e *queue.Entry) bool {
		if e.MaxTimestamp < ts {
			return true
		}
		found, ok = located{seg, *e}, true
		return false
	}}
	err = w.walk()
	return found, ok, err
}

// searchBatch reads a batch and finds its first record that is at or above
// the offset and not older than ts.
func (p *Partition) searchBatch(e *located, ts, from int64) (offset, timestamp int64, ok bool, err error) {
	b, err := p.store.readWhole(e.place())
	if err != nil {
		return 0, 0, false, err
	}
	offset, timestamp, ok, err = batch.FindTimestamp(b, ts, from)
	if err != nil {
		return 0, 0, false, fmt.Errorf("%w: %w", commitlog.ErrCorrupt, err)
	}
	return offset, timestamp, ok, nil
}

// readWhole returns a copy of one payload.
func (s *Store) readWhole(place commitlog.Place) ([]byte, error) {
	var pinned commitlog.Pinned
	n, err := s.log.Pin(&pinned, []commitlog.Place{place})
	if n == 1 {
		defer pinned.Release()
		b := make([]byte, 0, place.Size)
		for _, piece := range pinned.Buffers() {
			b = append(b, piece...)
		}
		return b, nil
	}
	return nil, err
}

// MaxTimestamp finds the first record below upto with the largest timestamp.
func (p *Partition) MaxTimestamp(upto int64) (offset, timestamp int64, epoch int32, ok bool, err error) {
	for attempt := 0; ; attempt++ {
		offset, timestamp, epoch, ok, err = p.maxTimestamp(upto)
		if !errors.Is(err, commitlog.ErrSegmentGone) || attempt == maxAttempts {
			break
		}
	}
	if err != nil {
		return -1, -1, -1, false, fmt.Errorf("find largest timestamp in %v: %w", p.id, err)
	}
	return offset, timestamp, epoch, ok, nil
}

// maxTimestamp looks into the batch whose entry says the largest timestamp.
// Entries of batches without timestamps carry the time of their append, so
// what is found there may be smaller: then the next candidates follow.
func (p *Partition) maxTimestamp(upto int64) (offset, timestamp int64, epoch int32, ok bool, err error) {
	offset, timestamp, epoch = -1, -1, -1
	limit := int64(maxTime)
	for {
		e, found, err := p.newest(upto, limit)
		if err != nil || !found || ok && e.MaxTimestamp <= timestamp {
			return offset, timestamp, epoch, ok, err
		}
		at, ts, has, err := p.newestInBatch(&e, upto)
		if err != nil && !errors.Is(err, commitlog.ErrCorrupt) {
			return -1, -1, -1, false, err
		}
		if err == nil && has && (!ok || ts > timestamp || ts == timestamp && at < offset) {
			offset, timestamp, epoch, ok = at, ts, e.Epoch, true
		}
		if ok && timestamp >= e.MaxTimestamp {
			return offset, timestamp, epoch, ok, nil
		}
		limit = e.MaxTimestamp
	}
}

// maxTime is above every timestamp.
const maxTime = 1<<63 - 1

// newest finds the first batch below upto with the largest timestamp that is
// below limit.
func (p *Partition) newest(upto, limit int64) (found located, ok bool, err error) {
	w := walker{p: p, from: p.Start(), minTimestamp: minTime}
	w.row = func(r *queue.Row) bool { return ok && r.MaxTimestamp <= found.MaxTimestamp || r.First >= upto }
	w.entry = func(seg commitlog.SegmentID, e *queue.Entry) bool {
		if e.Base >= upto {
			return false
		}
		if e.MaxTimestamp < limit && (!ok || e.MaxTimestamp > found.MaxTimestamp) {
			found, ok = located{seg, *e}, true
		}
		return true
	}
	err = w.walk()
	return found, ok, err
}

// newestInBatch finds the first record with the largest timestamp.
func (p *Partition) newestInBatch(e *located, upto int64) (offset, timestamp int64, ok bool, err error) {
	b, err := p.store.readWhole(e.place())
	if err != nil {
		return 0, 0, false, err
	}
	h, err := batch.ParseHeader(b)
	if err != nil {
		return 0, 0, false, fmt.Errorf("%w: %w", commitlog.ErrCorrupt, err)
	}
	if h.MaxTimestamp < 0 {
		return max(h.BaseOffset, p.Start()), -1, true, nil
	}
	offset, timestamp, ok, err = batch.FindTimestamp(b, h.MaxTimestamp, p.Start())
	if err != nil {
		return 0, 0, false, fmt.Errorf("%w: %w", commitlog.ErrCorrupt, err)
	}
	return offset, timestamp, ok && offset < upto, nil
}
