package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
)

// Apply brings the set to an image of the metadata, of which d says how it
// differs from the one before. The first call's delta holds the whole image.
//
// What the store refuses, for want of disk space, is left for the next Apply or
// Settle; the error tells of it. The partitions concerned answer a retriable
// error until then.
func (s *Set) Apply(img *meta.Image, d meta.Delta) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	configured := s.reconfigureLocked()
	first := s.image.Load() == nil
	for _, t := range d.TopicsDeleted {
		s.removeLocked(t)
		for i := range t.Partitions {
			delete(s.begun, log.PartitionID{Topic: t.ID, Partition: int32(i)})
		}
		s.undeleted[t.ID] = struct{}{}
	}
	for _, t := range d.TopicsMissing {
		s.removeLocked(t)
	}
	if first {
		s.sweepLocked(img)
	}
	for _, t := range d.TopicsCreated {
		s.unsettled[t.ID] = t
	}
	for _, t := range d.TopicsChanged {
		s.unsettled[t.ID] = t
	}
	err := errors.Join(configured, s.settleLocked())
	s.image.Store(img)
	return err
}

// Settle tries again what the store has refused.
func (s *Set) Settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.reconfigureLocked(), s.settleLocked())
}

// removeLocked takes a topic out of service.
// REQUIRES: mu held.
func (s *Set) removeLocked(m *meta.Topic) {
	delete(s.unsettled, m.ID)
	t, ok := s.byID.get(m.ID)
	if !ok {
		return
	}
	t.gone.Store(true)
	s.byID.remove(m.ID)
	if cur, _ := s.byName.get(t.Name); cur == t {
		s.byName.remove(t.Name)
		if s.stats != nil {
			s.stats.ForgetTopic(t.Name)
		}
	}
	for _, p := range t.view.Load().parts {
		if p != nil {
			s.begun[p.log.ID()] = p.begun
			p.log.SetOwner(nil)
			p.wake()
		}
	}
}

// sweepLocked looks for data in the store that no topic of the image claims: that
// of topics deleted while the broker was away goes, all else is kept.
// REQUIRES: mu held.
func (s *Set) sweepLocked(img *meta.Image) {
	unclaimed := make(map[meta.TopicID]int)
	names := make(map[meta.TopicID]string)
	for l := range s.store.Partitions() {
		id := l.ID().Topic
		if img.TopicByID(id) != nil {
			continue
		}
		if img.Deleted(id) {
			s.undeleted[id] = struct{}{}
			continue
		}
		unclaimed[id]++
		names[id] = l.Topic()
	}
	for t := range img.Tombstones() {
		if slices.Contains(t.Holders, s.env.nodeID) {
			s.undeleted[t.ID] = struct{}{}
		}
	}
	if s.events.Unclaimed != nil {
		for id, n := range unclaimed {
			s.events.Unclaimed(names[id], id, n)
		}
	}
}

// deleteLocked deletes the data of deleted topics, in one step.
// REQUIRES: mu held.
func (s *Set) deleteLocked() error {
	if len(s.undeleted) == 0 {
		return nil
	}
	var ids []log.PartitionID
	for l := range s.store.Partitions() {
		if _, gone := s.undeleted[l.ID().Topic]; gone {
			ids = append(ids, l.ID())
		}
	}
	if len(ids) > 0 {
		if err := s.store.Delete(ids); err != nil {
			return fmt.Errorf("delete %d partitions: %w", len(ids), err)
		}
	}
	topics := make([]meta.TopicID, 0, len(s.undeleted))
	for id := range s.undeleted {
		topics = append(topics, id)
	}
	clear(s.undeleted)
	if s.events.Deleted != nil {
		s.events.Deleted(topics)
	}
	return nil
}

// EpochLag is how far the leader epochs of all partitions that the node leads
// must be raised after the store was opened, so that each is above every epoch
// that the store knows; at least 1.
func EpochLag(store *log.Store, img *meta.Image, nodeID int32) int32 {
	by := int32(1)
	for l := range store.Partitions() {
		id := l.ID()
		t := img.TopicByID(id.Topic)
		if t == nil || int(id.Partition) >= len(t.Partitions) {
			continue
		}
		if m := &t.Partitions[id.Partition]; m.Leader == nodeID {
			by = max(by, l.LatestEpoch()-m.LeaderEpoch+1)
		}
	}
	return by
}
