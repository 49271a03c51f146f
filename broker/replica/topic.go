package replica

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/controller/meta"
)

// Topic is one topic of the cluster, with the partitions of it that are here.
type Topic struct {
	// Name and ID never change; a topic made again is another Topic.
	Name string
	ID   meta.TopicID
	// Internal topics are written by the broker itself.
	Internal bool
	// Stats counts the topic's traffic on this broker.
	Stats *metrics.Topic

	env    *env
	config atomic.Pointer[config.Topic]
	view   atomic.Pointer[topicView]
	gone   atomic.Bool
}

// topicView is a topic at one revision of the metadata. It is immutable.
type topicView struct {
	meta  *meta.Topic
	parts []*Partition // by number; nil for those that are not here
}

// env is what all partitions of a Set share.
type env struct {
	nodeID int32
	fenced func() bool
}

// Config is the topic's configuration at this moment.
func (t *Topic) Config() *config.Topic { return t.config.Load() }

// Partitions is the number of partitions that the topic has in the cluster.
func (t *Topic) Partitions() int { return len(t.view.Load().meta.Partitions) }

// Partition returns the partition of that number if it is here, else nil.
func (t *Topic) Partition(i int32) *Partition {
	v := t.view.Load()
	if i < 0 || int(i) >= len(v.parts) {
		return nil
	}
	return v.parts[i]
}

// Leader tells which broker leads the partition, and in which epoch; -1 and -1
// if that is not known.
func (t *Topic) Leader(i int32) (node, epoch int32) {
	v := t.view.Load()
	if i < 0 || int(i) >= len(v.meta.Partitions) {
		return -1, -1
	}
	p := &v.meta.Partitions[i]
	return p.Leader, p.LeaderEpoch
}

// Gone tells that the topic is deleted, or that the metadata has lost it.
func (t *Topic) Gone() bool { return t.gone.Load() }

// absent is what a client is told of a partition that exists and is not here.
func (t *Topic) absent(m *meta.Partition) error {
	if hosts(m, t.env.nodeID) {
		return kerr.KafkaStorageError // The store could not create it yet.
	}
	return kerr.NotLeaderForPartition
}

// internal tells whether only brokers write a topic of that name.
func internal(name string) bool {
	switch name {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		return true
	}
	return false
}
