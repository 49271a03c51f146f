package admin

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

func (h *Handlers) listPartitionReassignments(_ *protocol.Call, req *kmsg.ListPartitionReassignmentsRequest, answer *kmsg.ListPartitionReassignmentsResponse) {
	image := h.opts.Controller.Image()
	if req.Topics == nil {
		for topic := range image.Topics() {
			answer.Topics = appendMoves(answer.Topics, topic, nil)
		}
		return
	}
	asked := map[string][]int32{}
	for _, t := range req.Topics {
		asked[t.Topic] = append(asked[t.Topic], t.Partitions...)
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if topic := image.Topic(name); topic != nil {
			answer.Topics = appendMoves(answer.Topics, topic, asked[name])
		}
	}
}

// appendMoves adds the partitions of a topic that are being reassigned, of
// those that were asked for; nil means all.
func appendMoves(rows []kmsg.ListPartitionReassignmentsResponseTopic, topic *meta.Topic, asked []int32) []kmsg.ListPartitionReassignmentsResponseTopic {
	row := kmsg.NewListPartitionReassignmentsResponseTopic()
	row.Topic = topic.Name
	for i := range topic.Partitions {
		p := &topic.Partitions[i]
		if len(p.Adding)+len(p.Removing) == 0 || asked != nil && !slices.Contains(asked, int32(i)) {
			continue
		}
		m := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
		m.Partition, m.Replicas, m.AddingReplicas, m.RemovingReplicas = int32(i), p.Replicas, p.Adding, p.Removing
		row.Partitions = append(row.Partitions, m)
	}
	if len(row.Partitions) == 0 {
		return rows
	}
	return append(rows, row)
}
