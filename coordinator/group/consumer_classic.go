package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// Members of the classic protocol in a consumer group: what others do with one
// heartbeat after the other they do by joining and syncing again. A heartbeat that
// is answered with REBALANCE_IN_PROGRESS sends them there; their generation is
// their member epoch.

// join serves a JoinGroup. A group without members becomes a classic one. Unlike in
// classic groups a refusal does not repeat the member's id.
func (g *Consumer) join(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, p *joinPromise) {
	if g.empty() {
		g.joinEmpty(t, c, req, p)
		return
	}
	if !g.fits(req) {
		refuseJoin(p, "", kerr.GroupMaxSizeReached)
		return
	}
	protocols := protocolsOf(req)
	s := g.m.consumer(g.id)
	if err := g.mayJoin(req, protocols, s); err != nil {
		refuseJoin(p, "", err)
		return
	}
	id := req.MemberID
	if id == "" {
		id = g.m.newUUID()
		if req.InstanceID == nil && c.Version >= needsMemberID {
			// It is to come again with this id. Nothing is kept of that: any id will do.
			refuseJoin(p, id, kerr.MemberIDRequired)
			return
		}
	}
	var subscription kmsg.ConsumerMemberMetadata
	if subscription.ReadFrom(protocols[0].metadata) != nil {
		refuseJoin(p, "", kerr.InconsistentGroupProtocol)
		return
	}
	x, replaced, err := g.joiningClassic(t, id, req)
	if err != nil {
		refuseJoin(p, "", err)
		return
	}
	news := g.hearClassic(t, x, c, req, protocols, &subscription)
	resp := joinResponse(*x.id)
	if replaced && g.becomesClassic(nil) {
		g.refreshFor(t, news)
		g.toClassic(t, !g.settledBut(x))
		resp.Generation = g.epoch
	} else {
		g.advance(t, x, s, news, g.ownedByName(subscription.OwnedPartitions))
		x.limit = t.Now().Add(x.rebalance) // It is to sync until then.
		g.touch(t, x)
		resp.Generation = x.epoch
	}
	kind, protocol := consumerType, protocols[0].name
	resp.ProtocolType, resp.Protocol = &kind, &protocol
	coordinator.Deliver(t, p, resp)
}

// mayJoin tells whether the group is for members of the classic protocol, and for
// one with these protocols.
func (g *Consumer) mayJoin(req *kmsg.JoinGroupRequest, protocols []memberProtocol, s *ConsumerSettings) error {
	if !s.Upgrade && !s.Downgrade {
		return kerr.InconsistentGroupProtocol
	}
	if err := g.checkRoom(req.MemberID, s); err != nil {
		return err
	}
	if !g.agrees(req.ProtocolType, protocols) {
		return kerr.InconsistentGroupProtocol
	}
	return nil
}

// joinEmpty lets a member of the classic protocol in where nobody is.
func (g *Consumer) joinEmpty(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, p *joinPromise) {
	if req.MemberID != "" {
		refuseJoin(p, req.MemberID, kerr.UnknownMemberID)
		return
	}
	to := g.m.newClassic(g.id)
	to.since = t.Now()
	g.m.replace(t, g.id, to)
	to.write(t)
	to.join(t, c, req, p)
}

// agrees tells whether a member with these protocols fits with the others of the
// classic protocol.
func (g *Consumer) agrees(protocolType string, protocols []memberProtocol) bool {
	if protocolType != consumerType || len(protocols) == 0 {
		return false
	}
	return slices.ContainsFunc(protocols, func(p memberProtocol) bool { return g.votes[p.name] == g.classic })
}

// joiningClassic is the member that joins; replaced tells that it is a static
// member that used the consumer protocol before.
func (g *Consumer) joiningClassic(t *coordinator.Turn, id string, req *kmsg.JoinGroupRequest) (x *consumerMember, replaced bool, err error) {
	if req.InstanceID != nil {
		old := g.static[*req.InstanceID]
		switch {
		case req.MemberID != "":
			x, err = g.find(id, req.InstanceID)
			return x, err == nil && x.classic == nil, err
		case old != nil:
			replaced = old.classic == nil
			g.takeOver(t, old, id)
			return old, replaced, nil
		}
	}
	if x = g.members[id]; x == nil {
		x = g.newMember(id)
		g.add(x)
	}
	return x, false, nil
}

// hearClassic takes over what a JoinGroup says; it tells what that changes.
func (g *Consumer) hearClassic(t *coordinator.Turn, x *consumerMember, c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol,
	subscription *kmsg.ConsumerMemberMetadata,
) change {
	session := time.Duration(req.SessionTimeoutMillis) * time.Millisecond
	says := said{
		instance: req.InstanceID, rack: subscription.Rack, clientID: c.ID, host: c.Host,
		names: sortedNames(subscription.Topics), regex: noPattern(x),
		rebalance: max(0, time.Duration(req.RebalanceTimeoutMillis)*time.Millisecond),
		classic:   &classicPart{session, protocols},
	}
	if c.Version == 0 {
		says.rebalance = session
	}
	return g.learn(t, x, &says)
}

// noPattern ends a member's subscription to a regular expression, which the classic
// protocol does not have.
func noPattern(x *consumerMember) *string {
	if x.pattern() == "" {
		return nil
	}
	return new(string)
}

// ownedByName is what a member of the classic protocol says that it holds.
func (g *Consumer) ownedByName(owned []kmsg.ConsumerMemberMetadataOwnedPartition) assign.Set {
	of := make(map[TopicID][]int32, len(owned))
	for i := range owned {
		if topic, ok := g.m.topic(owned[i].Topic); ok {
			of[topic.ID] = append(of[topic.ID], owned[i].Partitions...)
		}
	}
	if s := assign.NewSet(of); s != nil {
		return s
	}
	return assign.Set{}
}

// findClassic is a member of the classic protocol, in its generation.
func (g *Consumer) findClassic(memberID string, instance *string, generation int32) (*consumerMember, error) {
	x, err := g.find(memberID, instance)
	switch {
	case err != nil:
		return nil, err
	case x.classic == nil:
		return nil, kerr.UnknownMemberID
	case x.epoch != generation:
		return nil, kerr.IllegalGeneration
	}
	return x, nil
}

// sync serves a SyncGroup: the assignment is the broker's.
func (g *Consumer) sync(t *coordinator.Turn, _ Client, req *kmsg.SyncGroupRequest, p *syncPromise) {
	x, err := g.findClassic(req.MemberID, req.InstanceID, req.Generation)
	switch {
	case err != nil:
	case req.ProtocolType != nil && *req.ProtocolType != consumerType,
		req.Protocol != nil && *req.Protocol != x.classic.protocols[0].name:
		err = kerr.InconsistentGroupProtocol
	case g.targetEpoch > x.epoch && x.state != memberUnrevoked:
		g.expectJoin(t, x)
		err = kerr.RebalanceInProgress
	}
	if err != nil {
		refuseSync(p, err)
		return
	}
	x.limit = time.Time{}
	g.touch(t, x)
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ProtocolType, resp.Protocol = req.ProtocolType, req.Protocol
	resp.MemberAssignment = g.m.classicAssignment(x, x.assigned)
	coordinator.Deliver(t, p, resp)
}

// classicAssignment is a part of the topics for a member, in the way of the classic
// protocol.
func (m *Machine) classicAssignment(x *consumerMember, part assign.Set) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	var subscription kmsg.ConsumerMemberMetadata
	if subscription.ReadFrom(x.classic.protocols[0].metadata) == nil {
		a.Version = subscription.Version
	}
	for i := range part {
		if name, ok := m.opts.Cluster.Name(part[i].Topic); ok {
			topic := kmsg.NewConsumerMemberAssignmentTopic()
			topic.Topic, topic.Partitions = name, part[i].Partitions
			a.Topics = append(a.Topics, topic)
		}
	}
	return a.AppendTo(nil)
}

// heartbeat serves a Heartbeat: it sends a member to join again when there is
// something for it to do. That may be to have a target computed: there need not be
// a member of the new protocol whose heartbeats do so, nor one that sees what
// becomes of the topics.
func (g *Consumer) heartbeat(t *coordinator.Turn, req *kmsg.HeartbeatRequest) error {
	x, err := g.findClassic(req.MemberID, req.InstanceID, req.Generation)
	if err != nil {
		return err
	}
	if g.outdated {
		g.refresh(t, false)
	}
	rejoin := x.epoch < g.targetEpoch || g.epoch > g.targetEpoch && g.mayAssign(t, g.m.consumer(g.id).AssignmentInterval) ||
		x.state == memberUnrevoked || x.state == memberUnreleased && !g.waits(x)
	if rejoin {
		g.expectJoin(t, x)
	}
	g.touch(t, x)
	if rejoin {
		return kerr.RebalanceInProgress
	}
	return nil
}

// expectJoin gives a member its time to join again, from when it was first told.
func (g *Consumer) expectJoin(t *coordinator.Turn, x *consumerMember) {
	if x.limit.IsZero() {
		x.limit = t.Now().Add(x.rebalance)
	}
}

// leave serves a LeaveGroup, of members of either protocol. One that is named twice
// leaves once, and both are told so.
func (g *Consumer) leave(t *coordinator.Turn, _ Client, members []kmsg.LeaveGroupRequestMember) []error {
	errs := make([]error, len(members))
	var gone []*consumerMember
	for i := range members {
		x, err := g.leaving(&members[i])
		if errs[i] = err; err == nil && !slices.Contains(gone, x) {
			gone = append(gone, x)
		}
	}
	if len(gone) > 0 {
		g.fence(t, gone)
	}
	return errs
}

// leaving is who leaves. An administrator names a static member by its instance id
// alone.
func (g *Consumer) leaving(who *kmsg.LeaveGroupRequestMember) (*consumerMember, error) {
	id := who.MemberID
	if who.InstanceID != nil && id == "" {
		if x := g.static[*who.InstanceID]; x != nil {
			id = *x.id
		}
	}
	return g.find(id, who.InstanceID)
}

func sameProtocol(a, b memberProtocol) bool {
	return a.name == b.name && slices.Equal(a.metadata, b.metadata)
}
