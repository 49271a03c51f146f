package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

func (g *Consumer) kind() Kind           { return KindConsumer }
func (g *Consumer) protocolType() string { return consumerType }
func (g *Consumer) empty() bool          { return len(g.members) == 0 }

func (g *Consumer) state() string {
	switch {
	case len(g.members) == 0:
		return "Empty"
	case g.epoch > g.targetEpoch:
		return "Assigning"
	}
	for _, x := range g.members {
		if !x.settled(g.targetEpoch) {
			return "Reconciling"
		}
	}
	return "Stable"
}

// checkCommit tells whether a member may commit offsets. An epoch that is over is
// judged for each partition, by checkCommitOf.
func (g *Consumer) checkCommit(t *coordinator.Turn, c commitBy) error {
	if g.speaksForItself(c) {
		return nil
	}
	x := g.members[c.memberID]
	switch {
	case x == nil:
		return kerr.UnknownMemberID
	case !c.inTxn && x.classic == nil && c.version < memberEpochs:
		return kerr.UnsupportedVersion
	case c.epoch > x.epoch:
		return x.staleCommit(c)
	}
	g.touch(t, x)
	return nil
}

// memberEpochs is the version of OffsetCommit from which members can say their epoch.
const memberEpochs = 9

// speaksForItself tells whether a commit needs no member: it is a tool's while
// there are no members, or an old transactional producer's.
func (g *Consumer) speaksForItself(c commitBy) bool {
	return c.epoch < 0 && (len(g.members) == 0 || c.inTxn && c.memberID == "" && c.instanceID == nil)
}

// checkEach judges the offsets of a commit one by one where the group does that.
func checkEach(g group, by commitBy, list []Offset, codes []int16) {
	c, ok := g.(*Consumer)
	if !ok {
		return
	}
	for i := range list {
		if codes[i] == 0 {
			codes[i] = codeOf(c.checkCommitOf(by, list[i].TopicID, list[i].Partition))
		}
	}
}

// checkCommitOf tells whether who may commit may do so for a partition: a member
// that has not heard of its newest epoch may, for what it held in the one that it
// knows and holds still (KIP-1251).
func (g *Consumer) checkCommitOf(c commitBy, topic TopicID, partition int32) error {
	x := g.members[c.memberID]
	if g.speaksForItself(c) || x == nil || c.epoch == x.epoch {
		return nil
	}
	if since, ok := g.since(x, partitionID{topic, partition}); !ok || c.epoch < since {
		return x.staleCommit(c)
	}
	return nil
}

// staleCommit is staleError for a commit: that of a transaction knows generations only.
func (x *consumerMember) staleCommit(c commitBy) error {
	if c.inTxn {
		return kerr.IllegalGeneration
	}
	return x.staleError()
}

// staleError says that the epoch is not the member's, in the way of its protocol.
func (x *consumerMember) staleError() error {
	if x.classic != nil {
		return kerr.IllegalGeneration
	}
	return kerr.StaleMemberEpoch
}

// checkFetch tells whether a member may fetch offsets; tools say no member.
func (g *Consumer) checkFetch(memberID *string, memberEpoch int32) error {
	if memberID == nil && memberEpoch < 0 {
		return nil
	}
	if memberID == nil {
		return kerr.UnknownMemberID
	}
	x := g.members[*memberID]
	switch {
	case x == nil:
		return kerr.UnknownMemberID
	case x.epoch != memberEpoch:
		return x.staleError()
	}
	return nil
}

func (g *Consumer) checkDelete() error {
	if len(g.members) > 0 {
		return kerr.NonEmptyGroup
	}
	return nil
}

func (g *Consumer) checkDeleteOffsets() error { return nil }

func (g *Consumer) reads(topic string) bool {
	if g.topics[topic] > 0 {
		return true
	}
	for _, p := range g.patterns {
		if p.members > 0 && p.has(topic) {
			return true
		}
	}
	return false
}

// offsetsAge: what no member reads ages from its commit.
func (g *Consumer) offsetsAge() (since time.Time, ok bool) { return time.Time{}, true }

func (g *Consumer) stop(t *coordinator.Turn) {
	t.Stop(&g.resolver)
	for _, x := range g.members {
		t.Stop(&x.timer)
	}
}

// resigned has nobody to tell: no request of members is parked.
func (g *Consumer) resigned(error) {}

// loaded is called when all records are there: sessions begin anew, and the topics
// are looked at anew with the first heartbeat.
func (g *Consumer) loaded(t *coordinator.Turn) {
	g.outdated = true
	for expression := range g.patterns {
		g.resolveSoon(t, expression)
	}
	for _, x := range g.members {
		if x.state == memberUnrevoked && x.classic == nil {
			x.limit = t.Now().Add(x.rebalance)
		}
		g.touch(t, x)
	}
}

// TopicsChanged tells the groups which topics were made or deleted, and which have
// changed otherwise. They look at theirs with the next heartbeat.
func (m *Machine) TopicsChanged(comeOrGone, changed []string) {
	for _, g := range m.groups {
		if c, ok := g.(*Consumer); ok && !c.outdated {
			c.outdated = slices.ContainsFunc(comeOrGone, c.mayRead) || slices.ContainsFunc(changed, c.reads)
		}
	}
}

// mayRead tells whether a topic of that name would be a member's.
func (g *Consumer) mayRead(name string) bool {
	if g.reads(name) {
		return true
	}
	for _, p := range g.patterns {
		if p.matcher != nil && p.matcher.MatchString(name) {
			return true
		}
	}
	return false
}
