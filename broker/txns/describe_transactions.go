package txns

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// describeTransactions answers DescribeTransactions.
func (h *Handlers) describeTransactions(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.DescribeTransactionsRequest)
	promises := make([]*coordinator.Promise[txn.Description], len(req.TransactionalIDs))
	for i, id := range req.TransactionalIDs {
		if id == "" {
			promises[i] = coordinator.NewPromise[txn.Description]()
			promises[i].Fail(kerr.InvalidRequest)
			continue
		}
		promises[i] = coordinator.Ask(h.shard(id), func(m *txn.Machine, t *coordinator.Turn, p *coordinator.Promise[txn.Description]) {
			m.Describe(t, id, p)
		})
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		for i, p := range promises {
			d, err := p.Wait(c.Ctx, c.Draining())
			if err == nil {
				err = d.Err
			}
			row := kmsg.NewDescribeTransactionsResponseTransactionState()
			row.TransactionalID = req.TransactionalIDs[i]
			if row.ErrorCode = code(c, err); err == nil {
				describe(&row, &d)
			}
			resp.TransactionStates = append(resp.TransactionStates, row)
		}
		return protocol.Reply{Msg: resp}
	}
}

func describe(row *kmsg.DescribeTransactionsResponseTransactionState, d *txn.Description) {
	row.State, row.TimeoutMillis, row.StartTimestamp = d.State.String(), d.Timeout, d.Started
	row.ProducerID, row.ProducerEpoch = d.Producer.ID, d.Producer.Epoch
	for _, place := range d.Places { // Those of a topic are together.
		if n := len(row.Topics); n == 0 || row.Topics[n-1].Topic != place.Topic {
			t := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
			t.Topic = place.Topic
			row.Topics = append(row.Topics, t)
		}
		t := &row.Topics[len(row.Topics)-1]
		t.Partitions = append(t.Partitions, place.Partition)
	}
}
