package records

import "github.com/mainstem/mainstem/protocol"

// mergeRows makes rows of one topic contiguous and leaves one row a partition, as
// Kafka answers: of a partition that was named twice the last batch counts.
func mergeRows(req *protocol.ProduceRequest, rows []row) []row {
	if !topicsRepeat(req) && !partitionsRepeat(rows) {
		return rows
	}
	type place struct {
		topic int
		index int32
	}
	first := firstTopics(req)
	groups := make([][]row, len(req.Topics))
	at := make(map[place]int, len(rows))
	for i := range rows {
		r := rows[i]
		r.topic = first[r.topic]
		k := place{r.topic, r.index}
		if n, again := at[k]; again {
			groups[r.topic][n] = r
			continue
		}
		at[k] = len(groups[r.topic])
		groups[r.topic] = append(groups[r.topic], r)
	}
	merged := rows[:0]
	for _, g := range groups {
		merged = append(merged, g...)
	}
	return merged
}

// lookBack is how many topics are compared one by one, without a map.
const lookBack = 16

func topicsRepeat(req *protocol.ProduceRequest) bool {
	if len(req.Topics) > lookBack {
		for t, first := range firstTopics(req) {
			if t != first {
				return true
			}
		}
		return false
	}
	for i := range req.Topics {
		for j := range i {
			if a, b := &req.Topics[i], &req.Topics[j]; a.ID == b.ID && a.Name == b.Name {
				return true
			}
		}
	}
	return false
}

// firstTopics gives for each topic of the request the first that is the same.
func firstTopics(req *protocol.ProduceRequest) []int {
	type key struct {
		id   [16]byte
		name string
	}
	first := make([]int, len(req.Topics))
	seen := make(map[key]int, len(req.Topics))
	for i := range req.Topics {
		k := key{req.Topics[i].ID, req.Topics[i].Name}
		n, again := seen[k]
		if !again {
			n, seen[k] = i, i
		}
		first[i] = n
	}
	return first
}

// partitionsRepeat tells whether a partition is named twice below one topic.
// Clients send them in order, as a rule: then there is nothing to remember.
func partitionsRepeat(rows []row) bool {
	sorted := true
	for i := 1; i < len(rows) && sorted; i++ {
		sorted = rows[i].topic != rows[i-1].topic || rows[i].index > rows[i-1].index
	}
	if sorted {
		return false
	}
	seen := make(map[int64]struct{}, len(rows))
	for i := range rows {
		k := int64(rows[i].topic)<<32 | int64(uint32(rows[i].index))
		if _, again := seen[k]; again {
			return true
		}
		seen[k] = struct{}{}
	}
	return false
}
