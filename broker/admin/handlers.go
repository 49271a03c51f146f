package admin

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// Controller is what the handlers need of the cluster's metadata;
// *controller.Client has it.
type Controller interface {
	Image() *meta.Image
	CreateTopics(ctx context.Context, topics []controller.NewTopic) []error
	DeleteTopics(ctx context.Context, ids []meta.TopicID) []error
	CreatePartitions(ctx context.Context, id meta.TopicID, from int, assignments [][]int32) error
	ChangePartitions(ctx context.Context, refs []controller.PartitionRef, change controller.PartitionChange) []error
	UpdateFeatures(ctx context.Context, change func(*meta.Image) (map[string]int16, error)) error
	UnregisterBroker(ctx context.Context, id int32) error
	AlterQuotas(ctx context.Context, changes []controller.QuotaChange) error
	AlterConfigs(ctx context.Context, r meta.Resource, change func(cur map[string]string) (map[string]string, error)) error
}

// Options are what the handlers work with.
type Options struct {
	Controller Controller
	Live       *config.Live
	NodeID     int32
	// Quotas hold clients to the topics that they may change; nil: to none.
	Quotas *quota.Manager
	Logger *zap.Logger // Nil logs nothing.
	// LogLevel is the level of all loggers, shown as the logger "root".
	LogLevel zap.AtomicLevel
	// LogDir is the data directory's absolute name.
	LogDir string
	// Space tells the free and all bytes of the data directory's disk.
	Space func() (free, total uint64)
	// Size tells what a partition that is here takes, and how far it lags
	// behind its leader; false when it is not here. SizesOf makes one.
	Size func(topic meta.TopicID, partition int32) (bytes, lag int64, here bool)
}

// SizesOf makes Options.Size of a replica.Set.
func SizesOf(set *replica.Set) func(meta.TopicID, int32) (bytes, lag int64, here bool) {
	return func(id meta.TopicID, i int32) (bytes, lag int64, here bool) {
		p, err := replica.Find(set.TopicByID(id), i)
		if err != nil {
			return 0, 0, false
		}
		l := p.Log()
		return l.Bytes(), max(0, p.HighWatermark()-l.End()), true
	}
}

// Handlers serve the APIs of this package.
type Handlers struct {
	opts    Options
	creator *creator
}

// New makes the handlers.
func New(o Options) *Handlers {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Quotas == nil {
		o.Quotas = quota.New(quota.Options{})
	}
	h := &Handlers{opts: o}
	h.creator = newCreator(h)
	return h
}

// Close ends what goes on in the background.
func (h *Handlers) Close() { h.creator.close() }

// APIs is the table of what is served here.
func (h *Handlers) APIs() []protocol.API {
	return []protocol.API{
		{Key: int16(kmsg.Metadata), Max: 13, Submit: reads(h.metadata)},
		{Key: int16(kmsg.CreateTopics), Min: 2, Max: 7, Submit: writes(h.createTopics)},
		{Key: int16(kmsg.DeleteTopics), Min: 1, Max: 6, Submit: writes(h.deleteTopics)},
		{Key: int16(kmsg.DescribeACLs), Min: 1, Max: 3, Submit: reads(h.describeAcls)},
		{Key: int16(kmsg.CreateACLs), Min: 1, Max: 3, Submit: reads(h.createAcls)},
		{Key: int16(kmsg.DeleteACLs), Min: 1, Max: 3, Submit: reads(h.deleteAcls)},
		{Key: int16(kmsg.DescribeConfigs), Min: 1, Max: 4, MaxBytes: 2 << 20, Submit: reads(h.describeConfigs)},
		{Key: int16(kmsg.AlterConfigs), Max: 2, Submit: writes(h.alterConfigs)},
		{Key: int16(kmsg.AlterReplicaLogDirs), Min: 1, Max: 2, Submit: reads(h.alterReplicaLogDirs)},
		{Key: int16(kmsg.DescribeLogDirs), Min: 1, Max: 5, Submit: reads(h.describeLogDirs)},
		{Key: int16(kmsg.CreatePartitions), Max: 3, Submit: writes(h.createPartitions)},
		{Key: int16(kmsg.ElectLeaders), Max: 2, Submit: writes(h.electLeaders)},
		{Key: int16(kmsg.IncrementalAlterConfigs), Max: 1, Submit: writes(h.incrementalAlterConfigs)},
		{Key: int16(kmsg.AlterPartitionAssignments), Max: 1, Submit: writes(h.alterPartitionReassignments)},
		{Key: int16(kmsg.ListPartitionReassignments), Max: 0, Submit: reads(h.listPartitionReassignments)},
		{Key: int16(kmsg.DescribeClientQuotas), Max: 1, Submit: reads(h.describeClientQuotas)},
		{Key: int16(kmsg.AlterClientQuotas), Max: 1, Submit: writes(h.alterClientQuotas)},
		{Key: int16(kmsg.DescribeQuorum), Max: 2, Submit: reads(h.describeQuorum)},
		{Key: int16(kmsg.UpdateFeatures), Max: 2, Submit: writes(h.updateFeatures)},
		{Key: int16(kmsg.DescribeCluster), Max: 2, Submit: reads(h.describeCluster)},
		{Key: int16(kmsg.UnregisterBroker), Max: 0, Submit: writes(h.unregisterBroker)},
		{Key: int16(kmsg.ListConfigResources), Max: 1, Submit: reads(h.listConfigResources)},
		{Key: int16(kmsg.DescribeTopicPartitions), Max: 0, Submit: reads(h.describeTopicPartitions)},
	}
}

// reads serves what needs the local image only. It looks at it when the
// answer's turn has come, so that it shows what earlier requests of the
// connection have changed.
func reads[R kmsg.Request, A kmsg.Response](serve func(c *protocol.Call, req R, answer A)) func(*protocol.Call) protocol.Finish {
	finish := finishing(serve)
	return func(c *protocol.Call) protocol.Finish {
		c.ReadyWhen(always)
		return finish(c)
	}
}

func always() bool { return true }

func finishing[R kmsg.Request, A kmsg.Response](serve func(c *protocol.Call, req R, answer A)) func(*protocol.Call) protocol.Finish {
	return func(c *protocol.Call) protocol.Finish {
		return func() protocol.Reply {
			answer := c.Request.ResponseKind()
			serve(c, c.Request.(R), answer.(A))
			return protocol.Reply{Msg: answer}
		}
	}
}

// writes serves what waits for the metadata store.
func writes[R kmsg.Request, A kmsg.Response](serve func(c *protocol.Call, req R, answer A)) func(*protocol.Call) protocol.Finish {
	finish := finishing(serve)
	return func(c *protocol.Call) protocol.Finish {
		c.MayPark()
		return finish(c)
	}
}

// deadline bounds a change by the time that its client allows. It goes on when
// the client hangs up: what was asked for is done.
func deadline(c *protocol.Call, timeoutMs int32) (context.Context, context.CancelFunc) {
	const least, most = time.Second, time.Minute
	t := max(least, min(time.Duration(timeoutMs)*time.Millisecond, most))
	return context.WithTimeout(context.WithoutCancel(c.Ctx), t)
}

// defaultTimeoutMs is for requests that carry no timeout.
const defaultTimeoutMs = 30_000
