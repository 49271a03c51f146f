package txns

import (
	"context"
	"errors"
	"time"
)

// allocateTimeout bounds the wait for a block of producer ids. Clients try again.
const allocateTimeout = 5 * time.Second

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
