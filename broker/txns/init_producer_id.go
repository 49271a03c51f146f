package txns

import (
	"context"
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/protocol"
)

// knowsFenced are versions from which PRODUCER_FENCED is known.
const (
	initKnowsFenced = 4
	knowsFenced     = 2 // of the other requests about transactions
)

// initProducerID answers InitProducerId. An idempotent producer gets an id from
// this broker's block; one with a transactional id is its coordinator's to know.
func (h *Handlers) initProducerID(c *protocol.Call) protocol.Finish {
	return h.init(c, &initRequest{InitProducerIDRequest: c.Request.(*kmsg.InitProducerIDRequest)})
}

// init answers a request of any version.
func (h *Handlers) init(c *protocol.Call, req *initRequest) protocol.Finish {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if err := h.checkInit(req); err != nil {
		resp.ErrorCode, _ = c.ErrorCode(err)
		return c.Reply(initReply(c, resp))
	}
	ask := func(context.Context) (coordinator.Producer, error) { return h.idempotent(c.Ctx) }
	if req.TransactionalID != nil {
		first := h.askInit(req, coordinator.NoProducer)
		ask = func(ctx context.Context) (coordinator.Producer, error) {
			return h.again(c, first, func(id int64) *txn.Promise { return h.askInit(req, id) })
		}
	}
	return func() protocol.Reply {
		p, err := ask(c.Ctx)
		if err != nil {
			resp.ErrorCode = codeBelow(initKnowsFenced, c, err)
			return initReply(c, resp)
		}
		resp.ProducerID, resp.ProducerEpoch = p.ID, p.Epoch
		return initReply(c, resp)
	}
}

// checkInit returns what is wrong with the request by itself.
func (h *Handlers) checkInit(req *initRequest) error {
	switch {
	case (req.ProducerID == -1) != (req.ProducerEpoch == -1):
		return kerr.InvalidRequest
	case req.TransactionalID == nil:
		return nil
	case *req.TransactionalID == "", len(*req.TransactionalID) > math.MaxInt16: // As long as a record's key can say.
		return kerr.InvalidRequest
	case req.enable2PC:
		return kerr.TransactionalIDAuthorizationFailed
	case req.keepPrepared:
		return kerr.UnsupportedVersion
	case req.TransactionTimeoutMillis <= 0,
		int64(req.TransactionTimeoutMillis) > h.live.Int64("transaction.max.timeout.ms"):
		return kerr.InvalidTransactionTimeout
	}
	return nil
}

// idempotent is a producer that belongs to no transactional id.
func (h *Handlers) idempotent(ctx context.Context) (coordinator.Producer, error) {
	id, err := h.newID(ctx)
	return coordinator.Producer{ID: id}, err
}

func (h *Handlers) askInit(req *initRequest, id int64) *txn.Promise {
	r := txn.Init{
		ID: *req.TransactionalID, Timeout: req.TransactionTimeoutMillis, NewID: id,
		Given: coordinator.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch},
	}
	return coordinator.Ask(h.shard(r.ID), func(m *txn.Machine, t *coordinator.Turn, p *txn.Promise) { m.InitProducerID(t, r, p) })
}

// newID is a producer id that nobody has.
func (h *Handlers) newID(ctx context.Context) (int64, error) {
	id, err := h.ids.next(ctx)
	if err != nil {
		h.logger.Warn("no block of producer ids", zap.Error(err))
		return coordinator.NoProducer, kerr.CoordinatorLoadInProgress
	}
	return id, nil
}

// again waits for an outcome. If that needs a new producer id the coordinator is
// asked once more, with one.
func (h *Handlers) again(c *protocol.Call, p *txn.Promise, ask func(id int64) *txn.Promise) (coordinator.Producer, error) {
	who, err := outcome(c, p)
	if !errors.Is(err, txn.ErrNeedsProducerID) {
		return who, err
	}
	id, err := h.newID(c.Ctx)
	if err != nil {
		return txn.NoProducer(), err
	}
	if who, err = outcome(c, ask(id)); errors.Is(err, txn.ErrNeedsProducerID) {
		return txn.NoProducer(), kerr.ConcurrentTransactions
	}
	return who, err
}
