package txns

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
)

// Enlisting is a question on its way: whether partitions belong to a transaction.
type Enlisting struct {
	n        int
	added    *txn.Promise // one of the two
	verified *coordinator.Promise[txn.Verified]
}

// Enlist adds partitions to a producer's transaction for a client that speaks
// version 2 of transactions. While the transaction before is being ended it waits,
// with patience: such a client has been told that it may begin with the next one.
func (h *Handlers) Enlist(id string, producer coordinator.Producer, places []txn.Place, patience time.Duration) *Enlisting {
	return h.ask(txn.Add{ID: id, Producer: producer, Version: txn.Version2, Places: places, Patience: patience}, false)
}

// Verify asks whether partitions are in a producer's transaction.
func (h *Handlers) Verify(id string, producer coordinator.Producer, places []txn.Place) *Enlisting {
	return h.ask(txn.Add{ID: id, Producer: producer, Places: places}, true)
}

func (h *Handlers) ask(r txn.Add, verify bool) *Enlisting {
	e := &Enlisting{n: len(r.Places)}
	shard := h.shard(r.ID)
	if verify {
		e.verified = coordinator.Ask(shard, func(m *txn.Machine, t *coordinator.Turn, p *coordinator.Promise[txn.Verified]) {
			m.VerifyPartitions(t, r, p)
		})
		return e
	}
	e.added = coordinator.Ask(shard, func(m *txn.Machine, t *coordinator.Turn, p *txn.Promise) { m.AddPartitions(t, r, p) })
	return e
}

// Ready tells whether Wait would return at once.
func (e *Enlisting) Ready() bool {
	if e.added != nil {
		return e.added.Ready()
	}
	return e.verified.Ready()
}

// Wait gives an error for each partition, nil for one that belongs to the
// transaction; TRANSACTION_ABORTABLE says that it does not.
func (e *Enlisting) Wait(ctx context.Context, stop <-chan struct{}) []error {
	errs := make([]error, e.n)
	var whole error
	var in []bool
	if e.added != nil {
		o, err := e.added.Wait(ctx, stop)
		if whole = err; err == nil {
			whole = o.Err
		}
	} else {
		v, err := e.verified.Wait(ctx, stop)
		if whole, in = err, v.In; err == nil {
			whole = v.Err
		}
	}
	for i := range errs {
		switch {
		case whole != nil:
			errs[i] = whole
		case in != nil && !in[i]:
			errs[i] = kerr.TransactionAbortable
		}
	}
	return errs
}
