package group

import (
	"iter"
	"time"

	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// ConsumerSettings are those of one consumer group at this moment. They are not
// changed once handed out.
type ConsumerSettings struct {
	// SessionTimeout, HeartbeatInterval and AssignmentInterval may be the group's own.
	SessionTimeout, HeartbeatInterval, AssignmentInterval time.Duration
	// MaxSize is the most members that a group may have.
	MaxSize int
	// Assignors are the names of those that may be asked for; the first is the default.
	Assignors []string
	// Upgrade and Downgrade tell whether a classic group with members may turn into
	// a consumer group, and back.
	Upgrade, Downgrade bool
}

// Topic is what groups know of a topic.
type Topic = assign.Topic

// Cluster is the cluster's metadata as consumer groups see it.
type Cluster interface {
	// Topic finds a topic by its name.
	Topic(name string) (Topic, bool)
	// Name is the name of the topic with that id.
	Name(id TopicID) (string, bool)
	// Names are those of all topics.
	Names() iter.Seq[string]
	// Version grows with each change.
	Version() int64
}

// consumer are the settings of a consumer group.
func (m *Machine) consumer(id string) *ConsumerSettings { return m.opts.Consumer(id) }

// topic finds a topic by its name.
func (m *Machine) topic(name string) (Topic, bool) { return m.opts.Cluster.Topic(name) }
