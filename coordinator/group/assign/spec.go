package assign

import (
	"cmp"
	"slices"
	"strings"
)

// Topic is what assignors know of a topic.
type Topic struct {
	ID         TopicID
	Partitions int
	// Racks has the racks in which each partition has a replica; it may be nil or
	// short.
	Racks [][]string
}

// Member is what assignors know of a member.
type Member struct {
	ID string
	// Instance is the id of a static member, "" of others: it outlives the member id.
	Instance string
	Rack     string
	// Topics are those that it is subscribed to, each once; those that do not exist
	// are left out of account.
	Topics []TopicID
	// Target is what it was assigned so far.
	Target Set
}

// Assignor assigns all partitions of the topics that members are subscribed to.
// The answer has one set for each member, in the order in which they are given.
type Assignor func(topics map[TopicID]Topic, members []Member) []Set

// ByName finds an assignor by the name that clients know it by; nil if there is none.
func ByName(name string) Assignor {
	switch name {
	case "uniform":
		return Uniform
	case "range":
		return Range
	}
	return nil
}

// inOrder are the places of the members in an order that does not depend on how
// they are given: static members first, by what outlives a restart.
func inOrder(members []Member) []int {
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &members[a], &members[b]
		if (x.Instance == "") != (y.Instance == "") {
			return cmp.Compare(y.Instance, x.Instance)
		}
		return cmp.Or(strings.Compare(x.Instance, y.Instance), strings.Compare(x.ID, y.ID))
	})
	return order
}

// subscribed is a topic with the members that are subscribed to it, in their order.
type subscribed struct {
	topic   Topic
	members []int
}

// subscriptions are the topics that exist and that somebody is subscribed to, by id.
func subscriptions(topics map[TopicID]Topic, members []Member, order []int) []subscribed {
	at := make(map[TopicID]int, len(topics))
	var list []subscribed
	for _, m := range order {
		for _, id := range members[m].Topics {
			topic, ok := topics[id]
			if !ok || topic.Partitions <= 0 {
				continue
			}
			i, known := at[id]
			if !known {
				i = len(list)
				at[id] = i
				list = append(list, subscribed{topic: topic})
			}
			list[i].members = append(list[i].members, m)
		}
	}
	slices.SortFunc(list, func(a, b subscribed) int { return slices.Compare(a.topic.ID[:], b.topic.ID[:]) })
	return list
}
