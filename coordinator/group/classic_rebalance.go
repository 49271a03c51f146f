package group

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// memberJoined goes on after a member has joined, or has joined again.
func (g *Classic) memberJoined(t *coordinator.Turn) {
	if g.st == statePreparing {
		g.tryComplete(t)
		return
	}
	g.prepare(t)
}

// membersLeft goes on after members have left.
func (g *Classic) membersLeft(t *coordinator.Turn) {
	switch g.st {
	case stateStable, stateCompleting:
		g.prepare(t)
	case statePreparing:
		g.tryComplete(t)
	}
}

// prepare begins a rebalance: all members are to join again.
func (g *Classic) prepare(t *coordinator.Turn) {
	if g.st == stateCompleting {
		g.takeBack(kerr.RebalanceInProgress)
	}
	t.Stop(&g.syncTimer)
	initial := g.st == stateEmpty
	g.moveTo(t, statePreparing)
	if initial {
		// More members are likely to come soon after the first.
		delay := g.m.settings().InitialRebalanceDelay
		g.grown, g.remaining = false, max(0, g.rebalanceTimeout()-delay)
		t.Set(&g.joinTimer, t.Now().Add(delay))
		return
	}
	t.Set(&g.joinTimer, t.Now().Add(g.rebalanceTimeout()))
	g.tryComplete(t)
}

// tryComplete ends the rebalance if nobody is missing. The initial delay is not
// cut short.
func (g *Classic) tryComplete(t *coordinator.Turn) {
	if g.before != stateEmpty && g.joining == len(g.members) && len(g.expected) == 0 {
		g.complete(t)
	}
}

// joinTime is when the rebalance has taken long enough.
func (g *Classic) joinTime(t *coordinator.Turn) {
	if g.st != statePreparing {
		return
	}
	if g.before == stateEmpty && g.grown && g.remaining > 0 {
		delay := g.m.settings().InitialRebalanceDelay
		next := min(delay, g.remaining)
		g.grown, g.remaining = false, max(0, g.remaining-delay)
		t.Set(&g.joinTimer, t.Now().Add(next))
		return
	}
	g.complete(t)
}

// complete ends the rebalance with those that have joined. Dynamic members that
// have not are out; static ones stay, as they may be restarting.
func (g *Classic) complete(t *coordinator.Turn) {
	t.Stop(&g.joinTimer)
	var missing []*member
	for _, x := range g.order {
		if x.join == nil && x.instance == nil {
			missing = append(missing, x)
		}
	}
	for _, x := range missing {
		g.remove(t, x)
	}
	if len(g.members) == 0 {
		g.generation++
		g.protocol = nil
		g.moveTo(t, stateEmpty)
		g.readTopics()
		clear(g.unsynced)
		g.write(t)
		return
	}
	if !g.electJoined() {
		// Only static members are left, and none has joined: their sessions end them.
		t.Set(&g.joinTimer, t.Now().Add(g.rebalanceTimeout()))
		return
	}
	g.generation++
	g.protocol = g.choose()
	g.moveTo(t, stateCompleting)
	g.readTopics()
	g.answerJoins(t)
}

// electJoined makes sure that the leader is a member that has joined.
func (g *Classic) electJoined() bool {
	if x := g.members[g.leader]; x != nil && x.join != nil {
		return true
	}
	for _, x := range g.order {
		if x.join != nil {
			g.leader = x.id
			return true
		}
	}
	return false
}

// answerJoins tells all members the new generation, and waits for their syncs.
func (g *Classic) answerJoins(t *coordinator.Turn) {
	g.unsynced = make(map[string]struct{}, len(g.members))
	for _, x := range g.order {
		if x.join != nil {
			coordinator.Deliver(t, x.join, g.joined(x, true))
			g.unpark(x)
		}
		x.fresh = false
		g.touch(t, x, x.session)
		g.unsynced[x.id] = struct{}{}
	}
	t.Set(&g.syncTimer, t.Now().Add(g.rebalanceTimeout()))
}

// syncTime is when members that have not synced are out.
func (g *Classic) syncTime(t *coordinator.Turn) {
	if g.st != stateCompleting && g.st != stateStable || len(g.unsynced) == 0 {
		return
	}
	var late []*member
	for _, x := range g.order {
		if _, ok := g.unsynced[x.id]; ok {
			late = append(late, x)
		}
	}
	for _, x := range late {
		g.remove(t, x)
	}
	g.prepare(t)
}

// sessionTime is when a member's session may be over.
func (g *Classic) sessionTime(t *coordinator.Turn, x *member) {
	waits := x.join != nil || x.sync != nil
	switch {
	case g.members[x.id] != x:
		return
	case !x.fresh && waits:
		// Who waits for a rebalance is alive as long as that takes.
		g.touch(t, x, x.session)
		return
	case t.Now().Before(x.deadline):
		t.Set(&x.timer, x.deadline)
		return
	}
	g.remove(t, x)
	g.membersLeft(t)
}
