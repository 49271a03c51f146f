package broker

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller/meta"
)

// apply takes a change of the metadata in: settings first, then partitions. It is
// called in order, from one goroutine, and an admin answer waits for it.
func (b *Broker) apply(img *meta.Image, d meta.Delta) {
	if slices.ContainsFunc(d.ConfigsChanged, func(r meta.Resource) bool { return r.Type == meta.ResourceBroker }) {
		own := strconv.Itoa(int(b.config.NodeID()))
		err := b.live.Apply(img.Configs(meta.Resource{Type: meta.ResourceBroker}),
			img.Configs(meta.Resource{Type: meta.ResourceBroker, Name: own}))
		if err != nil {
			b.logger.Warn("stored settings that this version does not accept are left out", zap.Error(err))
		}
	}
	if len(d.QuotasChanged) > 0 {
		b.quotas.Apply(img)
	}
	if err := b.replicas.Apply(img, d); err != nil {
		b.logger.Error("partitions could not be opened; it is tried again", zap.Error(err))
	}
	b.coordinate(d)
	b.logTopics(d)
}

// logTopics tells of what nobody asked for; who creates and deletes topics is told where they are asked.
func (b *Broker) logTopics(d meta.Delta) {
	for _, t := range d.TopicsMissing {
		b.logger.Warn("topic is gone from the metadata without having been deleted: its data is kept and not served",
			zap.String("topic", t.Name), zap.String("id", meta.FormatID(t.ID)))
	}
}

// replicaEvents reports what the partitions did.
func (b *Broker) replicaEvents() replica.Events {
	return replica.Events{
		Deleted: b.ackDeleted,
		Unclaimed: func(topic string, id meta.TopicID, partitions int) {
			b.logger.Warn("data of a topic that the metadata does not know is kept and not served",
				zap.String("topic", topic), zap.String("id", meta.FormatID(id)), zap.Int("partitions", partitions))
		},
	}
}

// deletions are topics whose data is gone and whose tombstones may go.
type deletions struct {
	mu  sync.Mutex
	ids []meta.TopicID
}

// ackDeleted remembers it for upkeep, which may wait for etcd.
func (b *Broker) ackDeleted(ids []meta.TopicID) {
	b.acks.mu.Lock()
	b.acks.ids = append(b.acks.ids, ids...)
	b.acks.mu.Unlock()
	select {
	case b.deleted <- struct{}{}:
	default:
	}
}

// ackLimit bounds how long upkeep waits for etcd.
const ackLimit = 10 * time.Second

// sendAcks tells the metadata which deletions are done. What fails is told again.
func (b *Broker) sendAcks(ctx context.Context) {
	b.acks.mu.Lock()
	ids := b.acks.ids
	b.acks.ids = nil
	b.acks.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, ackLimit) // Retention must not wait for an etcd that is away.
	defer cancel()
	if err := b.metadata.AckDeleted(limited, ids); err != nil && ctx.Err() == nil {
		b.logger.Warn("deleted topics could not be acknowledged; it is tried again", zap.Error(err))
		b.acks.mu.Lock()
		b.acks.ids = append(b.acks.ids, ids...)
		b.acks.mu.Unlock()
	}
}

// upkeep does what time asks for, until ctx ends.
func (b *Broker) upkeep(ctx context.Context) {
	next := time.NewTimer(b.config.Millis("log.initial.task.delay.ms"))
	defer next.Stop()
	idle := time.NewTicker(b.config.Millis("producer.id.expiration.check.interval.ms"))
	defer idle.Stop()
	changed := make(chan struct{}, 1)
	b.live.OnChange(notifyOnChange(changed), "log.retention.check.interval.ms")
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.deleted:
			b.sendAcks(ctx)
			continue
		case <-idle.C:
			b.replicas.ExpireProducers(time.Now())
			continue
		case <-changed:
		case <-next.C:
			b.retain()
			b.sendAcks(ctx)
		}
		next.Reset(b.live.Values().RetentionCheck)
	}
}

// retain retries what a full disk refused, and deletes what may go; it forgets
// clients that are gone.
func (b *Broker) retain() {
	b.quotas.Expire()
	if err := b.replicas.Settle(); err != nil {
		b.logger.Warn("partitions could not be opened; it is tried again", zap.Error(err))
	}
	if err := b.replicas.Retain(time.Now()); err != nil {
		b.logger.Warn("retention could not be applied; it is tried again", zap.Error(err))
	}
}
