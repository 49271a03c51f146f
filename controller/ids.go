package controller

import (
	"context"
	"fmt"
	"math"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller/meta"
)

// producerIDBlock is how many producer ids are taken at once.
const producerIDBlock = 1000

// AllocateProducerIDs takes a block of n producer ids that nobody else ever gets. A block whose answer was lost is lost.
func (c *Client) AllocateProducerIDs(ctx context.Context) (first int64, n int, err error) {
	err = c.commit(ctx, func(ctx context.Context) error {
		first, err = c.addTo(ctx, c.keys.ProducerIDs(), "the next producer id", producerIDBlock, math.MaxInt64-producerIDBlock)
		return err
	})
	return first, producerIDBlock, err
}

// addTo adds to a number in etcd and gives what it was, under more conditions if there are any.
func (c *Client) addTo(ctx context.Context, key, what string, by, limit int64, more ...clientv3.Cmp) (int64, error) {
	seen, err := c.read(ctx, key)
	if err != nil {
		return 0, err
	}
	var n int64
	if seen[0].value != nil {
		n, err = meta.DecodeNumber(what, seen[0].value, math.MaxInt64)
		if n, err = decoded(key, n, err); err != nil {
			return 0, err
		}
	}
	if n > limit {
		return 0, &verdict{fmt.Errorf("%s is %d: there are none left", what, n)}
	}
	cmps := append([]clientv3.Cmp{unchanged(key, seen[0])}, more...)
	resp, err := c.txn(ctx, cmps, []clientv3.Op{clientv3.OpPut(key, string(meta.EncodeNumber(n+by)))})
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return n, errAgain
	}
	return n, nil
}

// RaiseEpochs raises the leader epoch of every partition that this broker leads by the same amount, at least 1 (more when its
// log has seen newer epochs than etcd shows), in one write. It is called once after each opening of the log, after
// Register; when it returns, the image shows the new epochs and the subscribers have taken them in.
func (c *Client) RaiseEpochs(ctx context.Context, by int32) error {
	node := c.opts.NodeID
	if b, _ := c.session.state(); b == nil {
		return fmt.Errorf("raise leader epochs: %w", ErrNotRegistered)
	}
	by = max(by, 1)
	live := c.keys.Live(node)
	ours := clientv3.Compare(clientv3.Value(live), "=", string(meta.EncodeLive(c.hold())))
	// An attempt that was carried out though its answer was lost is counted again: epochs may skip, never repeat.
	err := c.commit(ctx, func(ctx context.Context) error {
		_, err := c.addTo(ctx, c.keys.Openings(node), "a broker's openings", int64(by), int64(math.MaxInt32-by), ours)
		return err
	})
	if err != nil {
		return fmt.Errorf("raise leader epochs: %w", err)
	}
	c.log.Info("leader epochs raised", zap.Int32("by", by))
	return c.catchUp(ctx)
}
