package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// rounds is how many random groups are tried.
const rounds = 3000

// groups makes random groups: topics, members with subscriptions, and targets that
// may be of another time (partitions that are gone, or two members' at once).
type groups struct{ r *rand.Rand }

func topicID(n int) TopicID { return TopicID{byte(n >> 8), byte(n), 1} }

func (g groups) topics() map[TopicID]Topic {
	topics := map[TopicID]Topic{}
	for i := range 1 + g.r.IntN(5) {
		t := Topic{ID: topicID(i), Partitions: g.r.IntN(12)}
		if g.r.IntN(2) == 0 {
			for range t.Partitions {
				t.Racks = append(t.Racks, []string{fmt.Sprint("rack", g.r.IntN(3))})
			}
		}
		topics[t.ID] = t
	}
	return topics
}

func (g groups) members(same bool) []Member {
	all := []TopicID{topicID(0), topicID(1), topicID(2), topicID(9)}
	members := make([]Member, 1+g.r.IntN(8))
	for i := range members {
		m := &members[i]
		m.ID, m.Topics, m.Rack = fmt.Sprint("m", i), all, fmt.Sprint("rack", g.r.IntN(4))
		if g.r.IntN(3) == 0 {
			m.Instance = fmt.Sprint("i", 9-i)
		}
		if !same {
			m.Topics = nil
			for _, id := range all {
				if g.r.IntN(2) == 0 {
					m.Topics = append(m.Topics, id)
				}
			}
		}
		had := map[TopicID][]int32{}
		for range g.r.IntN(8) {
			id := topicID(g.r.IntN(5))
			had[id] = append(had[id], int32(g.r.IntN(14)))
		}
		m.Target = NewSet(had)
	}
	return members
}

func TestEveryPartitionHasOneSubscriber(t *testing.T) {
	for name, assignor := range map[string]Assignor{"uniform": Uniform, "range": Range} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(rounds) {
				g := groups{rand.New(rand.NewPCG(seed, 1))}
				topics, members := g.topics(), g.members(seed%2 == 0)
				out := assignor(topics, members)
				require.Len(t, out, len(members))
				owners := map[TopicID]map[int32]int{}
				for i, s := range out {
					require.Equal(t, NewSet(mapOf(s)), s, "a set is in order")
					for _, tp := range s {
						require.Contains(t, members[i].Topics, tp.Topic)
						for _, p := range tp.Partitions {
							if owners[tp.Topic] == nil {
								owners[tp.Topic] = map[int32]int{}
							}
							require.NotContains(t, owners[tp.Topic], p, "seed %d: partition %d twice", seed, p)
							owners[tp.Topic][p] = i
						}
					}
				}
				for id, topic := range topics {
					want := 0
					if slices.ContainsFunc(members, func(m Member) bool { return slices.Contains(m.Topics, id) }) {
						want = topic.Partitions
					}
					require.Len(t, owners[id], want, "seed %d", seed)
				}
			}
		})
	}
}

func mapOf(s Set) map[TopicID][]int32 {
	m := map[TopicID][]int32{}
	for _, tp := range s {
		m[tp.Topic] = tp.Partitions
	}
	return m
}

func TestTheOrderOfMembersDoesNotMatter(t *testing.T) {
	for name, assignor := range map[string]Assignor{"uniform": Uniform, "range": Range} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(rounds) {
				g := groups{rand.New(rand.NewPCG(seed, 2))}
				topics, members := g.topics(), g.members(seed%2 == 0)
				got := byID(members, assignor(topics, members))
				g.r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
				require.Equal(t, got, byID(members, assignor(topics, members)), "seed %d", seed)
			}
		})
	}
}

func byID(members []Member, sets []Set) map[string]Set {
	out := map[string]Set{}
	for i, m := range members {
		out[m.ID] = sets[i]
	}
	return out
}

func TestUniformIsLevelWhereASingleMoveCouldLevel(t *testing.T) {
	for seed := range uint64(rounds) {
		g := groups{rand.New(rand.NewPCG(seed, 3))}
		topics, members := g.topics(), g.members(seed%3 == 0)
		out := Uniform(topics, members)
		for i, s := range out {
			for _, tp := range s {
				for j := range members {
					if slices.Contains(members[j].Topics, tp.Topic) {
						require.LessOrEqual(t, s.Len()-out[j].Len(), 1, "seed %d: %d could give to %d", seed, i, j)
					}
				}
			}
		}
	}
}

func TestUniformLeavesALevelAssignmentAlone(t *testing.T) {
	for seed := range uint64(rounds) {
		g := groups{rand.New(rand.NewPCG(seed, 4))}
		topics, members := g.topics(), g.members(seed%2 == 0)
		first := Uniform(topics, members)
		for i := range members {
			members[i].Target = first[i]
		}
		require.Equal(t, byID(members, first), byID(members, Uniform(topics, members)), "seed %d", seed)
	}
}

// TestUniformMovesNoMoreThanNecessary compares with the least number of moves when
// all members have the same topics: each keeps what it had up to its share, and the
// shares that are larger by one go to those who had most.
func TestUniformMovesNoMoreThanNecessary(t *testing.T) {
	for seed := range uint64(rounds) {
		g := groups{rand.New(rand.NewPCG(seed, 5))}
		topics, members := g.topics(), g.members(true)
		before := Uniform(topics, members)
		had := map[string]Set{}
		for i := range members {
			members[i].Target = before[i]
			had[members[i].ID] = before[i]
		}
		// One leaves, or one comes.
		if len(members) > 1 && seed%2 == 0 {
			members = members[1:]
		} else {
			members = append(members, Member{ID: "new", Topics: members[0].Topics})
		}
		after := Uniform(topics, members)
		total, kept := 0, 0
		var sizes []int
		for i, s := range after {
			total += s.Len()
			kept += s.And(had[members[i].ID]).Len()
			sizes = append(sizes, had[members[i].ID].Len())
		}
		slices.SortFunc(sizes, func(a, b int) int { return b - a })
		want := 0
		for i, n := range sizes {
			share := total / len(members)
			if i < total%len(members) {
				share++
			}
			want += min(n, share)
		}
		require.Equal(t, want, kept, "seed %d", seed)
	}
}

func TestRangeIsTheTextbooks(t *testing.T) {
	for seed := range uint64(rounds) {
		g := groups{rand.New(rand.NewPCG(seed, 6))}
		topics, members := g.topics(), g.members(seed%2 == 0)
		for i := range members {
			members[i].Instance = "" // The order is that of the ids then.
		}
		out := Range(topics, members)
		for id, topic := range topics {
			var subscribers []int
			for i := range members { // In the order of their ids.
				if slices.Contains(members[i].Topics, id) {
					subscribers = append(subscribers, i)
				}
			}
			for i, m := range subscribers {
				n, k := topic.Partitions, len(subscribers)
				start, size := n/k*i+min(i, n%k), n/k
				if i < n%k {
					size++
				}
				var want []int32
				for p := start; p < start+size; p++ {
					want = append(want, int32(p))
				}
				require.Equal(t, want, out[m].Of(id), "seed %d", seed)
			}
		}
	}
}

func TestUniformPrefersTheRackOfAReplica(t *testing.T) {
	topic := Topic{ID: topicID(1), Partitions: 4, Racks: [][]string{{"a"}, {"b"}, {"a"}, {"b"}}}
	members := []Member{
		{ID: "1", Rack: "b", Topics: []TopicID{topic.ID}},
		{ID: "2", Rack: "a", Topics: []TopicID{topic.ID}},
	}
	out := Uniform(map[TopicID]Topic{topic.ID: topic}, members)
	require.Equal(t, []int32{1, 3}, out[0].Of(topic.ID))
	require.Equal(t, []int32{0, 2}, out[1].Of(topic.ID))
}

func TestAStaticMemberKeepsItsRangeUnderAnotherID(t *testing.T) {
	topic := Topic{ID: topicID(1), Partitions: 6}
	topics := map[TopicID]Topic{topic.ID: topic}
	members := []Member{
		{ID: "b", Instance: "one", Topics: []TopicID{topic.ID}},
		{ID: "a", Instance: "two", Topics: []TopicID{topic.ID}},
		{ID: "0", Topics: []TopicID{topic.ID}},
	}
	before := Range(topics, members)
	members[0].ID = "z"
	require.Equal(t, before, Range(topics, members))
	require.Equal(t, []int32{0, 1}, before[0].Of(topic.ID))
	require.Equal(t, []int32{4, 5}, before[2].Of(topic.ID))
}

func TestSetsAreSets(t *testing.T) {
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		a, b := randomSet(r), randomSet(r)
		and, or, minus := a.And(b), a.Or(b), a.Minus(b)
		require.Equal(t, or.Len(), and.Len()+minus.Len()+b.Minus(a).Len())
		for i := range 3 {
			for p := range int32(6) {
				inA, inB := a.Has(topicID(i), p), b.Has(topicID(i), p)
				require.Equal(t, inA && inB, and.Has(topicID(i), p))
				require.Equal(t, inA || inB, or.Has(topicID(i), p))
				require.Equal(t, inA && !inB, minus.Has(topicID(i), p))
			}
		}
		require.Equal(t, a.Minus(b).Len() == 0 && b.Minus(a).Len() == 0, a.Equal(b))
	}
}

func randomSet(r *rand.Rand) Set {
	of := map[TopicID][]int32{}
	for range r.IntN(10) {
		id := topicID(r.IntN(3))
		of[id] = append(of[id], int32(r.IntN(6)))
	}
	return NewSet(of)
}

func BenchmarkUniformThousandMembers(b *testing.B) {
	topics := map[TopicID]Topic{}
	var ids []TopicID
	for i := range 100 {
		topics[topicID(i)] = Topic{ID: topicID(i), Partitions: 100}
		ids = append(ids, topicID(i))
	}
	members := make([]Member, 1000)
	for i := range members {
		members[i] = Member{ID: fmt.Sprintf("m%04d", i), Topics: ids}
	}
	sets := Uniform(topics, members[:999])
	for i, s := range sets {
		members[i].Target = s
	}
	b.ResetTimer()
	for range b.N {
		Uniform(topics, members)
	}
}
