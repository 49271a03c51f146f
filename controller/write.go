package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// errAgain says that something came between the reading and the writing.
var errAgain = errors.New("metadata changed meanwhile")

// verdict is an error that asking etcd again does not change.
type verdict struct{ error }

func (v *verdict) Unwrap() error { return v.error }

const (
	// opsPerTxn leaves room for the identity's part of a transaction.
	opsPerTxn = maxTxnOps - 2
	// bytesPerTxn leaves room for what surrounds keys and values.
	bytesPerTxn = 1 << 20
	// retryPause is between attempts while etcd does not answer.
	retryPause = 100 * time.Millisecond
)

// commit calls do until it succeeds or gives a verdict. An attempt that failed may have been carried out: do must know its own work.
func (c *Client) commit(ctx context.Context, do func(ctx context.Context) error) error {
	for {
		if err := c.ended(); err != nil {
			return err
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := do(attempt)
		cancel()
		var v *verdict
		switch {
		case err == nil:
			return nil
		case errors.As(err, &v):
			return v.error
		case isRefused(err):
			c.fail(err)
			return err
		case errors.Is(err, rpctypes.ErrNoSpace):
			if err = c.makeRoom(ctx); err != nil {
				return err
			}
			continue
		case ctx.Err() != nil:
			return refuse(kerr.RequestTimedOut, "%s did not answer in time (%s); it may still carry the request out", c.opts.where(), cause(err))
		case errors.Is(err, errAgain):
			continue
		case isFinal(err):
			return fmt.Errorf("write to %s: %w", c.opts.where(), err)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
}

// ended is why nothing can be written any more.
func (c *Client) ended() error {
	if err := c.Err(); err != nil {
		return err
	}
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return nil
}

// txn commits a transaction that also depends on the cluster's identity. The responses of a failed one are those of els.
func (c *Client) txn(ctx context.Context, cmps []clientv3.Cmp, then []clientv3.Op, els ...clientv3.Op) (*clientv3.TxnResponse, error) {
	key := c.keys.Cluster()
	cmps = append(cmps, clientv3.Compare(clientv3.Value(key), "=", string(meta.EncodeCluster(c.cluster))))
	els = append([]clientv3.Op{clientv3.OpGet(key)}, els...)
	resp, err := c.etcd.Txn(ctx).If(cmps...).Then(then...).Else(els...).Commit()
	if err != nil || resp.Succeeded {
		return resp, err
	}
	kvs := resp.Responses[0].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return nil, c.otherCluster("")
	}
	found, err := meta.DecodeCluster(kvs[0].Value)
	if err != nil {
		return nil, &unreadableError{fmt.Errorf("read key %q: %w", key, err)}
	}
	if found != c.cluster {
		return nil, c.otherCluster(found)
	}
	resp.Responses = resp.Responses[1:]
	return resp, nil
}

// found is what a read of one key in a transaction gave.
type found struct {
	value  []byte // nil when there is no such key
	mod    int64  // 0 when there is no such key
	create int64
}

// read gets single keys at one revision.
func (c *Client) read(ctx context.Context, keys ...string) ([]found, error) {
	ops := make([]clientv3.Op, len(keys))
	for i, k := range keys {
		ops[i] = clientv3.OpGet(k)
	}
	resp, err := c.etcd.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	return rangesOf(resp), nil
}

func rangesOf(resp *clientv3.TxnResponse) []found {
	out := make([]found, len(resp.Responses))
	for i, r := range resp.Responses {
		if kvs := r.GetResponseRange().GetKvs(); len(kvs) > 0 {
			out[i] = found{value: kvs[0].Value, mod: kvs[0].ModRevision, create: kvs[0].CreateRevision}
		}
	}
	return out
}

// unchanged is the condition that a key is still as it was read.
func unchanged(key string, f found) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", f.mod)
}

// decoded reads a value; what cannot be read ends the client.
func decoded[V any](key string, v V, err error) (V, error) {
	if err != nil {
		err = &unreadableError{fmt.Errorf("read key %q: %w", key, err)}
	}
	return v, err
}
