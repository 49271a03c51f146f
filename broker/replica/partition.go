package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
)

// Partition is this broker's replica of a partition.
type Partition struct {
	topic *Topic
	index int32
	log   *log.Partition

	role atomic.Pointer[role]
	// hw is the high watermark; it only goes up.
	hw atomic.Int64
	// start is the log start that watches were last told of.
	start atomic.Int64
	// begun is the epoch that the store has begun since it was opened, -1 for
	// none. Guarded by Set.mu.
	begun int32

	mu      sync.Mutex
	watches *Watch // guarded by mu
}

// role is what the metadata says about a replica. It is immutable.
type role struct {
	leader   int32
	epoch    int32
	replicas int
	isr      []int32
	// leads says that this broker leads in this epoch, and that the store has
	// begun the epoch.
	leads bool
	// alone says that no other replica is in sync.
	alone bool
}

func newRole(m *meta.Partition, nodeID, begun int32) *role {
	return &role{
		leader:   m.Leader,
		epoch:    m.LeaderEpoch,
		replicas: len(m.Replicas),
		isr:      m.ISR,
		leads:    m.Leader == nodeID && begun == m.LeaderEpoch,
		alone:    len(m.ISR) == 1 && m.ISR[0] == nodeID,
	}
}

func (r *role) same(o *role) bool {
	return r != nil && r.leader == o.leader && r.epoch == o.epoch && r.replicas == o.replicas &&
		r.leads == o.leads && slices.Equal(r.isr, o.isr)
}

// Topic is the topic of the partition.
func (p *Partition) Topic() *Topic { return p.topic }

// Index is the partition's number.
func (p *Partition) Index() int32 { return p.index }

// Log is the partition's log, for what only reports: sizes, offsets, producers.
func (p *Partition) Log() *log.Partition { return p.log }

// Leads tells whether this broker leads the partition.
func (p *Partition) Leads() bool { return p.role.Load().leads }

// Leader tells who leads the partition, and in which epoch.
func (p *Partition) Leader() (node, epoch int32) {
	r := p.role.Load()
	return r.leader, r.epoch
}

// NoEpoch stands for an epoch that a client does not know.
const NoEpoch int32 = -1

// checkLeader returns the role if this broker leads and if current, unless it is
// NoEpoch, is the epoch. The epoch is looked at first: a client that knows more
// than this broker must not be told that the leader is elsewhere.
func (p *Partition) checkLeader(current int32) (*role, error) {
	if p.topic.Gone() {
		return nil, kerr.UnknownTopicOrPartition
	}
	r := p.role.Load()
	switch {
	case current != NoEpoch && current < r.epoch:
		return nil, kerr.FencedLeaderEpoch
	case current != NoEpoch && current > r.epoch:
		return nil, kerr.UnknownLeaderEpoch
	case !r.leads:
		return nil, kerr.NotLeaderForPartition
	}
	return r, nil
}

// minISR is how many replicas must be in sync: never more than there are.
func (p *Partition) minISR(r *role) int {
	return min(p.topic.Config().MinInsyncReplicas, r.replicas)
}
