package records

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol/batch"
)

// A batch that opens a transaction on a partition is appended only once the
// transaction's coordinator has said that the transaction includes the partition
// (KIP-890): else a late batch, behind the marker of its transaction, would open
// one that nobody ends. The log tells which batches these are; the coordinator is
// asked in the request's turn, and the batches are appended when the answer's turn
// has come, which is still the order of the connection's requests. A batch that
// comes while those before it wait leaves a gap, and waits behind them. A marker
// that comes in between makes the append fail.

// Versions of Produce: from the first on clients know TRANSACTION_ABORTABLE, from
// the second on the produce adds its partitions to the transaction by itself.
const (
	produceKnowsAbortable = 11
	produceAdds           = 12
)

// Enlistment is a question to the coordinator of a transaction.
type Enlistment struct {
	TransactionalID string
	ProducerID      int64
	ProducerEpoch   int16
	// Add has the partitions added; else they must be in the transaction already.
	Add        bool
	Partitions []TopicPartition
	// Patience is how long the markers of the transaction before may be waited for.
	Patience time.Duration
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Enlisting is such a question on its way.
type Enlisting interface {
	// Wait gives an error for each partition, nil for one that belongs to the
	// transaction; TRANSACTION_ABORTABLE says that it does not.
	Wait(ctx context.Context, stop <-chan struct{}) []error
}

// mixedProducers refuses a request with the batches of two transactional
// producers: it names one transaction.
func (p *produce) mixedProducers() *failure {
	if p.req.TransactionalID == nil {
		return nil
	}
	var first *batch.Header
	for i := range p.rows {
		h, err := batch.ParseHeader(p.rows[i].batch)
		if p.rows[i].cut != nil || err != nil || !h.IsTransactional() {
			continue
		}
		switch {
		case first == nil:
			first = &h
		case h.ProducerID != first.ProducerID || h.ProducerEpoch != first.ProducerEpoch:
			return &failure{err: kerr.InvalidProducerIDMapping, message: "The request has batches of two transactional producers"}
		}
	}
	return nil
}

// firstGuard is the guard of a batch before anything is known of its transaction.
func (p *produce) firstGuard(b []byte) log.TxnGuard {
	h, err := batch.ParseHeader(b)
	if err != nil || !h.IsTransactional() {
		return 0
	}
	if p.req.Version < produceAdds && !p.h.live.Bool("transaction.partition.verification.enable") {
		return 0
	}
	return log.Unverified
}

// maxAsked bounds how often the coordinator is asked about one batch.
const maxAsked = 5

// unverified keeps a batch until the coordinator has answered. If a marker has come
// since it has, a batch that was part of a transaction is late. One that adds its
// partition itself is asked about once more: the coordinator may have waited for
// just that marker, of the transaction before.
func (p *produce) unverified(r *row) *failure {
	if r.asked++; r.asked > 1 && (p.req.Version < produceAdds || r.asked > maxAsked) {
		return p.refused(kerr.TransactionAbortable)
	}
	if p.h.enlist == nil {
		return &failure{err: kerr.InvalidProducerIDMapping}
	}
	h, err := batch.ParseHeader(r.valid)
	if err != nil {
		return &failure{err: err}
	}
	r.guard, _ = r.part.Log().TxnGuard(h.ProducerID, h.ProducerEpoch)
	p.enlisted = append(p.enlisted, r)
	return nil
}

// enlist asks the coordinator about the rows that wait for it.
func (p *produce) enlist() {
	if len(p.enlisted) == 0 {
		return
	}
	h, _ := batch.ParseHeader(p.enlisted[0].valid) // It was parsed before.
	e := Enlistment{
		TransactionalID: *p.req.TransactionalID, ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch,
		Add: p.req.Version >= produceAdds, Partitions: make([]TopicPartition, len(p.enlisted)), Patience: time.Until(p.joinDeadline()),
	}
	for i, r := range p.enlisted {
		e.Partitions[i] = TopicPartition{r.found.Name, r.index}
	}
	p.joining = p.h.enlist(e)
}

// join waits for the coordinator and appends what has waited for it.
func (p *produce) join() {
	if p.joining == nil {
		return
	}
	ctx, cancel := context.WithDeadline(p.call.Ctx, p.joinDeadline())
	defer cancel()
	for p.joining != nil {
		rows, errs := p.enlisted, p.joining.Wait(ctx, p.call.Draining())
		p.enlisted, p.joining = nil, nil
		for i, r := range rows {
			var f *failure
			if errs[i] != nil {
				f = p.refused(errs[i])
			} else {
				f = p.append(r)
			}
			if f != nil {
				p.fail(r, *f)
			}
		}
		p.enlist()
	}
}

// joinDeadline is when the wait for the coordinator ends: a request without
// timeout may still wait that it answers at all.
func (p *produce) joinDeadline() time.Time {
	const least = time.Second
	if earliest := time.Now().Add(least); p.deadline.Before(earliest) {
		return earliest
	}
	return p.deadline
}

// refused is what a client is told when the coordinator does not let it write. Old
// clients retry what passes only if it looks like too few replicas.
func (p *produce) refused(err error) *failure {
	f := failure{err: err}
	switch {
	case errors.Is(err, kerr.TransactionAbortable):
		if p.req.Version < produceKnowsAbortable {
			f.err, f.message = kerr.InvalidTxnState, "The partition is not part of the producer's transaction"
		}
	case errors.Is(err, kerr.ProducerFenced):
		f.err = kerr.InvalidProducerEpoch
	case errors.Is(err, kerr.ConcurrentTransactions), errors.Is(err, kerr.CoordinatorLoadInProgress),
		errors.Is(err, kerr.CoordinatorNotAvailable), errors.Is(err, kerr.NotCoordinator),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.err, f.message = kerr.NotEnoughReplicas, "The transaction's coordinator could not be asked; try again"
	}
	return &f
}
