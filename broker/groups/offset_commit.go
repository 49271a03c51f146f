package groups

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// byTopicID is the version of OffsetCommit and of OffsetFetch that names topics
// by their ids.
const byTopicID = 10

// offsetCommit answers OffsetCommit once the offsets are durable.
func (h *Handlers) offsetCommit(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.OffsetCommitRequest)
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	var list []group.Offset
	var at [][2]int // of each offset in list: topic and partition of the answer
	for i := range req.Topics {
		rt := &req.Topics[i]
		t, err := h.named(req.Version, rt.Topic, rt.TopicID)
		row := kmsg.NewOffsetCommitResponseTopic()
		row.Topic, row.TopicID = rt.Topic, rt.TopicID
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition = rp.Partition
			if refused := exists(t, rp.Partition, err); refused != nil {
				p.ErrorCode, _ = c.ErrorCode(refused)
			} else {
				at = append(at, [2]int{i, j})
				list = append(list, group.Offset{
					Topic: t.Name, TopicID: t.ID, Partition: rp.Partition,
					Offset: rp.Offset, Epoch: rp.LeaderEpoch, Metadata: rp.Metadata,
				})
			}
			row.Partitions = append(row.Partitions, p)
		}
		resp.Topics = append(resp.Topics, row)
	}
	if len(list) == 0 {
		return c.Answer(resp)
	}
	who := clientOf(c)
	p := coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *group.Codes) {
		m.CommitOffsets(t, who, req, list, p)
	})
	return finish(c, p, func(codes []int16, err error) kmsg.Response {
		failed := int16(0)
		if err != nil {
			failed = code(c, err)
		} else {
			count(c, codes...)
		}
		for i, place := range at {
			p := &resp.Topics[place[0]].Partitions[place[1]]
			if p.ErrorCode = failed; err == nil {
				p.ErrorCode = codes[i]
			}
		}
		return resp
	})
}

// named is the topic that a request names, by id from the version on that does so.
func (h *Handlers) named(version int16, name string, id group.TopicID) (*replica.Topic, error) {
	if version >= byTopicID {
		if t := h.replicas.TopicByID(id); t != nil {
			return t, nil
		}
		return nil, kerr.UnknownTopicID
	}
	if t := h.replicas.Topic(name); t != nil {
		return t, nil
	}
	return nil, kerr.UnknownTopicOrPartition
}

// exists tells why a topic has no such partition, if it has not. err is why there
// is no such topic.
func exists(t *replica.Topic, partition int32, err error) error {
	if err == nil && (partition < 0 || int(partition) >= t.Partitions()) {
		err = kerr.UnknownTopicOrPartition
	}
	return err
}
