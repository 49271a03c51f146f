package txns

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/protocol"
)

// describeProducers answers DescribeProducers: what partitions remember of their
// producers, as their leader knows it.
func (h *Handlers) describeProducers(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.DescribeProducersRequest)
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, rt := range req.Topics {
		t := kmsg.NewDescribeProducersResponseTopic()
		t.Topic = rt.Topic
		found := h.replicas.Topic(rt.Topic)
		for _, i := range rt.Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = i
			part, err := replica.Find(found, i)
			if err == nil {
				err = part.ConfirmLeader()
			}
			if err != nil {
				p.ErrorCode, _ = c.ErrorCode(err)
				if found == nil && errors.Is(err, kerr.UnknownTopicOrPartition) {
					p.ErrorMessage = kmsg.StringPtr(kerr.UnknownTopicOrPartition.Description)
				}
			} else {
				p.ActiveProducers = producersOf(part)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return c.Answer(resp)
}

func producersOf(part *replica.Partition) []kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	known := part.Log().Producers()
	rows := make([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, 0, len(known))
	for _, s := range known {
		row := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		row.ProducerID, row.ProducerEpoch = s.ProducerID, int32(s.Epoch)
		row.LastSequence, row.LastTimestamp = s.LastSequence, s.LastTimestamp
		row.CoordinatorEpoch, row.CurrentTxnStartOffset = s.CoordinatorEpoch, s.CurrentTxnStart
		rows = append(rows, row)
	}
	return rows
}
