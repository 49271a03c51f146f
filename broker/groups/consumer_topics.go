package groups

import (
	"iter"
	"slices"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
)

// cluster is the cluster's metadata as consumer groups see it.
type cluster struct{ set *replica.Set }

// image is the newest metadata.
func (c cluster) image() *meta.Image {
	if img := c.set.Image(); img != nil {
		return img
	}
	return meta.Empty()
}

// Topic finds a topic by its name.
func (c cluster) Topic(name string) (group.Topic, bool) {
	img := c.image()
	t := img.Topic(name)
	if t == nil {
		return group.Topic{}, false
	}
	return group.Topic{ID: t.ID, Partitions: len(t.Partitions), Racks: racksOf(img, t)}, true
}

// racksOf are the racks in which a topic's partitions have replicas; nil where all
// brokers are in the same rack, or in none.
func racksOf(img *meta.Image, t *meta.Topic) [][]string {
	brokers := img.Brokers()
	if !slices.ContainsFunc(brokers, func(b *meta.Broker) bool { return b.Rack != brokers[0].Rack }) {
		return nil
	}
	out := make([][]string, len(t.Partitions))
	for i := range t.Partitions {
		var racks []string
		for _, id := range t.Partitions[i].Replicas {
			if b := img.Broker(id); b != nil && b.Rack != "" {
				racks = append(racks, b.Rack)
			}
		}
		slices.Sort(racks)
		out[i] = slices.Compact(racks)
	}
	return out
}

// Name is the name of the topic with that id.
func (c cluster) Name(id group.TopicID) (string, bool) {
	if t := c.image().TopicByID(id); t != nil {
		return t.Name, true
	}
	return "", false
}

// Names are those of all topics.
func (c cluster) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range c.image().Topics() {
			if !yield(t.Name) {
				return
			}
		}
	}
}

// Version grows with each change.
func (c cluster) Version() int64 { return c.image().Revision() }

// Follow has the shards know what changed about topics.
func (h *Handlers) Follow(d *meta.Delta) {
	h.Forget(d.TopicsDeleted)
	var change topicsChanged
	for _, list := range [][]*meta.Topic{d.TopicsCreated, d.TopicsDeleted, d.TopicsMissing} {
		for _, t := range list {
			change.comeOrGone = append(change.comeOrGone, t.Name)
		}
	}
	for _, t := range d.TopicsChanged {
		change.changed = append(change.changed, t.Name)
	}
	if len(change.comeOrGone)+len(change.changed) == 0 {
		return
	}
	for _, s := range h.runtime.Shards() {
		s.Do(change)
	}
}

// topicsChanged is a turn that tells consumer groups about topics. A shard that is
// not loaded looks at all of them when it is.
type topicsChanged struct{ comeOrGone, changed []string }

func (c topicsChanged) Run(m *group.Machine, _ *coordinator.Turn) {
	m.TopicsChanged(c.comeOrGone, c.changed)
}
func (c topicsChanged) Fail(error) {}
