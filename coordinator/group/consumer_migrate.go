package group

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// consumerGroup is the group that a member heartbeats to. One that is joined is made
// if it is not there; a classic group that nobody is in is replaced, and one with
// members is taken over with them if that is allowed.
func (m *Machine) consumerGroup(t *coordinator.Turn, id, memberID string, join bool, s *ConsumerSettings) (*Consumer, error) {
	switch g := m.groups[id].(type) {
	case *Consumer:
		return g, nil
	case *Classic:
		if join {
			return m.fromClassic(t, g, memberID, s)
		}
	case nil:
		if join {
			return m.makeConsumer(t, id), nil
		}
	}
	return nil, m.noConsumerGroup(id)
}

// makeConsumer makes a group without members.
func (m *Machine) makeConsumer(t *coordinator.Turn, id string) *Consumer {
	g := m.newConsumer(id)
	m.replace(t, id, g)
	g.writeEpoch(t)
	return g
}

// fromClassic turns a classic group into a consumer group. Its members stay: they
// go on with the classic protocol, in the epoch of their generation.
func (m *Machine) fromClassic(t *coordinator.Turn, old *Classic, joining string, s *ConsumerSettings) (*Consumer, error) {
	if old.empty() {
		return m.makeConsumer(t, old.id), nil
	}
	const cannot = "Cannot upgrade classic group %s to consumer group because "
	not := kerr.GroupIDNotFound
	switch {
	case !s.Upgrade:
		return nil, refuse(not, cannot+"online upgrade is disabled.", old.id)
	case old.kindOfMembers != consumerType || old.protocol == nil:
		return nil, refuse(not, cannot+"the group does not use the consumer embedded protocol.", old.id)
	case len(old.members) > s.MaxSize:
		return nil, refuse(not, cannot+"the group size exceeds the consumer group maximum size.", old.id)
	case len(old.members) >= s.MaxSize && old.members[joining] == nil:
		return nil, refuse(kerr.GroupMaxSizeReached, "The consumer group has reached its maximum capacity of %d members.", s.MaxSize)
	}
	g := m.newConsumer(old.id)
	g.epoch, g.targetEpoch = old.generation, old.generation
	for _, y := range old.order {
		x, err := g.fromClassicMember(y, *old.protocol)
		switch {
		case errors.Is(err, errUserData):
			return nil, refuse(not, cannot+"an unsupported custom assignor is in use. Please refer to the documentation or"+
				" switch to a default assignor before re-attempting the upgrade.", old.id)
		case err != nil:
			return nil, refuse(not, cannot+"the embedded consumer protocol is malformed.", old.id)
		}
		g.add(x)
		g.own(x)
	}
	for _, y := range old.order {
		old.answerJoinError(y, kerr.RebalanceInProgress)
		old.answerSyncError(y, kerr.RebalanceInProgress)
	}
	m.replace(t, old.id, g)
	g.writeAll(t)
	for _, x := range g.members {
		g.touch(t, x)
	}
	return g, nil
}

// errUserData says that an assignor tells members more than their partitions.
var errUserData = errors.New("assignment with user data")

// fromClassicMember makes a member of one of a classic group. What the last
// assignment gave it is what it holds and what it is meant to have. What else an
// assignor of the members' own has told it would be lost: such a group stays.
func (g *Consumer) fromClassicMember(y *member, protocol string) (*consumerMember, error) {
	var assignment kmsg.ConsumerMemberAssignment
	if len(y.assignment) > 0 {
		if err := assignment.ReadFrom(y.assignment); err != nil {
			return nil, err
		}
	}
	if len(assignment.UserData) > 0 {
		return nil, errUserData
	}
	var subscription kmsg.ConsumerMemberMetadata
	if err := subscription.ReadFrom(y.metadataFor(protocol)); err != nil {
		return nil, err
	}
	of := make(map[TopicID][]int32, len(assignment.Topics))
	for i := range assignment.Topics {
		if topic, ok := g.m.topic(assignment.Topics[i].Topic); ok {
			of[topic.ID] = append(of[topic.ID], assignment.Topics[i].Partitions...)
		}
	}
	x := g.newMember(y.id)
	x.instance, x.rack, x.clientID, x.host = y.instance, subscription.Rack, y.clientID, y.host
	x.names = g.m.shared(sortedNames(subscription.Topics))
	x.rebalance, x.classic = y.rebalance, &classicPart{y.session, y.protocols}
	x.epoch, x.previous = g.epoch, g.epoch
	// What two members claim the first one has.
	x.target = assign.NewSet(of).Filter(func(topic TopicID, p int32) bool { return !g.taken(x, partitionID{topic, p}) })
	x.assigned = x.target
	return x, nil
}

// writeAll appends all of the group's records.
func (g *Consumer) writeAll(t *coordinator.Turn) {
	list := g.sortedMembers()
	for _, x := range list {
		g.writeMember(t, x)
	}
	g.writeEpoch(t)
	for _, x := range list {
		g.writeTarget(t, x)
	}
	g.writeTargetEpoch(t)
	for _, x := range list {
		g.writeCurrent(t, x)
	}
}

// becomesClassic tells whether the group turns into a classic one once some members
// are gone: all that are left use the classic protocol, and there are some.
func (g *Consumer) becomesClassic(gone []*consumerMember) bool {
	left, classic := len(g.members)-len(gone), g.classic
	for _, x := range gone {
		if x.classic != nil {
			classic--
		}
	}
	return left > 0 && left == classic && g.m.consumer(g.id).Downgrade && left <= g.m.settings().MaxSize
}

// settledBut tells whether the target is that of the group's epoch and all members
// but one have what it wants.
func (g *Consumer) settledBut(one *consumerMember) bool {
	for _, x := range g.members {
		if x != one && !x.settled(g.targetEpoch) {
			return false
		}
	}
	return g.epoch == g.targetEpoch
}

// generationGap is more than the generations that may be begun, and not completed,
// before the group is recorded anew.
const generationGap = 100

// toClassic turns the group into a classic one when all its members use the classic
// protocol. They go on with their targets, or rebalance if those are not what they
// hold. In that case they are noted with what they hold: as long as they have not
// joined again the group may turn back, and would give it to others otherwise.
func (g *Consumer) toClassic(t *coordinator.Turn, rebalance bool) {
	to := g.m.newClassic(g.id)
	to.kindOfMembers, to.generation, to.since = consumerType, g.epoch, t.Now()
	for _, x := range g.sortedMembers() {
		part := x.target
		if rebalance {
			part = x.assigned.Or(x.revoking)
		}
		to.add(to.fromConsumerMember(x, g.m.classicAssignment(x, part)))
	}
	to.protocol = to.choose()
	to.st, to.before = stateStable, stateStable
	to.readTopics()
	g.m.replace(t, g.id, to)
	if rebalance {
		// A coordinator that loads this does not know that the group is to rebalance. It
		// has the members join again as their generation is another one.
		to.generation += generationGap
	}
	to.write(t)
	to.generation = g.epoch
	for _, y := range slices.Clone(to.order) {
		to.touch(t, y, y.session)
	}
	if rebalance {
		to.prepare(t)
	}
}

// fromConsumerMember makes a member of one of a consumer group that used the
// classic protocol there.
func (g *Classic) fromConsumerMember(x *consumerMember, assignment []byte) *member {
	y := &member{
		id: *x.id, instance: x.instance, clientID: x.clientID, host: x.host,
		rebalance: max(0, x.rebalance), session: max(x.classic.session, time.Millisecond),
		protocols: x.classic.protocols, assignment: assignment,
	}
	y.timer.Fire = func(t *coordinator.Turn) { g.sessionTime(t, y) }
	return y
}
