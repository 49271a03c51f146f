package assign

import (
	"bytes"
	"slices"
)

// TopicID is a topic's UUID.
type TopicID = [16]byte

// TopicPartitions are partitions of one topic, in ascending order, each once.
type TopicPartitions struct {
	Topic      TopicID
	Partitions []int32
}

// Set is a set of partitions: topics in ascending order of their ids, none without
// partitions. A Set is not changed once it was made, and may share memory.
type Set []TopicPartitions

// NewSet makes a set of partitions given in any order, also more than once.
func NewSet(of map[TopicID][]int32) Set {
	if len(of) == 0 {
		return nil
	}
	s := make(Set, 0, len(of))
	for topic, partitions := range of {
		if len(partitions) > 0 {
			sorted := slices.Clone(partitions)
			slices.Sort(sorted)
			s = append(s, TopicPartitions{topic, slices.Compact(sorted)})
		}
	}
	slices.SortFunc(s, func(a, b TopicPartitions) int { return bytes.Compare(a.Topic[:], b.Topic[:]) })
	return s
}

// find is where a topic is, or would be.
func (s Set) find(topic TopicID) (int, bool) {
	return slices.BinarySearchFunc(s, topic, func(x TopicPartitions, id TopicID) int { return bytes.Compare(x.Topic[:], id[:]) })
}

// Of are the partitions of a topic.
func (s Set) Of(topic TopicID) []int32 {
	if i, ok := s.find(topic); ok {
		return s[i].Partitions
	}
	return nil
}

// Has tells whether a partition is in the set.
func (s Set) Has(topic TopicID, partition int32) bool {
	_, ok := slices.BinarySearch(s.Of(topic), partition)
	return ok
}

// Len is the number of partitions.
func (s Set) Len() int {
	n := 0
	for i := range s {
		n += len(s[i].Partitions)
	}
	return n
}

// Equal tells whether both are the same partitions.
func (s Set) Equal(o Set) bool {
	return slices.EqualFunc(s, o, func(a, b TopicPartitions) bool {
		return a.Topic == b.Topic && slices.Equal(a.Partitions, b.Partitions)
	})
}

// Filter is the part of the set that keep lets through.
func (s Set) Filter(keep func(topic TopicID, partition int32) bool) Set {
	out := make(Set, 0, len(s))
	for i := range s {
		var kept []int32
		for j, p := range s[i].Partitions {
			if !keep(s[i].Topic, p) {
				if kept == nil {
					kept = slices.Clone(s[i].Partitions[:j])
				}
				continue
			}
			if kept != nil {
				kept = append(kept, p)
			}
		}
		switch {
		case kept == nil:
			out = append(out, s[i]) // All of it: it is shared.
		case len(kept) > 0:
			out = append(out, TopicPartitions{s[i].Topic, kept})
		}
	}
	return out
}

// And is what is in both sets.
func (s Set) And(o Set) Set { return s.Filter(o.Has) }

// Minus is what is in s alone.
func (s Set) Minus(o Set) Set {
	return s.Filter(func(topic TopicID, p int32) bool { return !o.Has(topic, p) })
}

// Or is what is in one of the sets.
func (s Set) Or(o Set) Set {
	switch {
	case len(o) == 0:
		return s
	case len(s) == 0:
		return o
	}
	all := make(map[TopicID][]int32, len(s)+len(o))
	for _, of := range []Set{s, o} {
		for i := range of {
			all[of[i].Topic] = slices.Concat(all[of[i].Topic], of[i].Partitions)
		}
	}
	return NewSet(all)
}
