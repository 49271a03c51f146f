package log

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/protocol/batch"
)

// Truncate rewinds the log end to an offset; one within a batch means that
// batch's base. epoch is the leader epoch in whose name it happens. Durable on
// return. The caller does not append meanwhile.
func (p *Partition) Truncate(to int64, epoch int32) error {
	for attempt := 0; ; attempt++ {
		err := p.truncate(to, epoch)
		if errors.Is(err, errOvertaken) && attempt < maxAttempts || errors.Is(err, commitlog.ErrSegmentGone) && attempt < maxAttempts {
			continue
		}
		if err != nil {
			return fmt.Errorf("truncate %v to %d: %w", p.id, to, err)
		}
		return nil
	}
}

// errOvertaken: the queue changed between planning and placing.
var errOvertaken = errors.New("log changed meanwhile")

func (p *Partition) truncate(to int64, epoch int32) error {
	p.mu.Lock()
	end, asOf, start := p.q.End(), p.q.AsOf(), p.q.Start()
	p.mu.Unlock()
	if to >= end {
		return nil
	}
	if to < start {
		return fmt.Errorf("log begins at %d: %w", start, ErrOffsetOutOfRange)
	}
	if e, found, err := p.firstFrom(to); err != nil {
		return err
	} else if found && e.Base < to {
		to = e.Base
	}
	kept, err := p.bytesBelow(to)
	if err != nil {
		return err
	}
	producers, err := p.producersAt(to)
	if err != nil {
		return err
	}
	p.mu.Lock()
	removed := max(p.q.Bytes()-kept, 0)
	p.mu.Unlock()
	cut := rewind{to: to, epoch: epoch, removed: removed, producers: producers, asOf: asOf}
	payload := appendTruncate(nil, removed, &producers)
	room, err := p.store.log.Reserve(commitlog.Budget{Bytes: len(payload), Class: commitlog.Internal})
	if err != nil {
		return err
	}
	defer room.Release()
	upto, err := p.placeTruncate(&room, cut, payload)
	if err != nil {
		return err
	}
	return p.store.log.Commit(upto, commitlog.Synced)
}

// rewind is a truncation that was worked out.
type rewind struct {
	to, removed int64
	epoch       int32
	producers   queue.Producers
	asOf        commitlog.LSN // of the queue that it was worked out on
}

// placeTruncate puts the frame into the log if nothing changed meanwhile.
func (p *Partition) placeTruncate(room *commitlog.Reservation, r rewind, payload []byte) (commitlog.LSN, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, ErrDeleted
	}
	if p.q.AsOf() != r.asOf {
		return 0, errOvertaken
	}
	place, err := room.Place(commitlog.Header{Kind: commitlog.Truncate, ID: p.id, LeaderEpoch: r.epoch, BaseOffset: r.to}, &p.tag, payload)
	if err != nil {
		return 0, err
	}
	p.q.Truncate(place.LSN, r.to, r.removed, r.producers)
	p.touchLocked(place.LSN)
	p.rewound = place.End()
	p.head = headTime{}
	p.publishLocked()
	p.durable.Store(min(p.durable.Load(), r.to))
	p.highWatermark.Store(min(p.highWatermark.Load(), r.to))
	return place.End(), nil
}

// producersAt works out what was known of producers when the log ended at an
// offset. Only those that a batch at or above it touched need a replay: from
// the newest state on disk that is not beyond the offset, and the headers of
// the batches since.
func (p *Partition) producersAt(end int64) (queue.Producers, error) {
	touched := make(map[int64]bool)
	err := p.eachHeader(end, p.End(), func(_ *located, h *batch.Header) error {
		touched[h.ProducerID] = true
		return nil
	})
	if err != nil {
		return queue.Producers{}, err
	}
	replay := queue.New()
	if st, err := p.stateBelow(end); err != nil {
		return queue.Producers{}, err
	} else if st != nil {
		replay = st.Queue
	}
	err = p.eachHeader(replay.End(), end, func(e *located, h *batch.Header) error {
		if !touched[h.ProducerID] {
			return nil
		}
		return p.replayHeader(&replay, e, h)
	})
	if err != nil {
		return queue.Producers{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Producers.Rewound(end, touched, &replay.Producers), nil
}

// eachHeader calls fn for the batches in [from, to) that carry a producer id
// and can be read; those of dead batches below the log start are among them.
func (p *Partition) eachHeader(from, to int64, fn func(*located, *batch.Header) error) error {
	var batches []located
	w := walker{p: p, from: from, minTimestamp: minTime, entry: func(seg commitlog.SegmentID, e *queue.Entry) bool {
		if e.Next() <= to {
			batches = append(batches, located{seg, *e})
		}
		return e.Next() < to
	}}
	if err := w.walk(); err != nil {
		return err
	}
	head := make([]byte, batch.HeaderLen)
	for i := range batches {
		n, err := p.store.log.ReadHead(batches[i].place(), head)
		if errors.Is(err, commitlog.ErrCorrupt) {
			continue // What is damaged tells nothing.
		}
		if err != nil {
			return err
		}
		h, err := batch.ParseHeader(head[:n])
		if err != nil || !h.HasProducer() {
			continue
		}
		if err := fn(&batches[i], &h); err != nil {
			return err
		}
	}
	return nil
}

// replayHeader applies one batch of a producer.
func (p *Partition) replayHeader(q *queue.Queue, e *located, h *batch.Header) error {
	var marker *batch.Marker
	if h.IsControl() && h.IsTransactional() {
		whole, err := p.store.readWhole(e.place())
		if errors.Is(err, commitlog.ErrCorrupt) {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := batch.ParseMarker(whole)
		if err != nil {
			return nil //nolint:nilerror // What is damaged tells nothing.
		}
		marker = &m
	}
	q.Data(e.seg, e.Entry, h, marker, p.store.start.UnixMilli())
	return nil
}

// stateBelow finds the newest state on disk whose end is not beyond an offset
// and that no later cut reaches into; nil if there is none.
func (p *Partition) stateBelow(end int64) (*queue.State, error) {
	p.mu.Lock()
	cuts := p.q.Cuts()
	p.mu.Unlock()
	all := p.store.segments.all()
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].indexed() {
			continue
		}
		st, err := p.stateIn(all[i])
		if err != nil {
			return nil, err
		}
		if st != nil && !st.Deleted && st.Queue.End() <= end && untouched(cuts, st) {
			return st, nil
		}
	}
	return nil, nil
}

// untouched reports whether no cut after the state reaches below its end.
func untouched(cuts []queue.Cut, st *queue.State) bool {
	for _, c := range cuts {
		if c.LSN > st.Queue.AsOf() && c.Offset < st.Queue.End() {
			return false
		}
	}
	return true
}

// stateIn reads the partition's state in one index, nil if it has none.
func (p *Partition) stateIn(seg *segment) (*queue.State, error) {
	x, err := p.store.indexes.get(seg)
	if err != nil {
		return nil, p.store.indexFailed(seg, err)
	}
	defer p.store.indexes.release(x)
	row, ok, err := x.Lookup(p.id)
	if err != nil || !ok {
		return nil, p.store.indexFailed(seg, err)
	}
	st, err := x.State(&row)
	return st, p.store.indexFailed(seg, err)
}
