package group

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// Consumer is a group whose members the broker assigns partitions to (KIP-848).
//
// Three epochs drive it. The group's epoch grows whenever members, their
// subscriptions or the topics change. Then a target assignment is computed for
// that epoch, not more often than once in an interval; and each member moves to
// it at its own pace, as it heartbeats: first it gives back what it is to lose, and
// what others still hold it gets once they have given it back.
//
//	Empty        no members
//	Assigning    the target is of an older epoch than the group
//	Reconciling  a member has not got where the target wants it
//	Stable       all have
//
// Members of the classic protocol may be among the others: they join and sync
// instead, and are told so by the answers to their heartbeats.
type Consumer struct {
	m  *Machine
	id string

	epoch       int32
	targetEpoch int32
	// assignedAt is when the target was computed, in milliseconds; 0 for never.
	assignedAt int64
	// hash is that of all that the group knows about the topics it reads.
	hash int64

	members map[string]*consumerMember
	// came counts the members that have ever come.
	came uint64
	// static has the static members by instance id.
	static map[string]*consumerMember
	// owners are who holds each partition: to read it, or until it has given it back.
	owners map[partitionID]ownership
	// topics counts the members that name a topic.
	topics map[string]int
	// patterns are the regular expressions that members are subscribed to.
	patterns map[string]*pattern
	// assignors counts the members that ask for an assignor.
	assignors map[string]int
	// classic counts the members of the classic protocol, votes the protocols that
	// those know.
	classic int
	votes   map[string]int

	// resolver resolves regular expressions that are new.
	resolver coordinator.Timer
	// outdated says that the topics may have changed since hash was computed.
	outdated bool
	// oldRecords says that there is a record of a kind that is not written any more.
	oldRecords bool
}

// partitionID is a partition of a topic.
type partitionID struct {
	topic     TopicID
	partition int32
}

// ownership is who holds a partition, and since which epoch of its own.
type ownership struct {
	by    *consumerMember
	since int32
}

func (m *Machine) newConsumer(id string) *Consumer {
	g := &Consumer{
		m: m, id: id,
		epoch:    firstEpoch,
		members:  make(map[string]*consumerMember, 1),
		owners:   make(map[partitionID]ownership, 1),
		topics:   make(map[string]int, 1),
		outdated: true,
	}
	g.resolver.Fire = g.resolveNew
	return g
}

// firstEpoch is that of a group that is being made.
const firstEpoch = 1

// memberState is how far a member has got with its assignment. The numbers are
// part of the records.
type memberState int8

const (
	// memberStable has all that it is meant to have, and nothing else.
	memberStable memberState = 0
	// memberUnrevoked is to give back partitions first.
	memberUnrevoked memberState = 1
	// memberUnreleased waits for partitions that others hold.
	memberUnreleased memberState = 2
)

// Epochs with a meaning of their own in heartbeats.
const (
	epochJoin        = 0
	epochLeave       = -1
	epochStaticLeave = -2
)

// consumerMember is a member of a consumer group.
type consumerMember struct {
	// id is never changed in place: answers point to it.
	id             *string
	order          uint64 // of coming
	instance, rack *string
	clientID, host string
	// names are the topics that it is subscribed to by name, in order.
	names []string
	// regex is its regular expression; "" and nil are none.
	regex     *string
	assignor  *string
	rebalance time.Duration // below zero until it has said so
	classic   *classicPart  // nil unless it uses the classic protocol

	epoch, previous int32
	state           memberState
	// assigned is what it may read, revoking what it is to give back, target what
	// it is meant to have in the end.
	assigned, revoking, target assign.Set

	timer    coordinator.Timer
	deadline time.Time // of the session
	// limit is until when it is to give back partitions, to rejoin or to sync; zero
	// while there is nothing to do.
	limit time.Time
}

// classicPart is what only members of the classic protocol have.
type classicPart struct {
	session   time.Duration
	protocols []memberProtocol
}

// newMember makes a member that is in no group yet.
func (g *Consumer) newMember(id string) *consumerMember {
	x := &consumerMember{id: &id, rebalance: -1}
	x.timer.Fire = func(t *coordinator.Turn) { g.memberTime(t, x) }
	return x
}

// pattern is a regular expression, or "" if there is none.
func (x *consumerMember) pattern() string {
	if x.regex == nil {
		return ""
	}
	return *x.regex
}

// settled tells whether the member has what the target of that epoch wants.
func (x *consumerMember) settled(targetEpoch int32) bool {
	return x.state == memberStable && x.epoch == targetEpoch
}

// add takes a member in.
func (g *Consumer) add(x *consumerMember) {
	g.came++
	x.order = g.came
	g.members[*x.id] = x
	g.index(x)
}

// index has the group know what a member says; unindex is the reverse. What a
// member says changes between the two only.
func (g *Consumer) index(x *consumerMember) {
	if x.instance != nil {
		if g.static == nil {
			g.static = make(map[string]*consumerMember, 1)
		}
		g.static[*x.instance] = x
	}
	for _, name := range x.names {
		g.topics[name]++
	}
	if x.pattern() != "" {
		g.patternOf(x.pattern()).members++
	}
	if x.assignor != nil {
		if g.assignors == nil {
			g.assignors = make(map[string]int, 1)
		}
		g.assignors[*x.assignor]++
	}
	if x.classic != nil {
		g.classic++
		if g.votes == nil {
			g.votes = make(map[string]int, 1)
		}
		for i := range x.classic.protocols {
			g.votes[x.classic.protocols[i].name]++
		}
	}
}

func (g *Consumer) unindex(x *consumerMember) {
	if x.instance != nil && g.static[*x.instance] == x {
		delete(g.static, *x.instance)
	}
	for _, name := range x.names {
		countDown(g.topics, name)
	}
	if p := g.patterns[x.pattern()]; p != nil {
		p.members--
	}
	if x.assignor != nil {
		countDown(g.assignors, *x.assignor)
	}
	if x.classic != nil {
		g.classic--
		for i := range x.classic.protocols {
			countDown(g.votes, x.classic.protocols[i].name)
		}
	}
}

func countDown(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// own has the group know what a member holds now, instead of what it held before.
func (g *Consumer) own(x *consumerMember, before ...assign.Set) {
	for _, set := range before {
		for i := range set {
			for _, p := range set[i].Partitions {
				at := partitionID{set[i].Topic, p}
				if g.owners[at].by == x && !x.assigned.Has(at.topic, p) && !x.revoking.Has(at.topic, p) {
					delete(g.owners, at)
				}
			}
		}
	}
	for _, set := range [...]assign.Set{x.assigned, x.revoking} {
		for i := range set {
			for _, p := range set[i].Partitions {
				at := partitionID{set[i].Topic, p}
				if g.owners[at].by != x {
					g.owners[at] = ownership{x, x.epoch}
				}
			}
		}
	}
}

// since is the epoch in which the member got a partition; false if it does not
// hold it.
func (g *Consumer) since(x *consumerMember, at partitionID) (int32, bool) {
	o, ok := g.owners[at]
	return o.since, ok && o.by == x
}

// taken tells whether somebody else holds a partition.
func (g *Consumer) taken(x *consumerMember, at partitionID) bool {
	o, ok := g.owners[at]
	return ok && o.by != x
}

// drop takes a member out, without a record.
func (g *Consumer) drop(t *coordinator.Turn, x *consumerMember) {
	t.Stop(&x.timer)
	g.unindex(x)
	delete(g.members, *x.id)
	held, revoking := x.assigned, x.revoking
	x.assigned, x.revoking = nil, nil
	g.own(x, held, revoking)
}

// rename gives a static member that has come back another id.
func (g *Consumer) rename(x *consumerMember, id string) {
	delete(g.members, *x.id)
	x.id = &id
	g.members[id] = x
}

// sortedMembers are the members by id, so that what is decided and written does
// not depend on chance.
func (g *Consumer) sortedMembers() []*consumerMember {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *consumerMember) int { return strings.Compare(*a.id, *b.id) })
}
