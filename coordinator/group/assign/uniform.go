package assign

import (
	"cmp"
	"container/heap"
	"slices"
)

// nobody is the owner of a partition that nobody has.
const nobody = -1

// Uniform gives all members equally many partitions, as far as their subscriptions
// allow, in four steps:
//
//	keep     what a member has, and may have, it keeps
//	trim     if all have the same topics, who has more than a fair share gives back
//	         the rest
//	fill     what nobody has goes to the least loaded subscriber; one in the rack of
//	         a replica comes first among equals
//	balance  while one member has two partitions more than another that could take
//	         one of them, it gives it away
func Uniform(topics map[TopicID]Topic, members []Member) []Set {
	u := &uniform{members: members, order: inOrder(members), load: make([]int, len(members))}
	u.place = make([]int, len(members))
	for i, m := range u.order {
		u.place[m] = i
	}
	u.topics = subscriptions(topics, members, u.order)
	u.keep()
	if u.alike() {
		u.trim()
	}
	u.fill()
	u.balance()
	return u.sets()
}

type uniform struct {
	members []Member
	order   []int // of the members
	place   []int // of each member in the order
	topics  []subscribed
	owners  [][]int // of each topic's partitions
	load    []int   // partitions of each member
}

// keep notes what members have. Of two that claim the same partition the first keeps it.
func (u *uniform) keep() {
	u.owners = make([][]int, len(u.topics))
	at := make(map[TopicID]int, len(u.topics))
	for i := range u.topics {
		owners := make([]int, u.topics[i].topic.Partitions)
		for p := range owners {
			owners[p] = nobody
		}
		u.owners[i], at[u.topics[i].topic.ID] = owners, i
	}
	for _, m := range u.order {
		for _, had := range u.members[m].Target {
			i, ok := at[had.Topic]
			if !ok || !slices.Contains(u.members[m].Topics, had.Topic) {
				continue
			}
			for _, p := range had.Partitions {
				if p >= 0 && int(p) < len(u.owners[i]) && u.owners[i][p] == nobody {
					u.owners[i][p] = m
					u.load[m]++
				}
			}
		}
	}
}

// alike tells whether all members have the same topics.
func (u *uniform) alike() bool {
	return !slices.ContainsFunc(u.topics, func(s subscribed) bool { return len(s.members) != len(u.members) })
}

// trim takes from each member what is more than its share. The shares that are
// larger by one go to those who have most, so that no more moves than must.
func (u *uniform) trim() {
	if len(u.members) == 0 {
		return
	}
	total := 0
	for i := range u.owners {
		total += len(u.owners[i])
	}
	most := slices.Clone(u.order)
	slices.SortStableFunc(most, func(a, b int) int { return cmp.Compare(u.load[b], u.load[a]) })
	share := make([]int, len(u.members))
	for i, m := range most {
		share[m] = total / len(u.members)
		if i < total%len(u.members) {
			share[m]++
		}
	}
	for i := len(u.owners) - 1; i >= 0; i-- {
		for p := len(u.owners[i]) - 1; p >= 0; p-- {
			if m := u.owners[i][p]; m != nobody && u.load[m] > share[m] {
				u.owners[i][p] = nobody
				u.load[m]--
			}
		}
	}
}

// fill gives away what nobody has; topics with few subscribers come first, as
// there is little choice.
func (u *uniform) fill() {
	turn := make([]int, len(u.topics))
	for i := range turn {
		turn[i] = i
	}
	slices.SortStableFunc(turn, func(a, b int) int { return cmp.Compare(len(u.topics[a].members), len(u.topics[b].members)) })
	var q *loads
	for _, i := range turn {
		if !slices.Contains(u.owners[i], nobody) {
			continue
		}
		// Where all members are in the queue it is the right one for the next topic too.
		if q == nil || len(q.members) < len(u.members) {
			q = &loads{u: u, members: slices.Clone(u.topics[i].members)}
			heap.Init(q)
		}
		u.fillTopic(i, q)
	}
}

func (u *uniform) fillTopic(i int, q *loads) {
	s, owners := &u.topics[i], u.owners[i]
	for p := range owners {
		if owners[p] != nobody {
			continue
		}
		at := 0
		if near := u.nearest(s, p, q); near >= 0 {
			at = near
		}
		m := q.members[at]
		owners[p] = m
		u.load[m]++
		heap.Fix(q, at)
	}
}

// nearest is the place in the queue of a member that is no more loaded than any
// other and in the rack of one of the partition's replicas; -1 if there is none.
func (u *uniform) nearest(s *subscribed, p int, q *loads) int {
	if p >= len(s.topic.Racks) || len(s.topic.Racks[p]) == 0 {
		return -1
	}
	least, best := u.load[q.members[0]], -1
	for at, m := range q.members {
		if u.load[m] == least && u.members[m].Rack != "" && slices.Contains(s.topic.Racks[p], u.members[m].Rack) &&
			(best < 0 || u.place[m] < u.place[q.members[best]]) {
			best = at
		}
	}
	return best
}

// balance moves partitions from members with many to members with few until no
// move helps. Each move makes the sum of the squares of the loads smaller, so
// there is an end.
func (u *uniform) balance() {
	for moved := true; moved; {
		moved = false
		for i := range u.topics {
			moved = u.balanceTopic(i) || moved
		}
	}
}

func (u *uniform) balanceTopic(i int) bool {
	s, owners := &u.topics[i], u.owners[i]
	if len(s.members) < 2 {
		return false
	}
	low, high := u.extremes(s)
	if high-low < 2 {
		return false
	}
	q := &loads{u: u, members: slices.Clone(s.members)}
	heap.Init(q)
	moved := false
	// The most loaded give first, so that a member is left alone once it is level.
	for _, p := range u.byLoad(owners) {
		from, to := owners[p], q.members[0]
		if u.load[from]-u.load[to] < 2 {
			continue
		}
		owners[p], moved = to, true
		u.load[to]++
		heap.Fix(q, 0)
		u.load[from]--
		heap.Fix(q, slices.Index(q.members, from))
	}
	return moved
}

// extremes are the smallest and the largest load among a topic's members.
func (u *uniform) extremes(s *subscribed) (low, high int) {
	low, high = u.load[s.members[0]], u.load[s.members[0]]
	for _, m := range s.members[1:] {
		low, high = min(low, u.load[m]), max(high, u.load[m])
	}
	return low, high
}

// byLoad are a topic's partitions, those of the most loaded members first, and of
// a member the last one first.
func (u *uniform) byLoad(owners []int) []int {
	out := make([]int, len(owners))
	for p := range out {
		out[p] = p
	}
	slices.SortFunc(out, func(a, b int) int {
		x, y := owners[a], owners[b]
		return cmp.Or(cmp.Compare(u.load[y], u.load[x]), cmp.Compare(u.place[y], u.place[x]), cmp.Compare(b, a))
	})
	return out
}

// sets are what the members have now.
func (u *uniform) sets() []Set {
	out := make([]Set, len(u.members))
	for i := range u.topics {
		id := u.topics[i].topic.ID
		for p, m := range u.owners[i] {
			if n := len(out[m]); n > 0 && out[m][n-1].Topic == id {
				out[m][n-1].Partitions = append(out[m][n-1].Partitions, int32(p))
				continue
			}
			out[m] = append(out[m], TopicPartitions{id, []int32{int32(p)}})
		}
	}
	return out
}

// loads is a heap of members, the least loaded first.
type loads struct {
	u       *uniform
	members []int
}

func (q *loads) Len() int { return len(q.members) }

func (q *loads) Less(i, j int) bool {
	a, b := q.members[i], q.members[j]
	return cmp.Or(cmp.Compare(q.u.load[a], q.u.load[b]), cmp.Compare(q.u.place[a], q.u.place[b])) < 0
}

func (q *loads) Swap(i, j int) { q.members[i], q.members[j] = q.members[j], q.members[i] }
func (q *loads) Push(any)      {}
func (q *loads) Pop() any      { return nil }
