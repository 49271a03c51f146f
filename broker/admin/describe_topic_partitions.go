package admin

import (
	"iter"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

func (h *Handlers) describeTopicPartitions(c *protocol.Call, req *kmsg.DescribeTopicPartitionsRequest, answer *kmsg.DescribeTopicPartitionsResponse) {
	if req.Cursor != nil && req.Cursor.Partition < 0 {
		for _, t := range req.Topics {
			row := kmsg.NewDescribeTopicPartitionsResponseTopic()
			row.Topic, row.AuthorizedOperations = textOf(t.Topic), notAsked
			row.ErrorCode, _ = code(c, refuse(kerr.InvalidRequest, "the cursor's partition is below zero"))
			answer.Topics = append(answer.Topics, row)
		}
		return
	}
	limit := min(int(req.ResponsePartitionLimit), h.opts.Live.Values().RequestPartitionLimit)
	p := page{
		topology: newTopology(h.opts.Controller.Image(), c.Conn.Listener),
		left:     max(1, limit), answer: answer,
	}
	if req.Cursor != nil {
		p.from, p.first = req.Cursor.Topic, int(req.Cursor.Partition)
	}
	for name, topic := range p.names(req.Topics) {
		if !p.add(c, name, topic) {
			break
		}
	}
}

// page is one answer of bounded size. Topics come in the order of their names.
type page struct {
	*topology
	answer *kmsg.DescribeTopicPartitionsResponse
	left   int    // Partitions that still fit.
	from   string // The cursor: the topic to go on with,
	first  int    // and the partition of it.
}

// names goes through what was asked for from the cursor on, all topics if
// nothing was named.
func (p *page) names(asked []kmsg.DescribeTopicPartitionsRequestTopic) iter.Seq2[string, *meta.Topic] {
	return func(yield func(string, *meta.Topic) bool) {
		if len(asked) == 0 {
			for topic := range p.image.TopicsFrom(p.from) {
				if !yield(topic.Name, topic) {
					return
				}
			}
			return
		}
		names := make(map[string]bool, len(asked))
		for _, t := range asked {
			names[t.Topic] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if name >= p.from && !yield(name, p.image.Topic(name)) {
				return
			}
		}
	}
}

// add puts a topic on the page, as much of it as fits; false when the page is full.
func (p *page) add(c *protocol.Call, name string, topic *meta.Topic) bool {
	if p.left == 0 {
		p.next(name, 0)
		return false
	}
	row := kmsg.NewDescribeTopicPartitionsResponseTopic()
	row.Topic, row.AuthorizedOperations = textOf(name), topicOperations
	if topic == nil {
		row.IsInternal = isInternal(name)
		err := checkTopicName(name)
		if err == nil {
			err = kerr.UnknownTopicOrPartition
		}
		row.ErrorCode, _ = code(c, err)
		p.answer.Topics = append(p.answer.Topics, row)
		return true
	}
	row.TopicID, row.IsInternal = topic.ID, topic.Internal
	start := 0
	if name == p.from {
		start = min(p.first, len(topic.Partitions))
	}
	end := min(len(topic.Partitions), start+p.left)
	row.Partitions = make([]kmsg.DescribeTopicPartitionsResponseTopicPartition, 0, end-start)
	for i := start; i < end; i++ {
		row.Partitions = append(row.Partitions, p.partition(int32(i), &topic.Partitions[i]))
	}
	p.answer.Topics = append(p.answer.Topics, row)
	p.left -= end - start
	if end < len(topic.Partitions) {
		p.next(name, end)
		return false
	}
	return true
}

func (p *page) next(topic string, partition int) {
	n := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	n.Topic, n.Partition = topic, int32(partition)
	p.answer.NextCursor = &n
}

func (p *page) partition(i int32, s *meta.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	row := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	row.Partition, row.LeaderEpoch = i, s.LeaderEpoch
	row.Replicas, row.ISR, row.OfflineReplicas = s.Replicas, s.ISR, p.offline(s)
	// No replicas are eligible besides the ones in sync. Null would mean "not known".
	row.EligibleLeaderReplicas, row.LastKnownELR = []int32{}, []int32{}
	row.LeaderID, _ = p.leader(s)
	return row
}
