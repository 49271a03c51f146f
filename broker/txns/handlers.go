package txns

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// Internal topics whose partitions' leaders are coordinators.
const (
	TransactionsTopic = "__transaction_state"
	OffsetsTopic      = "__consumer_offsets"
)

// Groups is what transactions ask of the coordinators of groups.
type Groups interface {
	// OffsetsPartition is the partition of __consumer_offsets that has a group;
	// false while there is no such topic.
	OffsetsPartition(id string) (int32, bool)
	// CommitTxnOffsets commits offsets in a transaction, unless check refuses it in
	// the turn in which that is done.
	CommitTxnOffsets(who group.Client, req *kmsg.TxnOffsetCommitRequest, list []group.Offset, check func() error) *group.Codes
	// EndTxn writes the end of a transaction to a partition of __consumer_offsets.
	EndTxn(partition int32, m coordinator.Marker) *coordinator.Promise[struct{}]
}

// Options configure the handlers.
type Options struct {
	Replicas *replica.Set
	Live     *config.Live
	Groups   Groups
	// CreateTopic asks for an internal topic; it does not wait.
	CreateTopic func(name string)
	// ProducerIDs takes a block of producer ids that nobody else gets.
	ProducerIDs func(ctx context.Context) (first int64, n int, err error)
	// Events are told of the shards.
	Events coordinator.Events
	// Logger may be nil.
	Logger *zap.Logger
}

// Shard is the coordinator of a part of the transactional ids.
type Shard = coordinator.Shard[*txn.Machine]

// Handlers serve the APIs of this package.
type Handlers struct {
	replicas    *replica.Set
	live        *config.Live
	groups      Groups
	createTopic func(name string)
	logger      *zap.Logger
	ids         *producerIDs
	runtime     *coordinator.Runtime[*txn.Machine]
	writer      *writer
	settings    atomic.Pointer[txn.Settings]
}

// New makes the handlers. Runtime is to be given the partitions to lead.
func New(o Options) *Handlers {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	h := &Handlers{
		replicas: o.Replicas, live: o.Live, groups: o.Groups, createTopic: o.CreateTopic, logger: o.Logger,
		ids: newProducerIDs(o.ProducerIDs),
	}
	h.writer = newWriter(h)
	h.settings.Store(&txn.Settings{
		TimeoutCheck: h.live.Millis("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
		ExpiryCheck:  h.live.Millis("transaction.remove.expired.transaction.cleanup.interval.ms"),
		IDExpiration: h.live.Millis("transactional.id.expiration.ms"),
		Patience:     h.live.Millis("add.partitions.to.txn.retry.backoff.max.ms"),
	})
	machines := &txn.Options{
		Settings: func() txn.Settings { return *h.settings.Load() },
		End:      h.writer.add,
		Events:   h.machineEvents(),
	}
	h.runtime = coordinator.New(coordinator.Options[*txn.Machine]{
		New:    func(partition int32) *txn.Machine { return txn.New(partition, machines) },
		Events: o.Events,
	})
	return h
}

// Runtime has the shards of __transaction_state.
func (h *Handlers) Runtime() *coordinator.Runtime[*txn.Machine] { return h.runtime }

// Close ends the shards; what was appended is still answered. Markers that are not
// written yet are written after the next start.
func (h *Handlers) Close() {
	h.writer.close()
	h.runtime.Close()
}

// APIs is the part of the API table that the handlers serve.
func (h *Handlers) APIs() []protocol.API {
	return []protocol.API{
		h.initAPI(),
		{Key: int16(kmsg.AddPartitionsToTxn), Max: 5, Submit: h.addPartitionsToTxn},
		{Key: int16(kmsg.AddOffsetsToTxn), Max: 4, MaxBytes: 1 << 17, Submit: h.addOffsetsToTxn},
		{Key: int16(kmsg.EndTxn), Max: 5, MaxBytes: 1 << 16, Submit: h.endTxn},
		{Key: int16(kmsg.WriteTxnMarkers), Min: 1, Max: 2, Submit: h.writeTxnMarkers},
		{Key: int16(kmsg.TxnOffsetCommit), Max: 5, Submit: h.txnOffsetCommit},
		{Key: int16(kmsg.DescribeProducers), Max: 0, Submit: h.describeProducers},
		{Key: int16(kmsg.DescribeTransactions), Max: 0, Submit: h.describeTransactions},
		{Key: int16(kmsg.ListTransactions), Max: 2, Submit: h.listTransactions},
	}
}

// shard is the coordinator of a transactional id, nil if it is not here.
func (h *Handlers) shard(id string) *Shard {
	t := h.replicas.Topic(TransactionsTopic)
	if t == nil {
		return nil
	}
	return h.runtime.Shard(coordinator.Partition(id, t.Partitions()))
}

// machineEvents are lines about what the machines do by themselves.
func (h *Handlers) machineEvents() txn.Events {
	return txn.Events{
		TimedOut: func(id string, p coordinator.Producer, timeout time.Duration) {
			h.logger.Info("transaction took too long and is aborted", zap.String("transactional_id", id),
				zap.Int64("producer_id", p.ID), zap.Int16("producer_epoch", p.Epoch), zap.Duration("timeout", timeout))
		},
		Expired: func(ids int) { h.logger.Info("unused transactional ids are forgotten", zap.Int("ids", ids)) },
	}
}
