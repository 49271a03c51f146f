package txns

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// raisesEpoch is the version of EndTxn from which every end raises the epoch.
const raisesEpoch = 5

// endTxn answers EndTxn once the end is decided.
func (h *Handlers) endTxn(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.EndTxnRequest)
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID == "" {
		resp.ErrorCode, _ = c.ErrorCode(kerr.InvalidRequest)
		return c.Answer(resp)
	}
	first := h.askEnd(req, coordinator.NoProducer)
	c.ReadyWhen(first.Ready)
	return func() protocol.Reply {
		p, err := h.again(c, first, func(id int64) *txn.Promise { return h.askEnd(req, id) })
		if err != nil {
			resp.ErrorCode = codeBelow(knowsFenced, c, err)
			return protocol.Reply{Msg: resp}
		}
		resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
		return protocol.Reply{Msg: resp}
	}
}

func (h *Handlers) askEnd(req *kmsg.EndTxnRequest, id int64) *txn.Promise {
	r := txn.End{
		ID: req.TransactionalID, Producer: coordinator.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch},
		Commit: req.Commit, NewID: id,
	}
	if req.Version >= raisesEpoch {
		r.Version = txn.Version2
	}
	return coordinator.Ask(h.shard(r.ID), func(m *txn.Machine, t *coordinator.Turn, p *txn.Promise) { m.EndTxn(t, r, p) })
}
