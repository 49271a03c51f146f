package replica

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
)

// Options configure a Set.
type Options struct {
	Store  *log.Store
	NodeID int32
	Live   *config.Live
	// Fenced tells whether the broker's lease may have run out: nothing is
	// acknowledged then.
	Fenced func() bool
	// Metrics holds the topics' counters; nil counts for nobody.
	Metrics *metrics.Metrics
	Events  Events
}

// Events tell what a Set has done. Each may be nil; they are called by Apply and
// Settle, and must not call back into the Set.
type Events struct {
	// Deleted names deleted topics of which this broker holds nothing any more.
	Deleted func(ids []meta.TopicID)
	// Unclaimed names a topic whose data is here but of which the metadata knows
	// nothing, not even that it was deleted. It is kept and not served.
	Unclaimed func(topic string, id meta.TopicID, partitions int)
}

// Set is all partitions of this broker. Its methods are safe for concurrent use.
type Set struct {
	env    *env
	store  *log.Store
	live   *config.Live
	stats  *metrics.Metrics
	events Events

	image  atomic.Pointer[meta.Image]
	byID   *index[meta.TopicID, *Topic]
	byName *index[string, *Topic]

	// mu serialises changes; look-ups do without it.
	mu        sync.Mutex
	unsettled map[meta.TopicID]*meta.Topic // could not be applied whole; guarded by mu
	undeleted map[meta.TopicID]struct{}    // could not be deleted from the store; guarded by mu
	begun     map[log.PartitionID]int32    // epochs begun in partitions that are out of service, guarded by mu
	defaults  *config.Topic                // of topics without settings of their own; guarded by mu
	configGen uint64                       // Live's generation that the topics' configs are of; guarded by mu
}

// NewSet returns a Set without partitions; Apply gives it what the metadata says.
func NewSet(o Options) *Set {
	if o.Fenced == nil {
		o.Fenced = func() bool { return false }
	}
	return &Set{
		env:       &env{nodeID: o.NodeID, fenced: o.Fenced},
		store:     o.Store,
		live:      o.Live,
		stats:     o.Metrics,
		events:    o.Events,
		byID:      newIndex[meta.TopicID, *Topic](),
		byName:    newIndex[string, *Topic](),
		unsettled: make(map[meta.TopicID]*meta.Topic),
		undeleted: make(map[meta.TopicID]struct{}),
		begun:     make(map[log.PartitionID]int32),
	}
}

// Image is the metadata that was applied last; nil before the first.
func (s *Set) Image() *meta.Image { return s.image.Load() }

// Topic returns the topic of that name, or nil.
func (s *Set) Topic(name string) *Topic {
	t, _ := s.byName.get(name)
	return t
}

// TopicByID returns the topic with that id, or nil.
func (s *Set) TopicByID(id meta.TopicID) *Topic {
	t, _ := s.byID.get(id)
	return t
}

// Find returns the partition of a topic that may be nil. The error is what a
// client is told: the partition does not exist, or is not here.
func Find(t *Topic, i int32) (*Partition, error) {
	if t == nil {
		return nil, kerr.UnknownTopicOrPartition
	}
	v := t.view.Load()
	if i < 0 || int(i) >= len(v.meta.Partitions) {
		return nil, kerr.UnknownTopicOrPartition
	}
	p := v.parts[i]
	if p == nil {
		return nil, t.absent(&v.meta.Partitions[i])
	}
	return p, nil
}

// Topics goes through all topics of the cluster, in no order.
func (s *Set) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range s.byID.all() {
			if !yield(t) {
				return
			}
		}
	}
}

// Partitions goes through the partitions that are here and that the metadata
// knows, in no order.
func (s *Set) Partitions() iter.Seq[*Partition] {
	return func(yield func(*Partition) bool) {
		for t := range s.Topics() {
			for _, p := range t.view.Load().parts {
				if p != nil && !yield(p) {
					return
				}
			}
		}
	}
}

// Commit waits until appends and moved starts are durable, as their partitions ask.
func (s *Set) Commit(t log.Ticket) error {
	return clientError(s.store.Commit(t))
}

// Kick has appends written that nobody waits for.
func (s *Set) Kick() { s.store.Kick() }

// Fenced tells whether the broker's lease may have run out.
func (s *Set) Fenced() bool { return s.env.fenced() }

// MoveStarts raises log starts. They hold once Commit of the ticket is without error.
func (s *Set) MoveStarts(starts map[*Partition]int64) (log.Ticket, error) {
	logs := make(map[*log.Partition]int64, len(starts))
	for p, start := range starts {
		logs[p.log] = start
	}
	t, err := s.store.MoveStarts(logs)
	if err != nil {
		return t, clientError(err)
	}
	for p := range starts {
		p.startMoved()
	}
	return t, nil
}

// Retain deletes what the topics' settings no longer keep.
func (s *Set) Retain(now time.Time) error {
	err := s.store.Retain(now, retention)
	for p := range s.Partitions() {
		p.startMoved()
	}
	if err != nil {
		return fmt.Errorf("apply retention: %w", err)
	}
	return nil
}

// ExpireProducers forgets producers that have been idle for too long.
func (s *Set) ExpireProducers(now time.Time) { s.store.ExpireProducers(now) }

// retention is what a partition's topic asks for. What the metadata does not
// know is kept.
func retention(l *log.Partition) log.Retention {
	p, ok := l.Owner().(*Partition)
	if !ok || p.topic.Gone() {
		return log.Retention{Ms: -1, Bytes: -1}
	}
	c := p.topic.Config()
	return log.Retention{Delete: c.Delete, Ms: c.RetentionMs, Bytes: c.RetentionBytes}
}
