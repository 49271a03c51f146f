package records

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
)

// deleteRecords answers DeleteRecords: the log starts move in the request's turn,
// in one step for all partitions; the answer waits until that is durable.
func (h *Handlers) deleteRecords(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.DeleteRecordsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	starts := make(map[*replica.Partition]int64)
	var moved []*replica.Partition // by row; nil where there is an error
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.NewDeleteRecordsResponseTopic()
		t.Topic = rt.Topic
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			p := kmsg.NewDeleteRecordsResponseTopicPartition()
			p.Partition, p.LowWatermark = rp.Partition, -1
			part, start, err := h.deleteBefore(rt.Topic, rp.Partition, rp.Offset)
			if err != nil {
				p.ErrorCode, _ = c.ErrorCode(err)
			} else {
				starts[part] = max(start, starts[part])
			}
			moved = append(moved, part)
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	var ticket log.Ticket
	var failed error
	if len(starts) > 0 {
		ticket, failed = h.replicas.MoveStarts(starts)
	}
	return func() protocol.Reply {
		if len(starts) > 0 && failed == nil {
			failed = h.replicas.Commit(ticket)
		}
		row := 0
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				p, part := &resp.Topics[i].Partitions[j], moved[row]
				row++
				if part == nil {
					continue
				}
				if err := errors.Join(failed, part.ConfirmLeader()); err != nil {
					p.ErrorCode, _ = c.ErrorCode(err)
				} else {
					p.LowWatermark = part.Log().Start()
				}
			}
		}
		return protocol.Reply{Msg: resp}
	}
}

// deleteBefore finds the partition and where its log is to start.
func (h *Handlers) deleteBefore(topic string, i int32, offset int64) (*replica.Partition, int64, error) {
	t := h.replicas.Topic(topic)
	p, err := replica.Find(t, i)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, -1, err
	}
	if t.Internal {
		return nil, -1, kerr.InvalidTopicException
	}
	if err != nil {
		return nil, -1, err
	}
	if c := t.Config(); c.Compact && !c.Delete {
		return nil, -1, kerr.PolicyViolation
	}
	start, err := p.StartFor(offset)
	if err != nil {
		return nil, -1, err
	}
	return p, start, nil
}
