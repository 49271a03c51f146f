package records

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/protocol"
)

// offsetForLeaderEpoch answers OffsetForLeaderEpoch: where the records of an epoch
// end, by which readers find out that theirs were cut.
func (h *Handlers) offsetForLeaderEpoch(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.OffsetForLeaderEpochRequest)
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = rt.Topic
		found := h.replicas.Topic(rt.Topic)
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			p.Partition, p.LeaderEpoch, p.EndOffset = rp.Partition, replica.NoEpoch, -1
			part, err := replica.Find(found, rp.Partition)
			if err == nil {
				p.LeaderEpoch, p.EndOffset, err = part.EpochEnd(rp.CurrentLeaderEpoch, rp.LeaderEpoch)
			}
			if err != nil {
				p.ErrorCode, _ = c.ErrorCode(err)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return c.Answer(resp)
}
