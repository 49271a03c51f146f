package broker

import (
	"context"

	"github.com/mainstem/mainstem/broker/groups"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator"
)

// openCoordinators makes the coordinators, which lead nothing yet.
func (b *Broker) openCoordinators(context.Context) error {
	b.groups = groups.New(groups.Options{
		Replicas: b.replicas, Live: b.live, CreateTopic: b.admin.CreateInternal, Logger: b.logger,
	})
	b.onClose(func(context.Context) error {
		b.groups.Close()
		return nil
	})
	return nil
}

// coordinate has this broker's coordinators follow what it leads.
func (b *Broker) coordinate(d meta.Delta) {
	lead(b, groups.OffsetsTopic, b.groups.Runtime(), &b.offsetsTopic, journalSettings{
		timeout: "offsets.commit.timeout.ms", buffer: "offsets.load.buffer.size", codec: "offsets.topic.compression.codec",
	})
	b.groups.Forget(d.TopicsDeleted)
}

// lead gives a runtime the partitions of its topic that this broker leads, and
// takes others from it. id is the topic that it had before: one that was made
// again has nothing to do with it.
func lead[M coordinator.Machine](b *Broker, topic string, r *coordinator.Runtime[M], id *meta.TopicID, names journalSettings) {
	t := b.replicas.Topic(topic)
	if t == nil || t.ID != *id {
		for _, s := range r.Shards() {
			r.Resign(s.Partition())
		}
	}
	if t == nil {
		*id = meta.TopicID{}
		return
	}
	*id = t.ID
	for i := range int32(t.Partitions()) {
		p := t.Partition(i)
		if p == nil || !p.Leads() {
			r.Resign(i)
			continue
		}
		_, epoch := p.Leader()
		if r.Leads(i) < epoch {
			r.Lead(i, epoch, &journal{set: b.replicas, part: p, live: b.live, epoch: epoch, names: names})
		}
	}
}
