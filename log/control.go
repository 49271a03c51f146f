package log

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// control runs place while no capture of states runs, with room in the log
// for a payload. It is how frames about many partitions enter the log: what
// such a frame says is applied within place, so a capture sees all of it or
// nothing.
func (s *Store) control(payload int, frames int, place func(*commitlog.Reservation) error) error {
	room, err := s.log.Reserve(commitlog.Budget{Bytes: payload, Frames: frames, Class: commitlog.Internal})
	if err != nil {
		return err
	}
	defer room.Release()
	s.capture.RLock()
	defer s.capture.RUnlock()
	return place(&room)
}

// Create makes partitions, durable on return; existing ids are left alone. An
// epoch in a spec is begun with the creation, so appends in it may follow at once.
func (s *Store) Create(specs []CreateSpec) error {
	s.serial <- struct{}{}
	err := s.createSerial(specs)
	<-s.serial
	if err != nil {
		return fmt.Errorf("create partitions: %w", err)
	}
	if err := s.log.Commit(s.log.Next(), commitlog.Synced); err != nil {
		return fmt.Errorf("create partitions: %w", err)
	}
	return nil
}

// createSerial places the frames. REQUIRES: serial held.
func (s *Store) createSerial(specs []CreateSpec) error {
	fresh := make([]CreateSpec, 0, len(specs))
	seen := make(map[PartitionID]struct{}, len(specs))
	s.mu.RLock()
	for _, c := range specs {
		_, twice := seen[c.ID]
		if _, ok := s.partitions[c.ID]; !ok && !twice {
			seen[c.ID] = struct{}{}
			fresh = append(fresh, c)
		}
	}
	s.mu.RUnlock()
	for len(fresh) > 0 {
		payload, rest := appendCreates(nil, fresh)
		chunk := fresh[:len(fresh)-len(rest)]
		err := s.control(len(payload), 1, func(r *commitlog.Reservation) error {
			place, err := r.Place(commitlog.Header{Kind: commitlog.Create}, nil, payload)
			if err != nil {
				return err
			}
			made := make([]*Partition, len(chunk))
			for i, c := range chunk {
				made[i] = s.born(c, place.LSN)
				made[i].begun = c.LeaderEpoch
				made[i].dirty = place.LSN
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, p := range made {
				s.partitions[p.id] = p
			}
			return nil
		})
		if err != nil {
			return err
		}
		fresh = rest
	}
	return nil
}

// born returns the partition that a create frame's item makes.
func (s *Store) born(c CreateSpec, lsn commitlog.LSN) *Partition {
	p := newPartition(s, c.ID, s.intern(c.ID, c.Name), c.Durability)
	p.q.Note(lsn)
	if c.LeaderEpoch >= 0 {
		p.q.Epochs.Assign(c.LeaderEpoch, 0)
	}
	return p
}

// Delete removes partitions, durable on return; unknown ids are skipped.
func (s *Store) Delete(ids []PartitionID) error {
	s.serial <- struct{}{}
	gone, err := s.deleteSerial(ids)
	<-s.serial
	if err == nil {
		err = s.log.Commit(s.log.Next(), commitlog.Synced)
	}
	if err != nil {
		return fmt.Errorf("delete partitions: %w", err)
	}
	s.mu.Lock()
	for _, p := range gone {
		if s.partitions[p.id] == p {
			delete(s.partitions, p.id)
			s.tombs = append(s.tombs, tomb{p.id, p.deleted})
			delete(s.topics, p.id.Topic)
		}
	}
	s.mu.Unlock()
	for _, p := range gone {
		s.cache.forget(p.id)
	}
	s.wakeCollector()
	return nil
}

// tomb remembers a deleted partition until its delete frame's segment has an index.
type tomb struct {
	id  PartitionID
	lsn commitlog.LSN
}

// deleteSerial places the frames. REQUIRES: serial held.
func (s *Store) deleteSerial(ids []PartitionID) (gone []*Partition, err error) {
	const chunkSize = frameBudget / 20
	var victims []*Partition
	for _, id := range ids {
		if p := s.Partition(id); p != nil {
			victims = append(victims, p)
		}
	}
	for len(victims) > 0 {
		chunk := victims[:min(len(victims), chunkSize)]
		victims = victims[len(chunk):]
		payload := []byte{frameVersion}
		for _, p := range chunk {
			payload = appendID(payload, p.id)
		}
		err := s.control(len(payload), 1, func(r *commitlog.Reservation) error {
			for _, p := range chunk {
				p.setGone(true) // No frame of it may follow.
			}
			place, err := r.Place(commitlog.Header{Kind: commitlog.Delete}, nil, payload)
			if err != nil {
				for _, p := range chunk {
					p.setGone(false)
				}
				return err
			}
			for _, p := range chunk {
				p.mu.Lock()
				p.deleted = place.LSN
				p.touchLocked(place.LSN)
				p.mu.Unlock()
			}
			return nil
		})
		if err != nil {
			return gone, err
		}
		gone = append(gone, chunk...)
	}
	return gone, nil
}

func (p *Partition) setGone(gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = gone || p.deleted != 0
}

// BeginEpochs begins leader epochs, durable on return. One that is begun
// already in this opening is left alone. The error joins those of all
// partitions that could not; the others have begun.
func (s *Store) BeginEpochs(starts []EpochStart) error {
	s.serial <- struct{}{}
	errs := s.beginSerial(starts)
	<-s.serial
	if err := s.log.Commit(s.log.Next(), commitlog.Synced); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("begin epochs: %w", err)
	}
	return nil
}

// beginSerial places a frame a partition. REQUIRES: serial held.
func (s *Store) beginSerial(starts []EpochStart) (errs []error) {
	const chunkSize = 256
	for len(starts) > 0 {
		chunk := starts[:min(len(starts), chunkSize)]
		starts = starts[len(chunk):]
		err := s.control(0, len(chunk), func(r *commitlog.Reservation) error {
			for _, e := range chunk {
				p := s.Partition(e.ID)
				if p == nil {
					errs = append(errs, fmt.Errorf("partition %v: %w", e.ID, ErrUnknownPartition))
					continue
				}
				if err := p.begin(r, e.Epoch); err != nil {
					errs = append(errs, err)
				}
			}
			return nil
		})
		if err != nil {
			return append(errs, err)
		}
	}
	return errs
}

// begin places an epoch frame.
func (p *Partition) begin(r *commitlog.Reservation, epoch int32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	latest := p.q.Epochs.Latest()
	switch {
	case p.gone:
		return fmt.Errorf("partition %v: %w", p.id, ErrDeleted)
	case epoch == p.begun && epoch == latest:
		return nil
	case epoch <= latest:
		return fmt.Errorf("partition %v: epoch %d, latest is %d: %w", p.id, epoch, latest, ErrEpoch)
	}
	end := p.q.End()
	place, err := r.Place(commitlog.Header{Kind: commitlog.Epoch, ID: p.id, LeaderEpoch: epoch, BaseOffset: end}, &p.tag)
	if err != nil {
		return fmt.Errorf("partition %v: %w", p.id, err)
	}
	p.q.BeginEpoch(place.LSN, epoch, end)
	p.touchLocked(place.LSN)
	p.begun = epoch
	return nil
}

// SetDurability changes when the partition's appends count as safe. It holds
// from the next append on; what was appended before keeps its ticket.
func (s *Store) SetDurability(id PartitionID, d Durability) error {
	p := s.Partition(id)
	if p == nil {
		return fmt.Errorf("set durability of %v: %w", id, ErrUnknownPartition)
	}
	p.durability.Store(uint32(d))
	return nil
}

// startMove is a move of one partition's log start that was worked out from `from`.
type startMove struct {
	p                 *Partition
	from, to, removed int64
}

// MoveStarts raises log starts with one frame for all. Starts that are not
// above the present one are skipped, as are those above the log end.
func (s *Store) MoveStarts(starts map[*Partition]int64) (Ticket, error) {
	var moves []startMove
	for p, to := range starts {
		m, err := p.planStart(to)
		if err != nil {
			return Ticket{}, fmt.Errorf("move log starts: %w", err)
		}
		if m.to > m.from {
			moves = append(moves, m)
		}
	}
	s.serial <- struct{}{}
	t, missed, err := s.moveSerial(moves)
	<-s.serial
	if err != nil {
		return t, fmt.Errorf("move log starts: %w", err)
	}
	if len(missed) == 0 {
		return t, nil
	}
	again := make(map[*Partition]int64, len(missed))
	for _, m := range missed {
		again[m.p] = m.to
	}
	more, err := s.MoveStarts(again) // Another move came between; that ends, for starts only rise.
	return t.Max(more), err
}

// planStart works out how many bytes a move of the start removes.
func (p *Partition) planStart(to int64) (startMove, error) {
	m := startMove{p: p, from: p.Start(), to: min(to, p.End())}
	if m.to <= m.from {
		return m, nil
	}
	var err error
	m.removed, err = p.bytesBelow(m.to)
	return m, err
}

// moveSerial places frames for moves. It leaves out, and returns, those that
// were worked out from another start than the present one. REQUIRES: serial held.
func (s *Store) moveSerial(moves []startMove) (t Ticket, missed []startMove, err error) {
	const chunkSize = frameBudget / 32
	for len(moves) > 0 {
		chunk := moves[:min(len(moves), chunkSize)]
		moves = moves[len(chunk):]
		payload, valid := []byte{frameVersion}, make([]startMove, 0, len(chunk))
		for _, m := range chunk {
			if m.p.Start() != m.from {
				missed = append(missed, m)
				continue
			}
			payload = appendStart(payload, startItem{m.p.id, m.to, m.removed})
			valid = append(valid, m)
		}
		if len(valid) == 0 {
			continue
		}
		err := s.control(len(payload), 1, func(r *commitlog.Reservation) error {
			place, err := r.Place(commitlog.Header{Kind: commitlog.LogStart}, nil, payload)
			if err != nil {
				return err
			}
			for _, m := range valid {
				m.p.moveStart(place.LSN, m.to, m.removed)
			}
			t = t.Max(Ticket{synced: place.End()})
			return nil
		})
		if err != nil {
			return t, missed, err
		}
	}
	return t, missed, nil
}

func (p *Partition) moveStart(lsn commitlog.LSN, start, removed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.q.MoveStart(lsn, start, removed)
	p.touchLocked(lsn)
	p.publishLocked()
}

// tombstone is the state of a deleted partition.
func (t tomb) state() []byte { return queue.Tombstone(t.lsn).Append(nil) }
