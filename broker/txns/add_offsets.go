package txns

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// addOffsetsToTxn answers AddOffsetsToTxn: the partition that holds the group's
// offsets becomes part of the transaction.
func (h *Handlers) addOffsetsToTxn(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.AddOffsetsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	partition, err := h.offsetsPartition(req.Group)
	if req.TransactionalID == "" {
		err = kerr.InvalidRequest
	}
	if err != nil {
		resp.ErrorCode, _ = c.ErrorCode(err)
		return c.Answer(resp)
	}
	r := txn.Add{
		ID: req.TransactionalID, Version: txn.Version1,
		Producer: coordinator.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch},
		Places:   []txn.Place{{Topic: OffsetsTopic, Partition: partition}},
	}
	if req.Version >= byBrokers {
		r.Version = txn.Version2
	}
	p := coordinator.Ask(h.shard(r.ID), func(m *txn.Machine, t *coordinator.Turn, p *txn.Promise) { m.AddPartitions(t, r, p) })
	return finish(c, p, func(o txn.Outcome, err error) kmsg.Response {
		if err == nil {
			err = o.Err
		}
		resp.ErrorCode = codeBelow(knowsFenced, c, err)
		return resp
	})
}

// offsetsPartition is the partition that holds a group's offsets. The topic is made
// if it is not there.
func (h *Handlers) offsetsPartition(group string) (int32, error) {
	partition, ok := h.groups.OffsetsPartition(group)
	if !ok {
		h.createTopic(OffsetsTopic)
		return 0, kerr.CoordinatorNotAvailable
	}
	return partition, nil
}
