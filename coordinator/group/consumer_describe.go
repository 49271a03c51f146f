package group

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// Kinds of members as ConsumerGroupDescribe shows them.
const (
	classicMember = 0
	newMember     = 1
)

// DescribeConsumer tells all about a consumer group.
func (m *Machine) DescribeConsumer(t *coordinator.Turn, id string, p *coordinator.Promise[kmsg.ConsumerGroupDescribeResponseGroup]) {
	row := kmsg.NewConsumerGroupDescribeResponseGroup()
	row.Group = id
	g, ok := m.groups[id].(*Consumer)
	switch {
	case id == "":
		row.ErrorCode = kerr.InvalidGroupID.Code
	case !ok:
		text := "Group " + id + " not found."
		if m.groups[id] != nil {
			text = "Group " + id + " is not a consumer group."
		}
		row.ErrorCode, row.ErrorMessage = kerr.GroupIDNotFound.Code, &text
	default:
		row.State, row.Epoch, row.AssignmentEpoch = g.state(), g.epoch, g.targetEpoch
		row.AssignorName = g.assignor(m.consumer(id))
		for _, x := range g.membersByAge() {
			row.Members = append(row.Members, g.describe(x))
		}
	}
	coordinator.Deliver(t, p, row)
}

func (g *Consumer) describe(x *consumerMember) kmsg.ConsumerGroupDescribeResponseGroupMember {
	r := kmsg.NewConsumerGroupDescribeResponseGroupMember()
	r.MemberID, r.InstanceID, r.RackID, r.MemberEpoch = *x.id, x.instance, x.rack, x.epoch
	r.ClientID, r.ClientHost = x.clientID, x.host
	expression := x.pattern()
	r.SubscribedTopics, r.SubscribedTopicRegex = x.names, &expression
	// What it is to give back it has still.
	r.Assignment, r.TargetAssignment = g.described(x.assigned.Or(x.revoking)), g.described(x.target)
	r.MemberType = newMember
	if x.classic != nil {
		r.MemberType = classicMember
	}
	return r
}

// membersByAge are the members in the order in which they came.
func (g *Consumer) membersByAge() []*consumerMember {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *consumerMember) int { return cmp.Compare(a.order, b.order) })
}

// described are the partitions of topics that exist.
func (g *Consumer) described(s assign.Set) kmsg.Assignment {
	a := kmsg.NewAssignment()
	for i := range s {
		if name, ok := g.m.opts.Cluster.Name(s[i].Topic); ok {
			topic := kmsg.NewAssignmentTopicPartition()
			topic.TopicID, topic.Topic, topic.Partitions = s[i].Topic, name, s[i].Partitions
			a.TopicPartitions = append(a.TopicPartitions, topic)
		}
	}
	return a
}

// newUUID is a member id as consumer groups make it: 22 characters of URL-safe
// base64. It does not begin with a dash, which tools would take for an option.
func (m *Machine) newUUID() string {
	if m.opts.NewID != nil {
		return m.opts.NewID()
	}
	for {
		var u [16]byte
		_, _ = rand.Read(u[:]) // It never fails.
		u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
		if s := base64.RawURLEncoding.EncodeToString(u[:]); s[0] != '-' {
			return s
		}
	}
}
