package group

import (
	"time"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// reconcile moves a member towards its target, as far as that is possible now.
// changed says that its subscription has just changed; owned is what it says it
// holds, nil if it says nothing of it.
//
//	Stable      the target is of another epoch: move
//	Unrevoked   it has given back what it had to: move
//	Unreleased  move: others may have given back something
func (g *Consumer) reconcile(t *coordinator.Turn, x *consumerMember, changed bool, owned assign.Set) {
	if x.settled(g.targetEpoch) && !changed {
		return
	}
	next := *x // For comparison, and never kept.
	switch {
	case x.state == memberStable && x.epoch == g.targetEpoch,
		x.state == memberUnrevoked && holds(x.revoking, owned):
		if !changed {
			return
		}
		g.unsubscribed(&next, owned)
	default:
		g.move(&next, owned)
	}
	g.become(t, x, &next)
}

// holds tells whether a member holds something of a set; if it does not say what it
// holds it is believed to.
func holds(of, owned assign.Set) bool {
	if owned == nil {
		return len(of) > 0
	}
	return len(of.And(owned)) > 0
}

// move finds what a member is to do next: give back what it is not meant to have,
// and only then go to the target's epoch, with all of the target that is free.
func (g *Consumer) move(x *consumerMember, owned assign.Set) {
	target := x.target
	if g.targetEpoch < g.epoch {
		target = g.subscribedPart(x, target)
	}
	self := g.members[*x.id]
	keep := x.assigned.And(target)
	back := x.assigned.Minus(target)
	wanted := target.Minus(keep)
	free := wanted.Filter(func(topic TopicID, p int32) bool { return !g.taken(self, partitionID{topic, p}) })
	if len(back) > 0 && holds(back, owned) {
		x.state, x.assigned, x.revoking = memberUnrevoked, keep, back
		return
	}
	x.state = memberStable
	if free.Len() < wanted.Len() {
		x.state = memberUnreleased
	}
	if x.epoch != g.targetEpoch {
		x.previous, x.epoch = x.epoch, g.targetEpoch
	}
	x.assigned, x.revoking = keep.Or(free), nil
}

// unsubscribed takes away at once what a member is not subscribed to any more; the
// rest waits for the next target.
func (g *Consumer) unsubscribed(x *consumerMember, owned assign.Set) {
	keep := g.subscribedPart(x, x.assigned)
	back := x.revoking.Or(x.assigned.Minus(keep))
	if keep.Len() == x.assigned.Len() {
		return
	}
	x.assigned = keep
	if holds(back, owned) {
		x.state, x.revoking = memberUnrevoked, back
	}
}

// subscribedPart is the part of a set that is of topics that the member is
// subscribed to.
func (g *Consumer) subscribedPart(x *consumerMember, s assign.Set) assign.Set {
	topics := make(map[TopicID]struct{})
	for _, id := range g.topicIDs(x, make(map[string][]TopicID, 1)) {
		topics[id] = struct{}{}
	}
	return s.Filter(func(topic TopicID, _ int32) bool {
		_, ok := topics[topic]
		return ok
	})
}

// become takes over what a member is to do next, with a record if anything changes.
func (g *Consumer) become(t *coordinator.Turn, x, next *consumerMember) {
	if x.state == next.state && x.epoch == next.epoch && x.previous == next.previous &&
		x.assigned.Equal(next.assigned) && x.revoking.Equal(next.revoking) {
		return
	}
	held, revoking := x.assigned, x.revoking
	x.state, x.epoch, x.previous = next.state, next.epoch, next.previous
	x.assigned, x.revoking = next.assigned, next.revoking
	g.own(x, held, revoking)
	g.writeCurrent(t, x)
	if x.classic != nil {
		return // It has a time to rejoin and to sync instead.
	}
	x.limit = time.Time{}
	if x.state == memberUnrevoked {
		x.limit = t.Now().Add(x.rebalance)
	}
}

// waits tells whether somebody else holds a partition that the member is meant to have.
func (g *Consumer) waits(x *consumerMember) bool {
	for i := range x.target {
		for _, p := range x.target[i].Partitions {
			if !x.assigned.Has(x.target[i].Topic, p) && g.taken(x, partitionID{x.target[i].Topic, p}) {
				return true
			}
		}
	}
	return false
}
