package records

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/protocol"
)

// allocateTimeout bounds the wait for a block of producer ids. Clients try again.
const allocateTimeout = 5 * time.Second

// initProducerID answers InitProducerId. An idempotent producer gets an id from
// this broker's block. A transactional id is checked as far as its transaction
// coordinator would check it first; there is no coordinator yet, and clients wait
// for one that is not available.
func (h *Handlers) initProducerID(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if err := h.checkInit(req); err != nil {
		resp.ErrorCode, _ = c.ErrorCode(err)
		return c.Answer(resp)
	}
	return func() protocol.Reply {
		id, err := h.ids.next(c.Ctx)
		if err != nil {
			h.logger.Warn("no block of producer ids", zap.Error(err))
			resp.ErrorCode, _ = c.ErrorCode(kerr.CoordinatorLoadInProgress)
			return protocol.Reply{Msg: resp}
		}
		resp.ProducerID, resp.ProducerEpoch = id, 0
		return protocol.Reply{Msg: resp}
	}
}

// checkInit returns why the request gets no id, nil for an idempotent producer.
func (h *Handlers) checkInit(req *kmsg.InitProducerIDRequest) error {
	if (req.ProducerID == -1) != (req.ProducerEpoch == -1) {
		return kerr.InvalidRequest
	}
	switch {
	case req.TransactionalID == nil:
		return nil
	case *req.TransactionalID == "":
		return kerr.InvalidRequest
	case req.TransactionTimeoutMillis <= 0,
		int64(req.TransactionTimeoutMillis) > h.live.Int64("transaction.max.timeout.ms"):
		return kerr.InvalidTransactionTimeout
	}
	return kerr.CoordinatorNotAvailable
}

// producerIDs hands out the ids of a block, and takes a new block when it is used
// up. Ids are never handed out twice: what is left of a block when the broker
// stops is lost.
type producerIDs struct {
	allocate func(ctx context.Context) (first int64, n int, err error)
	// turn holds one token: who has it may use what is below. It is not a mutex
	// since its holder waits for etcd.
	turn chan struct{}
	id   int64
	left int
}

func newProducerIDs(allocate func(context.Context) (int64, int, error)) *producerIDs {
	p := &producerIDs{allocate: allocate, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

var errEmptyBlock = errors.New("block of producer ids is empty")

func (p *producerIDs) next(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, allocateTimeout)
	defer cancel()
	select {
	case <-p.turn:
	case <-ctx.Done():
		return -1, ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	if p.left == 0 {
		first, n, err := p.allocate(ctx)
		if err != nil {
			return -1, err
		}
		if n <= 0 {
			return -1, errEmptyBlock
		}
		p.id, p.left = first, n
	}
	id := p.id
	p.id++
	p.left--
	return id, nil
}
