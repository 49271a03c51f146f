package log

import (
	"errors"
	"fmt"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/protocol/batch"
)

// Append stores records; the caller then waits with Store.Commit, or calls
// Store.Kick if it does not wait.
func (p *Partition) Append(a Append) (Appended, error) {
	if a.Origin == Replica {
		return p.appendReplica(a)
	}
	return p.appendOne(a.Records, &a)
}

// appendReplica stores a leader's batches one by one. On an error, Appended
// covers those that were stored before.
func (p *Partition) appendReplica(a Append) (Appended, error) {
	all := Appended{BaseOffset: p.End(), LastOffset: p.End() - 1, MaxTimestamp: -1, Start: p.Start()}
	for i, rest := 0, a.Records; len(rest) > 0; i++ {
		h, err := batch.ParseHeader(rest)
		if errors.Is(err, batch.ErrShort) || err == nil && h.Size() > len(rest) {
			return all, nil // A leader may cut the last batch where its limit says.
		}
		if err != nil {
			return all, fmt.Errorf("append to %v: %w", p.id, err)
		}
		one, err := p.appendOne(rest[:h.Size()], &a)
		if err != nil {
			return all, err
		}
		if i == 0 {
			all.BaseOffset = one.BaseOffset
		}
		all.LastOffset, all.Start = one.LastOffset, one.Start
		all.MaxTimestamp = max(all.MaxTimestamp, one.MaxTimestamp)
		all.Ticket = all.Ticket.Max(one.Ticket)
		rest = rest[h.Size():]
	}
	return all, nil
}

// appendOne stores one batch: room first, then all that needs the lock.
func (p *Partition) appendOne(records []byte, a *Append) (Appended, error) {
	h, err := batch.ParseHeader(records)
	if err != nil {
		return Appended{}, fmt.Errorf("append to %v: %w", p.id, err)
	}
	if h.Size() != len(records) || h.LastOffsetDelta < 0 {
		return Appended{}, fmt.Errorf("append to %v: batch of %d bytes in %d: %w", p.id, h.Size(), len(records), ErrNotContiguous)
	}
	var marker *batch.Marker
	if h.IsControl() && h.IsTransactional() {
		m, err := batch.ParseMarker(records)
		if err != nil {
			return Appended{}, fmt.Errorf("append to %v: %w", p.id, err)
		}
		marker = &m
	}
	budget := commitlog.Budget{Bytes: len(records), Durability: p.logDurability()}
	if a.Origin == Coordinator {
		budget.Class = commitlog.Internal
	}
	room, err := p.store.log.Reserve(budget)
	if err != nil {
		return Appended{}, fmt.Errorf("append to %v: %w", p.id, err)
	}
	defer room.Release()
	now := time.Now().UnixMilli()

	p.mu.Lock()
	defer p.mu.Unlock()
	if r, done, err := p.checkLocked(&h, marker, a); done || err != nil {
		return r, err
	}
	return p.placeLocked(&room, records, &h, marker, now)
}

// logDurability is the partition's durability as the log names it.
func (p *Partition) logDurability() commitlog.Durability {
	if p.Durability() == Async {
		return commitlog.Written
	}
	return commitlog.Synced
}

// checkLocked decides whether the batch may be appended; done means that it
// is a duplicate and what to answer. It gives h its offset and epoch.
// REQUIRES: mu held.
func (p *Partition) checkLocked(h *batch.Header, marker *batch.Marker, a *Append) (r Appended, done bool, err error) {
	if p.gone {
		return r, false, ErrDeleted
	}
	if a.Origin == Replica {
		if h.BaseOffset != p.q.End() {
			return r, false, fmt.Errorf("append to %v: batch at %d, log ends at %d: %w", p.id, h.BaseOffset, p.q.End(), ErrNotContiguous)
		}
		return r, false, nil
	}
	if a.LeaderEpoch != p.begun || p.begun != p.q.Epochs.Latest() {
		return r, false, fmt.Errorf("append to %v in epoch %d, begun is %d: %w", p.id, a.LeaderEpoch, p.begun, ErrEpoch)
	}
	h.BaseOffset, h.LeaderEpoch = p.q.End(), a.LeaderEpoch
	if marker != nil {
		err := p.q.Producers.CheckMarker(*marker)
		if err == nil && a.Raised {
			err = p.q.Producers.CheckRaised(*marker)
		}
		return r, false, err
	}
	if err := p.q.Producers.CheckGuard(h, a.Guard); err != nil {
		return r, false, err
	}
	known, err := p.q.Producers.Check(h)
	if err != nil || known == nil {
		return r, false, err
	}
	r = Appended{BaseOffset: known.BaseOffset(), LastOffset: known.LastOffset, MaxTimestamp: known.MaxTimestamp, Duplicate: true, Start: p.q.Start()}
	if known.LastOffset >= p.durable.Load() {
		r.Ticket = p.ticket(p.placed)
	}
	return r, true, nil
}

// placeLocked puts a checked batch into the log and the queue. REQUIRES: mu held.
func (p *Partition) placeLocked(room *commitlog.Reservation, records []byte, h *batch.Header, marker *batch.Marker, now int64) (Appended, error) {
	batch.Stamp(records, h.BaseOffset, h.LeaderEpoch)
	timestamp := h.MaxTimestamp
	if timestamp < 0 {
		timestamp = now // Without a time of its own a batch ages from here.
	}
	count := h.LastOffsetDelta + 1
	place, err := room.Place(commitlog.Header{
		Kind: commitlog.Data, ID: p.id, LeaderEpoch: h.LeaderEpoch, BaseOffset: h.BaseOffset,
		OffsetCount: count, MaxTimestamp: timestamp,
	}, &p.tag, records)
	if err != nil {
		return Appended{}, fmt.Errorf("append to %v: %w", p.id, err)
	}
	p.q.Data(place.Segment, queue.Entry{
		Base: h.BaseOffset, LSN: place.LSN, MaxTimestamp: timestamp, Pos: uint32(place.Offset), Size: place.Size,
		Count: count, Epoch: h.LeaderEpoch,
	}, h, marker, now)
	p.touchLocked(place.LSN)
	p.placed = place.End()
	p.end.Store(p.q.End())
	return Appended{BaseOffset: h.BaseOffset, LastOffset: h.LastOffset(), MaxTimestamp: h.MaxTimestamp, Ticket: p.ticket(p.placed), Start: p.q.Start()}, nil
}

// ticket waits for everything below the LSN, as the partition's durability asks.
func (p *Partition) ticket(upto commitlog.LSN) Ticket {
	if p.Durability() == Async {
		return Ticket{written: upto}
	}
	return Ticket{synced: upto}
}
