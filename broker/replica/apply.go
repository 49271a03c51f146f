package replica

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
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

	first := s.image.Load() == nil
	for _, t := range d.TopicsDeleted {
		s.removeLocked(t)
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
	err := s.settleLocked()
	s.reconfigureLocked()
	s.image.Store(img)
	return err
}

// Settle tries again what the store has refused.
func (s *Set) Settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconfigureLocked()
	return s.settleLocked()
}

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
	for _, step := range steps {
		if s.publishLocked(step) {
			delete(s.unsettled, step.meta.ID)
		}
	}
	return errors.Join(deleted, created, begun)
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
		t = &Topic{Name: m.Name, ID: m.ID, Internal: m.Internal, env: s.env, Stats: s.statsOf(m.Name)}
	}
	t.config.Store(s.configOfLocked(m))
	step := &topicStep{meta: m, topic: t, parts: make([]*Partition, len(m.Partitions))}
	if ok {
		copy(step.parts, t.view.Load().parts)
	}
	for i := range m.Partitions {
		if !hosts(&m.Partitions[i], s.env.nodeID) {
			step.parts[i] = nil
		}
	}
	return step
}

// createLocked creates the partitions that are missing in the store, in one step.
// REQUIRES: mu held.
func (s *Set) createLocked(steps []*topicStep) error {
	var specs []log.CreateSpec
	for _, step := range steps {
		for i := range step.meta.Partitions {
			m := &step.meta.Partitions[i]
			id := log.PartitionID{Topic: step.meta.ID, Partition: int32(i)}
			if step.parts[i] != nil || !hosts(m, s.env.nodeID) || s.store.Partition(id) != nil {
				continue
			}
			specs = append(specs, log.CreateSpec{
				ID: id, Name: step.meta.Name, Durability: durability(step.topic.Config()), LeaderEpoch: m.LeaderEpoch,
			})
		}
	}
	var err error
	if len(specs) > 0 {
		if err = s.store.Create(specs); err != nil {
			err = fmt.Errorf("create %d partitions: %w", len(specs), err)
		}
	}
	for _, step := range steps {
		for i := range step.parts {
			if step.parts[i] == nil && hosts(&step.meta.Partitions[i], s.env.nodeID) {
				id := log.PartitionID{Topic: step.meta.ID, Partition: int32(i)}
				if l := s.store.Partition(id); l != nil {
					step.parts[i] = newPartition(step.topic, int32(i), l)
				}
			}
		}
	}
	return err
}

func newPartition(t *Topic, i int32, l *log.Partition) *Partition {
	p := &Partition{topic: t, index: i, log: l, begun: NoEpoch}
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
func (s *Set) publishLocked(step *topicStep) bool {
	whole := true
	old := step.topic.view.Load()
	step.topic.view.Store(&topicView{meta: step.meta, parts: step.parts})
	for i, p := range step.parts {
		m := &step.meta.Partitions[i]
		if p == nil {
			whole = whole && !hosts(m, s.env.nodeID)
			continue
		}
		p.log.SetOwner(p)
		s.configure(p)
		p.setRole(newRole(m, s.env.nodeID, p.begun))
	}
	if old == nil {
		s.byID.put(step.topic.ID, step.topic)
		s.byName.put(step.topic.Name, step.topic)
		return whole
	}
	for i, p := range old.parts {
		if p != nil && (i >= len(step.parts) || step.parts[i] == nil) {
			p.setRole(newRole(&step.meta.Partitions[i], s.env.nodeID, NoEpoch))
		}
	}
	return whole
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
		id := meta.TopicID(l.ID().Topic)
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
		for _, holder := range t.Holders {
			if holder == s.env.nodeID {
				s.undeleted[t.ID] = struct{}{}
			}
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
		if _, gone := s.undeleted[meta.TopicID(l.ID().Topic)]; gone {
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

// configOfLocked is a topic's configuration. Topics without settings of their own
// share one.
// REQUIRES: mu held.
func (s *Set) configOfLocked(m *meta.Topic) *config.Topic {
	if len(m.Configs) > 0 {
		return s.live.Topic(m.Configs)
	}
	if gen := s.live.TopicGeneration(); s.defaults == nil || gen != s.configGen {
		s.defaults = s.live.Topic(nil)
	}
	return s.defaults
}

// reconfigureLocked renews the topics' configurations after a setting of the
// broker that they fall back on has changed.
// REQUIRES: mu held.
func (s *Set) reconfigureLocked() {
	gen := s.live.TopicGeneration()
	if gen == s.configGen && s.defaults != nil {
		return
	}
	s.defaults = s.live.Topic(nil)
	s.configGen = gen
	for t := range s.Topics() {
		v := t.view.Load()
		t.config.Store(s.configOfLocked(v.meta))
		for _, p := range v.parts {
			if p != nil {
				s.configure(p)
				p.advance()
			}
		}
	}
}

// configure hands the settings that the store needs down to it.
func (s *Set) configure(p *Partition) {
	c := p.topic.Config()
	p.log.SetRoll(log.Roll{Ms: c.SegmentMs, Bytes: int64(c.SegmentBytes)})
	if d := durability(c); d != p.log.Durability() {
		// A store that cannot write the change is poisoned or full; the setting is
		// tried again with the next change, and at the next start.
		_ = s.store.SetDurability(p.log.ID(), d)
	}
}

func durability(c *config.Topic) log.Durability {
	if c.Durability == config.Async {
		return log.Async
	}
	return log.Fsync
}

func (s *Set) statsOf(topic string) *metrics.Topic {
	if s.stats == nil {
		return new(metrics.Topic)
	}
	return s.stats.Topic(topic)
}

// hosts tells whether the broker holds a replica.
func hosts(m *meta.Partition, nodeID int32) bool {
	for _, r := range m.Replicas {
		if r == nodeID {
			return true
		}
	}
	return false
}

// absent is what a client is told of a partition that exists and is not here.
func (t *Topic) absent(m *meta.Partition) error {
	if hosts(m, t.env.nodeID) {
		return kerr.KafkaStorageError // The store could not create it yet.
	}
	return kerr.NotLeaderForPartition
}

// EpochLag is how far the leader epochs of all partitions that the node leads
// must be raised after the store was opened, so that each is above every epoch
// that the store knows; at least 1.
func EpochLag(store *log.Store, img *meta.Image, nodeID int32) int32 {
	by := int32(1)
	for l := range store.Partitions() {
		id := l.ID()
		t := img.TopicByID(meta.TopicID(id.Topic))
		if t == nil || int(id.Partition) >= len(t.Partitions) {
			continue
		}
		if m := &t.Partitions[id.Partition]; m.Leader == nodeID {
			by = max(by, l.LatestEpoch()-m.LeaderEpoch+1)
		}
	}
	return by
}
