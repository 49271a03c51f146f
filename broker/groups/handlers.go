package groups

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// Internal topics whose partitions' leaders are coordinators.
const (
	OffsetsTopic      = "__consumer_offsets"
	TransactionsTopic = "__transaction_state"
)

// Options configure the handlers.
type Options struct {
	Replicas *replica.Set
	Live     *config.Live
	// CreateTopic asks for an internal topic; it does not wait.
	CreateTopic func(name string)
	// Logger may be nil.
	Logger *zap.Logger
}

// Shard is the coordinator of a part of the groups.
type Shard = coordinator.Shard[*group.Machine]

// Handlers serve the APIs of this package.
type Handlers struct {
	replicas    *replica.Set
	live        *config.Live
	createTopic func(name string)
	logger      *zap.Logger
	runtime     *coordinator.Runtime[*group.Machine]
	settings    atomic.Pointer[group.Settings]
	consumers   atomic.Pointer[consumerSettings]
}

// New makes the handlers. Runtime is to be given the partitions to lead.
func New(o Options) *Handlers {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	h := &Handlers{replicas: o.Replicas, live: o.Live, createTopic: o.CreateTopic, logger: o.Logger}
	h.followSettings()
	machines := &group.Options{
		Settings: func() group.Settings { return *h.settings.Load() },
		Topics:   topics{h.replicas},
		Consumer: h.consumerOf,
		Cluster:  cluster{h.replicas},
	}
	h.runtime = coordinator.New(coordinator.Options[*group.Machine]{
		New:    func(int32) *group.Machine { return group.New(machines) },
		Events: h.events(),
	})
	return h
}

// Runtime has the shards of __consumer_offsets.
func (h *Handlers) Runtime() *coordinator.Runtime[*group.Machine] { return h.runtime }

// Close ends the shards; what was appended is still answered.
func (h *Handlers) Close() { h.runtime.Close() }

// APIs is the part of the API table that the handlers serve.
func (h *Handlers) APIs() []protocol.API {
	return append(h.consumerAPIs(), []protocol.API{
		{Key: int16(kmsg.OffsetCommit), Min: 2, Max: 10, Submit: h.offsetCommit},
		{Key: int16(kmsg.OffsetFetch), Min: 1, Max: 10, Submit: h.offsetFetch},
		{Key: int16(kmsg.FindCoordinator), Max: 6, Submit: h.findCoordinator},
		{Key: int16(kmsg.JoinGroup), Max: 9, Detached: true, Submit: h.joinGroup},
		{Key: int16(kmsg.Heartbeat), Max: 4, MaxBytes: 1 << 20, Submit: h.heartbeat},
		{Key: int16(kmsg.LeaveGroup), Max: 5, Submit: h.leaveGroup},
		{Key: int16(kmsg.SyncGroup), Max: 5, Detached: true, Submit: h.syncGroup},
		{Key: int16(kmsg.DescribeGroups), Max: 6, Submit: h.describeGroups},
		{Key: int16(kmsg.ListGroups), Max: 5, MaxBytes: 1 << 20, Submit: h.listGroups},
		{Key: int16(kmsg.DeleteGroups), Max: 2, Submit: h.deleteGroups},
		{Key: int16(kmsg.OffsetDelete), Max: 0, Submit: h.offsetDelete},
	}...)
}

// shard is the coordinator of a group, nil if it is not here.
func (h *Handlers) shard(id string) *Shard {
	t := h.replicas.Topic(OffsetsTopic)
	if t == nil {
		return nil
	}
	return h.runtime.Shard(coordinator.Partition(id, t.Partitions()))
}

// events reports what the shards do.
func (h *Handlers) events() coordinator.Events { return Events(OffsetsTopic, h.logger) }
