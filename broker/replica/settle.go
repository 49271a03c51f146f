package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
)

// settleLocked makes the store hold what the metadata says.
// REQUIRES: mu held.
func (s *Set) settleLocked() error {
	// Deletions come first: they may be what makes room.
	deleted := s.deleteLocked()
	if len(s.unsettled) == 0 {
		return deleted
	}
	steps := make([]*topicStep, 0, len(s.unsettled))
	for _, t := range s.unsettled {
		steps = append(steps, s.planLocked(t))
	}
	created := s.createLocked(steps)
	begun := s.beginLocked(steps)
	errs := []error{deleted, created, begun}
	for _, step := range steps {
		whole, err := s.publishLocked(step)
		if whole {
			delete(s.unsettled, step.meta.ID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// topicStep is what is to be done for one topic.
type topicStep struct {
	meta  *meta.Topic
	topic *Topic
	parts []*Partition // by number; nil for those that are not here
}

// planLocked finds or makes the topic and its partitions that are in the store.
// REQUIRES: mu held.
func (s *Set) planLocked(m *meta.Topic) *topicStep {
	t, ok := s.byID.get(m.ID)
	if !ok {
		t = &Topic{Name: m.Name, ID: m.ID, Internal: m.Internal || internal(m.Name), env: s.env, Stats: s.statsOf(m.Name)}
	}
	t.config.Store(s.configOfLocked(m))
	step := &topicStep{meta: m, topic: t, parts: make([]*Partition, len(m.Partitions))}
	if ok {
		copy(step.parts, t.view.Load().parts)
	}
	for i := range m.Partitions {
		if p := step.parts[i]; p != nil && !hosts(&m.Partitions[i], s.env.nodeID) {
			s.begun[p.log.ID()] = p.begun
			step.parts[i] = nil
		}
	}
	return step
}

// createLocked creates the partitions that are missing in the store, in one step. A
// creation begins the epoch in which this broker leads.
// REQUIRES: mu held.
func (s *Set) createLocked(steps []*topicStep) error {
	var specs []log.CreateSpec
	for _, step := range steps {
		for i := range step.meta.Partitions {
			m := &step.meta.Partitions[i]
			id := log.PartitionID{Topic: step.meta.ID, Partition: int32(i)}
			if step.parts[i] != nil || !hosts(m, s.env.nodeID) {
				continue
			}
			if l := s.store.Partition(id); l != nil {
				step.parts[i] = newPartition(step.topic, int32(i), l, s.takeBegunLocked(id))
				continue
			}
			specs = append(specs, log.CreateSpec{
				ID: id, Name: step.meta.Name, Durability: step.topic.durability(), LeaderEpoch: s.epochToBegin(m),
			})
		}
	}
	if len(specs) == 0 {
		return nil
	}
	err := s.store.Create(specs)
	if err != nil {
		err = fmt.Errorf("create %d partitions: %w", len(specs), err)
	}
	for _, step := range steps {
		for i := range step.parts {
			m := &step.meta.Partitions[i]
			if step.parts[i] != nil || !hosts(m, s.env.nodeID) {
				continue
			}
			if l := s.store.Partition(log.PartitionID{Topic: step.meta.ID, Partition: int32(i)}); l != nil {
				step.parts[i] = newPartition(step.topic, int32(i), l, s.epochToBegin(m))
			}
		}
	}
	return err
}

// takeBegunLocked is the epoch that was begun in a partition before it went out of
// service, if that was since the store was opened.
// REQUIRES: mu held.
func (s *Set) takeBegunLocked(id log.PartitionID) int32 {
	epoch, ok := s.begun[id]
	if !ok {
		return NoEpoch
	}
	delete(s.begun, id)
	return epoch
}

// epochToBegin is the partition's epoch if this broker leads in it.
func (s *Set) epochToBegin(m *meta.Partition) int32 {
	if m.Leader == s.env.nodeID {
		return m.LeaderEpoch
	}
	return NoEpoch
}

func newPartition(t *Topic, i int32, l *log.Partition, begun int32) *Partition {
	p := &Partition{topic: t, index: i, log: l, begun: begun}
	p.hw.Store(l.HighWatermark())
	p.start.Store(l.Start())
	return p
}

// beginLocked begins the epochs in which this broker leads, in one step. An epoch
// that the store knows from before this opening is never begun again: what was
// appended in it and what would be appended now could share an offset.
// REQUIRES: mu held.
func (s *Set) beginLocked(steps []*topicStep) error {
	var starts []log.EpochStart
	var begun []*Partition
	for _, step := range steps {
		for i, p := range step.parts {
			m := &step.meta.Partitions[i]
			if p == nil || m.Leader != s.env.nodeID || p.begun >= m.LeaderEpoch || p.log.LatestEpoch() >= m.LeaderEpoch {
				continue
			}
			starts = append(starts, log.EpochStart{ID: p.log.ID(), Epoch: m.LeaderEpoch})
			begun = append(begun, p)
		}
	}
	if len(starts) == 0 {
		return nil
	}
	if err := s.store.BeginEpochs(starts); err != nil {
		return fmt.Errorf("begin %d leader epochs: %w", len(starts), err)
	}
	for i, p := range begun {
		p.begun = starts[i].Epoch
	}
	return nil
}

// publishLocked gives the partitions their roles and lets clients find them. It
// tells whether nothing was left to do.
// REQUIRES: mu held.
func (s *Set) publishLocked(step *topicStep) (whole bool, err error) {
	whole = true
	for i, p := range step.parts {
		m := &step.meta.Partitions[i]
		if p == nil {
			whole = whole && !hosts(m, s.env.nodeID)
			continue
		}
		p.log.SetOwner(p)
		if err = errors.Join(err, s.configure(p)); err != nil {
			whole = false
		}
		whole = whole && (m.Leader != s.env.nodeID || p.begun == m.LeaderEpoch || p.log.LatestEpoch() >= m.LeaderEpoch)
		p.setRole(newRole(m, s.env.nodeID, p.begun))
		p.advance() // The role may be the same, and min.insync.replicas another.
	}
	old := step.topic.view.Swap(&topicView{meta: step.meta, parts: step.parts})
	if old == nil {
		s.byID.put(step.topic.ID, step.topic)
		s.byName.put(step.topic.Name, step.topic)
		return whole, err
	}
	for i, p := range old.parts {
		if p != nil && step.parts[i] == nil {
			p.setRole(newRole(&step.meta.Partitions[i], s.env.nodeID, NoEpoch))
		}
	}
	return whole, err
}

// setRole installs what the metadata says of the replica and wakes who waits on it.
func (p *Partition) setRole(r *role) {
	if p.role.Load().same(r) {
		return
	}
	p.role.Store(r)
	p.advance()
	p.wake()
}

// hosts tells whether the broker holds a replica.
func hosts(m *meta.Partition, nodeID int32) bool {
	return slices.Contains(m.Replicas, nodeID)
}
