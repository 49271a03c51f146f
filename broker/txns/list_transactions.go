package txns

import (
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// listTransactions answers ListTransactions: those that this broker coordinates.
func (h *Handlers) listTransactions(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.ListTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	filter, possible, err := filterOf(req, resp)
	if err != nil {
		resp.ErrorCode, _ = c.ErrorCode(err)
		return c.Answer(resp)
	}
	if !possible {
		return c.Answer(resp)
	}
	var promises []*coordinator.Promise[[]txn.Listed]
	for _, s := range h.runtime.Shards() {
		promises = append(promises, coordinator.Ask(s, func(m *txn.Machine, t *coordinator.Turn, p *coordinator.Promise[[]txn.Listed]) {
			m.List(t, filter, p)
		}))
	}
	return func() protocol.Reply {
		for _, p := range promises {
			list, err := p.Wait(c.Ctx, c.Draining())
			if err != nil {
				// Half a list would pass for a whole one.
				resp.ErrorCode, resp.TransactionStates = code(c, kerr.CoordinatorLoadInProgress), nil
				break
			}
			for _, x := range list {
				row := kmsg.NewListTransactionsResponseTransactionState()
				row.TransactionalID, row.ProducerID, row.TransactionState = x.ID, x.Producer, x.State.String()
				resp.TransactionStates = append(resp.TransactionStates, row)
			}
		}
		return protocol.Reply{Msg: resp}
	}
}

// filterOf is what the request asks for. States that nobody knows are named in the
// answer; possible is false if there are no others.
func filterOf(req *kmsg.ListTransactionsRequest, resp *kmsg.ListTransactionsResponse) (f *txn.Filter, possible bool, err error) {
	f = &txn.Filter{Producers: req.ProducerIDFilters, Longer: -1}
	for _, name := range req.StateFilters {
		if s, ok := txn.StateNamed(name); ok {
			f.States = append(f.States, s)
		} else {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	if req.Version >= 1 && req.DurationFilterMillis >= 0 {
		const most = int64(1<<63-1) / int64(time.Millisecond)
		f.Longer = time.Duration(min(req.DurationFilterMillis, most)) * time.Millisecond
	}
	if req.TransactionalIDPattern != nil && *req.TransactionalIDPattern != "" {
		if f.Pattern, err = regexp.Compile("^(?:" + *req.TransactionalIDPattern + ")$"); err != nil {
			return nil, false, kerr.InvalidRegularExpression
		}
	}
	return f, len(req.StateFilters) == 0 || len(f.States) > 0, nil
}
