package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

func (g *Classic) kind() Kind           { return KindClassic }
func (g *Classic) state() string        { return g.st.String() }
func (g *Classic) protocolType() string { return g.kindOfMembers }
func (g *Classic) empty() bool          { return len(g.members) == 0 && g.st == stateEmpty }

// checkCommit tells whether a member may commit offsets. A commit without a
// member comes from a tool or from a reader that manages its partitions itself:
// it must not disturb members. An old transactional producer says no member.
func (g *Classic) checkCommit(t *coordinator.Turn, c commitBy) error {
	if c.epoch < 0 && g.st == stateEmpty {
		return nil
	}
	if c.epoch >= 0 || c.memberID != "" || c.instanceID != nil {
		x, err := g.find(c.memberID, c.instanceID)
		if err != nil {
			return err
		}
		if c.epoch != g.generation {
			return kerr.IllegalGeneration
		}
		if !c.inTxn && g.st == stateCompleting {
			return kerr.RebalanceInProgress
		}
		g.touch(t, x, x.session)
		return nil
	}
	if !c.inTxn {
		return kerr.UnknownMemberID
	}
	return nil
}

// checkFetch lets everybody fetch: classic members have no epoch.
func (g *Classic) checkFetch(*string, int32) error { return nil }

func (g *Classic) checkDelete() error {
	if g.st == stateEmpty {
		return nil
	}
	return kerr.NonEmptyGroup
}

// checkDeleteOffsets refuses while there are members of whom it is not known what
// they read.
func (g *Classic) checkDeleteOffsets() error {
	if g.st == stateEmpty || g.kindOfMembers == consumerType {
		return nil
	}
	return kerr.NonEmptyGroup
}

// reads also holds while consumers do not say, or not in a way that can be read, what they are subscribed to.
func (g *Classic) reads(topic string) bool {
	if g.topics == nil {
		return g.kindOfMembers == consumerType && g.st != stateEmpty
	}
	_, ok := g.topics[topic]
	return ok
}

// offsetsAge: without members the clock runs from when the last one has left. A
// member that reads a topic keeps its offset, however old; what nobody reads any
// more ages from its commit. A group that nobody ever joined is a place for
// offsets, each of an age of its own.
func (g *Classic) offsetsAge() (since time.Time, ok bool) {
	switch {
	case g.kindOfMembers == "":
		return time.Time{}, true
	case g.st == stateEmpty:
		return g.since, true
	case g.st == stateStable && g.topics != nil:
		return time.Time{}, true
	}
	return time.Time{}, false
}

func (g *Classic) bury(t *coordinator.Turn) { t.Append(groupKey(g.id), nil) }

func (g *Classic) stop(t *coordinator.Turn) {
	t.Stop(&g.joinTimer)
	t.Stop(&g.syncTimer)
	for _, x := range g.order {
		t.Stop(&x.timer)
		g.answerJoinError(x, kerr.UnknownMemberID)
		g.answerSyncError(x, kerr.UnknownMemberID)
	}
	for _, timer := range g.expected {
		t.Stop(timer)
	}
	g.st = stateDead
}

func (g *Classic) resigned(err error) {
	for _, x := range g.order {
		if x.join != nil {
			x.join.Fail(err)
		}
		if x.sync != nil {
			x.sync.Fail(err)
		}
	}
}

// loaded is called when all records are there: the members' sessions begin anew.
func (g *Classic) loaded(t *coordinator.Turn) {
	for _, x := range g.order {
		g.touch(t, x, x.session)
	}
	if len(g.members) > g.m.settings().MaxSize {
		g.prepare(t)
	}
}
