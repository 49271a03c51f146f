package assign

import "slices"

// Range gives each member a range of each topic that it is subscribed to: of n
// members the first ones get one partition more if it does not come out even.
// Members keep their order, and so static members their ranges.
func Range(topics map[TopicID]Topic, members []Member) []Set {
	out := make([]Set, len(members))
	for _, s := range subscriptions(topics, members, inOrder(members)) {
		size, larger := s.topic.Partitions/len(s.members), s.topic.Partitions%len(s.members)
		next := int32(0)
		for i, m := range s.members {
			n := size
			if i < larger {
				n++
			}
			if n == 0 {
				break
			}
			partitions := make([]int32, n)
			for j := range partitions {
				partitions[j] = next
				next++
			}
			out[m] = append(out[m], TopicPartitions{s.topic.ID, partitions})
		}
	}
	for i := range out {
		out[i] = slices.Clip(out[i])
	}
	return out
}
