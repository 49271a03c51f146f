package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller/meta"
)

const (
	renewRetry  = 250 * time.Millisecond
	holderCheck = 250 * time.Millisecond
	goodbye     = 2 * time.Second
)

// session is this broker's registration and the lease that it stands on.
type session struct {
	incarnation [16]byte
	kick        chan struct{} // holds one token: look after the lease now

	mu     sync.Mutex
	broker *meta.Broker // nil until Register
	lease  clientv3.LeaseID
	rev    int64 // of the registration: an image before it does not show it
}

func newSession() *session {
	return &session{incarnation: newID(), kick: make(chan struct{}, 1)}
}

func (s *session) hurry() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// state is the registration, if there is one, and its lease.
func (s *session) state() (*meta.Broker, clientv3.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broker, s.lease
}

func (s *session) set(b *meta.Broker, lease clientv3.LeaseID, rev int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broker, s.lease, s.rev = b, lease, rev
}

// lost tells whether the image shows that a registration of ours has gone.
func (s *session) lost(image *meta.Image, node int32) bool {
	s.mu.Lock()
	registered, rev := s.broker != nil, s.rev
	s.mu.Unlock()
	if !registered || image.Revision() < rev {
		return false
	}
	live, ok := image.Live(node)
	return !ok || live.Incarnation != s.incarnation
}

// Register announces this broker under its lease, and from then on keeps the lease, or registers again, by itself.
// ID, Epoch, Incarnation and Fenced of b are set by Register. *DuplicateNodeError when another live broker has this id; if
// the other one may be dead, Register waits for its lease to end.
func (c *Client) Register(ctx context.Context, b meta.Broker) error {
	b.ID, b.Incarnation, b.Epoch, b.Fenced = c.opts.NodeID, c.session.incarnation, 0, false
	rev, err := c.register(ctx, &b)
	if err != nil {
		return fmt.Errorf("register node %d: %w", b.ID, err)
	}
	c.session.hurry()
	return c.WaitRevision(ctx, rev)
}

// register puts the registration into etcd and lifts the fence.
func (c *Client) register(ctx context.Context, b *meta.Broker) (rev int64, err error) {
	var waiting holder
	for {
		var other *holder
		err := c.commit(ctx, func(ctx context.Context) (err error) {
			rev, other, err = c.tryRegister(ctx, b)
			return err
		})
		if err != nil || other == nil {
			return rev, err
		}
		if waiting.isRenewed(other) {
			return 0, &DuplicateNodeError{NodeID: b.ID, Holder: c.addressOf(b.ID)}
		}
		if waiting.lease == 0 {
			waiting = *other
			c.log.Warn("node id is held by a lease that another broker left or keeps; waiting for it to end",
				zap.Int32("node", b.ID), zap.String("holder", c.addressOf(b.ID)), zap.Duration("lease", other.left))
		}
		waiting.left = min(waiting.left, other.left+other.seen.Sub(waiting.seen))
		select {
		case <-time.After(holderCheck):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-c.ctx.Done():
			return 0, ErrClosed
		}
	}
}

// holder is somebody else's hold on our node id.
type holder struct {
	lease clientv3.LeaseID
	left  time.Duration // of the lease, rounded down to seconds
	seen  time.Time
}

// isRenewed tells whether the holder is alive, given what is seen of it later: its lease has more time left than then,
// or has not ended though all of its time has passed.
func (h *holder) isRenewed(later *holder) bool {
	return h.lease != 0 && (h.lease != later.lease || later.left > h.left ||
		later.left > 0 && later.seen.Sub(h.seen) > h.left+time.Second)
}

// tryRegister asks for a lease and takes the node id with it, unless somebody has it who may be alive.
func (c *Client) tryRegister(ctx context.Context, b *meta.Broker) (rev int64, other *holder, err error) {
	asked := time.Now()
	lease, err := c.etcd.Grant(ctx, int64(c.opts.LeaseTTL/time.Second))
	if err != nil {
		return 0, nil, err
	}
	key := c.keys.Live(b.ID)
	puts := []clientv3.Op{
		clientv3.OpPut(c.keys.Broker(b.ID), string(meta.EncodeBroker(b))),
		clientv3.OpPut(key, string(meta.EncodeLive(c.hold())), clientv3.WithLease(lease.ID)),
	}
	resp, err := c.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}, puts, clientv3.OpGet(key))
	if err == nil && !resp.Succeeded {
		resp, other, err = c.replace(ctx, key, resp, puts)
	}
	if err != nil || other != nil {
		c.revoke(lease.ID)
		return 0, other, err
	}
	c.session.set(b, lease.ID, resp.Header.GetRevision())
	c.fence.renew(asked, time.Duration(lease.TTL)*time.Second)
	c.log.Info("registered", zap.Int32("node", b.ID), zap.Int64("epoch", resp.Header.GetRevision()))
	return resp.Header.GetRevision(), nil, nil
}

// hold is what this process puts into its leased key.
func (c *Client) hold() meta.Live {
	return meta.Live{Incarnation: c.session.incarnation, Owner: c.owner}
}

// replace takes the node id over from ourselves or from a process that is known to be dead (or has no lease, which no process
// would do); else it says who has it.
func (c *Client) replace(ctx context.Context, key string, seen *clientv3.TxnResponse, puts []clientv3.Op) (*clientv3.TxnResponse, *holder, error) {
	kvs := seen.Responses[0].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return nil, nil, errAgain
	}
	live, err := meta.DecodeLive(kvs[0].Value)
	if err != nil {
		return nil, nil, &unreadableError{fmt.Errorf("read key %q: %w", key, err)}
	}
	old := clientv3.LeaseID(kvs[0].Lease)
	if old != clientv3.NoLease && !c.isDead(live) {
		left, err := c.etcd.TimeToLive(ctx, old)
		if err != nil {
			return nil, nil, err
		}
		return nil, &holder{lease: old, left: time.Duration(left.TTL) * time.Second, seen: time.Now()}, nil
	}
	resp, err := c.txn(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kvs[0].ModRevision)}, puts)
	if err == nil && !resp.Succeeded {
		err = errAgain
	}
	if err == nil {
		c.revoke(old) // It holds nothing any more.
	}
	return resp, nil, err
}

// isDead tells whether the process that holds our node id is dead for certain: an earlier hold of this process, or, when
// this process comes to register, one that had this directory, whose lock we hold, or that had this embedded etcd.
func (c *Client) isDead(live meta.Live) bool {
	if live.Incarnation == c.session.incarnation {
		return true
	}
	b, _ := c.session.state()
	return b == nil && (c.embedded != nil || c.owner != "" && live.Owner == c.owner)
}

// revoke gives a lease back, if etcd hears it.
func (c *Client) revoke(lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(c.ctx, goodbye)
	defer cancel()
	if _, err := c.etcd.Revoke(ctx, lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		c.log.Debug("cannot revoke a lease; it will end by itself", zap.Error(err))
	}
}

// addressOf is where the broker that registered last under this id listens.
func (c *Client) addressOf(id int32) string {
	b := c.Image().Broker(id)
	if b == nil || len(b.Listeners) == 0 {
		return "without an address"
	}
	out := make([]string, len(b.Listeners))
	for i, l := range b.Listeners {
		out[i] = net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port)))
	}
	return "at " + strings.Join(out, ", ")
}

// keepSession renews the lease, or registers again when it is gone, until Close.
func (c *Client) keepSession() {
	timer := time.NewTimer(c.opts.renewEvery())
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.done:
			return
		case <-timer.C:
		case <-c.session.kick:
		}
		next := c.opts.renewEvery()
		b, lease := c.session.state()
		if b != nil {
			err := c.keepAlive(b, lease)
			if err != nil && c.ctx.Err() == nil {
				if !failing {
					c.log.Warn("etcd does not renew this broker's lease; trying again, and fenced when it ends", zap.String("cause", cause(err)))
				}
				next = renewRetry
			}
			if failing && err == nil {
				c.log.Info("lease renewed")
			}
			failing = err != nil
		}
		timer.Reset(next)
	}
}

// keepAlive renews once, or registers again.
func (c *Client) keepAlive(b *meta.Broker, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(c.ctx, min(c.opts.LeaseTTL, attemptTimeout))
	defer cancel()
	asked := time.Now()
	if !c.session.lost(c.Image(), b.ID) {
		ttl, rev, err := c.renewLease(ctx, lease)
		if err == nil {
			c.fence.renew(asked, time.Duration(ttl)*time.Second)
			return c.checkRevision(ctx, rev)
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
	}
	c.fence.drop()
	c.log.Warn("this broker's lease has ended; registering again", zap.Int32("node", b.ID))
	return c.registerAgain(b)
}

// renewLease renews the lease, for ttl seconds, and tells etcd's revision. The embedded etcd is asked directly: the client makes a
// stream and five goroutines for each call, most of what an idle broker would do.
func (c *Client) renewLease(ctx context.Context, id clientv3.LeaseID) (ttl, rev int64, err error) {
	if c.embedded != nil {
		return c.embedded.renew(ctx, id)
	}
	resp, err := c.etcd.KeepAliveOnce(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	return resp.TTL, resp.GetRevision(), nil
}

// registerAgain makes the registration anew. It fails for good when somebody else has the node id by now.
func (c *Client) registerAgain(b *meta.Broker) error {
	_, err := c.register(c.ctx, b)
	var duplicate *DuplicateNodeError
	var identity *IdentityError
	switch {
	case errors.As(err, &duplicate):
		c.fail(fmt.Errorf("%w: %w", ErrSuperseded, err))
	case errors.As(err, &identity):
		c.fail(err)
	}
	return err
}

// checkRevision notices an etcd that went back to an older state: it is behind the image, and not because a member lags.
func (c *Client) checkRevision(ctx context.Context, rev int64) error {
	if rev >= c.Image().Revision() {
		return nil
	}
	seen := c.Image().Revision()
	resp, err := c.etcd.Get(ctx, c.keys.Cluster()) // A linearizable read, which waits for a member that lags.
	if err != nil {
		return err
	}
	if resp.Header.GetRevision() < seen {
		c.log.Error("etcd went back to an older state; reading everything anew",
			zap.Int64("was", seen), zap.Int64("is", resp.Header.GetRevision()))
		c.askRelist()
	}
	return nil
}

// deregister says goodbye: other brokers need not wait for the lease to end.
func (c *Client) deregister(ctx context.Context) error {
	b, lease := c.session.state()
	if b == nil || c.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	if _, err := c.etcd.Revoke(ctx, lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("revoke lease: %w", err)
	}
	return nil
}
