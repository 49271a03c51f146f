package broker

import (
	"context"

	"github.com/mainstem/mainstem/broker/groups"
	"github.com/mainstem/mainstem/broker/records"
	"github.com/mainstem/mainstem/broker/txns"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
)

// openCoordinators makes the coordinators, which lead nothing yet.
func (b *Broker) openCoordinators(context.Context) error {
	b.loads = make(chan struct{}, maxLoads)
	b.groups = groups.New(groups.Options{
		Replicas: b.replicas, Live: b.live, CreateTopic: b.admin.CreateInternal, Logger: b.logger,
	})
	b.onClose(func(context.Context) error {
		b.groups.Close()
		return nil
	})
	b.txns = txns.New(txns.Options{
		Replicas: b.replicas, Live: b.live, Groups: b.groups, CreateTopic: b.admin.CreateInternal,
		ProducerIDs: b.metadata.AllocateProducerIDs, Logger: b.logger, Events: groups.Events(txns.TransactionsTopic, b.logger),
	})
	b.onClose(func(context.Context) error {
		b.txns.Close()
		return nil
	})
	return nil
}

// enlist asks the coordinator of a transaction about partitions that are produced to.
func (b *Broker) enlist(e records.Enlistment) records.Enlisting {
	producer := coordinator.Producer{ID: e.ProducerID, Epoch: e.ProducerEpoch}
	places := make([]txn.Place, len(e.Partitions))
	for i, p := range e.Partitions {
		places[i] = txn.Place{Topic: p.Topic, Partition: p.Partition}
	}
	if e.Add {
		return b.txns.Enlist(e.TransactionalID, producer, places, e.Patience)
	}
	return b.txns.Verify(e.TransactionalID, producer, places)
}

// coordinate has this broker's coordinators follow what it leads.
func (b *Broker) coordinate(d meta.Delta) {
	lead(b, groups.OffsetsTopic, b.groups.Runtime(), &b.offsetsTopic, journalSettings{
		timeout: "offsets.commit.timeout.ms", buffer: "offsets.load.buffer.size", codec: "offsets.topic.compression.codec",
	})
	b.groups.Follow(&d)
	lead(b, txns.TransactionsTopic, b.txns.Runtime(), &b.transactionsTopic, journalSettings{
		timeout: "request.timeout.ms", buffer: "transaction.state.log.load.buffer.size",
	})
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
			r.Lead(i, epoch, &journal{set: b.replicas, part: p, live: b.live, epoch: epoch, names: names, loads: b.loads})
		}
	}
}
