package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// consumerLeave serves a heartbeat that says good-bye.
func (m *Machine) consumerLeave(t *coordinator.Turn, req *kmsg.ConsumerGroupHeartbeatRequest, resp *kmsg.ConsumerGroupHeartbeatResponse) error {
	g, ok := m.groups[req.Group].(*Consumer)
	if !ok {
		return m.noConsumerGroup(req.Group)
	}
	x, err := g.find(req.MemberID, req.InstanceID)
	if err != nil {
		return err
	}
	resp.MemberID, resp.MemberEpoch = x.id, req.MemberEpoch
	if req.MemberEpoch == epochStaticLeave {
		g.pause(t, x)
		return nil
	}
	g.fence(t, []*consumerMember{x})
	return nil
}

// noConsumerGroup says that there is no such consumer group.
func (m *Machine) noConsumerGroup(id string) error {
	if m.groups[id] != nil {
		return refuse(kerr.GroupIDNotFound, "Group %s is not a consumer group.", id)
	}
	return refuse(kerr.GroupIDNotFound, "Consumer group %s not found.", id)
}

// pause notes that a static member is away for a while: what it was assigned waits
// for it until its session is over.
func (g *Consumer) pause(t *coordinator.Turn, x *consumerMember) {
	revoking := x.revoking
	x.epoch, x.revoking, x.limit = epochStaticLeave, nil, time.Time{}
	g.own(x, revoking)
	g.writeCurrent(t, x)
}

// fence takes members out. The others move on with their next heartbeats. If only
// members of the classic protocol are left the group becomes theirs.
func (g *Consumer) fence(t *coordinator.Turn, gone []*consumerMember) {
	if g.becomesClassic(gone) {
		for _, x := range gone {
			g.buryMember(t, x)
			g.drop(t, x)
		}
		g.toClassic(t, true)
		return
	}
	for _, x := range gone {
		pattern := x.pattern()
		g.buryMember(t, x)
		g.drop(t, x)
		g.dropPattern(t, pattern)
	}
	g.hash = g.topicsHash()
	g.epoch++
	g.writeEpoch(t)
}

// touch begins a member's session anew.
func (g *Consumer) touch(t *coordinator.Turn, x *consumerMember) {
	session := time.Duration(0)
	if x.classic != nil {
		session = x.classic.session
	} else {
		session = g.m.consumer(g.id).SessionTimeout
	}
	x.deadline = t.Now().Add(session)
	// A timer that goes off too early is set again then: heartbeats move the
	// deadline only.
	if next := x.due(); !x.timer.IsSet() || x.timer.At().After(next) {
		t.Set(&x.timer, next)
	}
}

// due is when the member is out if nothing is heard of it.
func (x *consumerMember) due() time.Time {
	if !x.limit.IsZero() && x.limit.Before(x.deadline) {
		return x.limit
	}
	return x.deadline
}

// memberTime is when a member may be out: its session is over, or it has not done
// in time what it was to do.
func (g *Consumer) memberTime(t *coordinator.Turn, x *consumerMember) {
	switch next := x.due(); {
	case g.members[*x.id] != x:
	case t.Now().Before(next):
		t.Set(&x.timer, next)
	default:
		g.fence(t, []*consumerMember{x})
	}
}
