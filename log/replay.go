package log

import (
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/protocol/batch"
)

// get returns a partition while replaying; one that is unknown is made, for a
// partition is only absent when its creation was lost.
func (r *recovery) get(id PartitionID) *Partition {
	p := r.s.partitions[id]
	if p == nil {
		p = newPartition(r.s, id, r.s.topics[id.Topic], Fsync)
		r.s.partitions[id] = p
		r.lost[id] = true
	}
	return p
}

// frame replays one frame. It changes entries always, state only if the frame
// is newer than the state.
func (r *recovery) frame(f commitlog.Frame) error {
	switch f.Kind {
	case commitlog.Data:
		return r.data(&f)
	case commitlog.Create:
		return readCreates(f.Payload, func(c CreateSpec) { r.create(c, f.LSN) })
	case commitlog.Delete:
		return readDeletes(f.Payload, func(id PartitionID) { r.delete(id, f.LSN) })
	case commitlog.LogStart:
		return readStarts(f.Payload, func(i startItem) {
			if p := r.s.partitions[i.id]; p != nil && p.q.AsOf() < f.LSN {
				p.q.MoveStart(f.LSN, i.start, i.removed)
				p.touchLocked(f.LSN)
			}
		})
	case commitlog.Epoch:
		if p := r.known(&f); p != nil {
			p.q.BeginEpoch(f.LSN, f.LeaderEpoch, f.BaseOffset)
			p.touchLocked(f.LSN)
		}
		return nil
	case commitlog.Truncate:
		return r.truncate(&f)
	}
	return fmt.Errorf("replay %v frame at %d: %w", f.Kind, f.LSN, commitlog.ErrFormatTooNew)
}

// known returns the frame's partition, or nil if the checkpoint tells that it
// was deleted.
func (r *recovery) known(f *commitlog.Frame) *Partition {
	if p := r.s.partitions[f.ID]; p != nil || f.LSN < r.upto {
		return p
	}
	return r.get(f.ID)
}

func (r *recovery) data(f *commitlog.Frame) error {
	p := r.known(f)
	if p == nil {
		return nil
	}
	h, err := batch.ParseHeader(f.Payload)
	if err != nil {
		return fmt.Errorf("replay batch at %d: %w", f.LSN, err)
	}
	var marker *batch.Marker
	if h.IsControl() && h.IsTransactional() {
		m, err := batch.ParseMarker(f.Payload)
		if err != nil {
			return fmt.Errorf("replay marker at %d: %w", f.LSN, err)
		}
		marker = &m
	}
	h.BaseOffset, h.LeaderEpoch = f.BaseOffset, f.LeaderEpoch
	p.q.Data(f.Segment, entryOf(f), &h, marker, r.now)
	p.touchLocked(f.LSN)
	p.placed = f.End()
	return nil
}

// entryOf returns the entry of a data frame.
func entryOf(f *commitlog.Frame) queue.Entry {
	return queue.Entry{
		Base: f.BaseOffset, LSN: f.LSN, MaxTimestamp: f.MaxTimestamp, Pos: uint32(f.Offset), Size: f.Size,
		Count: f.OffsetCount, Epoch: f.LeaderEpoch,
	}
}

func (r *recovery) create(c CreateSpec, lsn commitlog.LSN) {
	if p := r.s.partitions[c.ID]; p != nil {
		if r.lost[c.ID] {
			delete(r.lost, c.ID)
			p.topic = r.s.intern(c.ID, c.Name)
		}
		return
	}
	if lsn < r.upto {
		return // Deleted since.
	}
	p := r.s.born(c, lsn)
	p.touchLocked(lsn)
	r.s.partitions[c.ID] = p
}

func (r *recovery) delete(id PartitionID, lsn commitlog.LSN) {
	p := r.s.partitions[id]
	if p == nil {
		return
	}
	delete(r.s.partitions, id)
	r.s.tombs = append(r.s.tombs, tomb{id, lsn})
}

func (r *recovery) truncate(f *commitlog.Frame) error {
	p := r.known(f)
	if p == nil {
		return nil
	}
	removed, producers, err := readTruncate(f.Payload)
	if err != nil {
		return err
	}
	p.q.Truncate(f.LSN, f.BaseOffset, removed, producers)
	p.touchLocked(f.LSN)
	return nil
}
