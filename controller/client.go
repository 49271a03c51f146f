package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller/meta"
)

// Client is this broker's view of, and hand on, the cluster's metadata. All methods are safe for concurrent use.
type Client struct {
	opts     Options
	log      *zap.Logger
	keys     meta.Keys
	owner    string
	embedded *embedded // nil with an external etcd
	etcd     *clientv3.Client
	cluster  string

	image    atomic.Pointer[meta.Image]
	dispatch *dispatcher
	session  *session
	fence    *fence
	relist   chan struct{} // asks the watch to list everything anew
	healing  chan struct{} // holds one token: who takes it makes the embedded etcd's database smaller

	ctx     context.Context // of the goroutines; ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	mu   sync.Mutex
	err  error         // why done is closed
	done chan struct{} // closed by fail
}

// Open connects to etcd, or starts the embedded one, checks that it belongs to this data directory, and reads the
// image. While an external etcd cannot be reached it says so and tries again until ctx ends.
// The caller holds the exclusive lock of Dir.
func Open(ctx context.Context, o Options) (*Client, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("open metadata: %w", err)
	}
	c := &Client{
		opts: o, log: o.Logger, keys: meta.Keys{Prefix: o.Prefix}, owner: ownerOf(o.Dir),
		dispatch: newDispatcher(), fence: newFence(), relist: make(chan struct{}, 1), healing: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	c.session = newSession()
	c.healing <- struct{}{}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.open(ctx); err != nil {
		c.release()
		return nil, fmt.Errorf("open metadata: %w", err)
	}
	c.image.Store(meta.Empty())
	if err := persist(ctx, &c.opts, listTimeout, listTimeout, c.list); err != nil {
		c.release()
		return nil, fmt.Errorf("open metadata: read %s: %w", o.where(), err)
	}
	for _, run := range []func(){c.watch, c.dispatch.run, c.keepSession, c.fence.run, c.watchEmbedded} {
		c.running.Go(run)
	}
	return c, nil
}

// open gets a client of the right etcd.
func (c *Client) open(ctx context.Context) (err error) {
	if c.opts.isEmbedded() {
		if err := checkEmbedded(&c.opts); err != nil {
			return err
		}
		if c.embedded, err = startEmbedded(ctx, &c.opts); err != nil {
			return err
		}
		c.etcd = c.embedded.client()
	}
	err = persist(ctx, &c.opts, firstAttempt, attemptTimeout, func(attempt context.Context) (err error) {
		if c.etcd == nil {
			if c.etcd, err = connect(ctx, &c.opts); err != nil {
				return err
			}
		}
		c.cluster, err = identify(attempt, c.etcd, &c.opts)
		return err
	})
	return err
}

// halt fences and ends the goroutines.
func (c *Client) halt() {
	c.fence.end()
	c.cancel()
	c.running.Wait()
}

// release lets go of etcd.
func (c *Client) release() {
	c.halt()
	if c.etcd != nil {
		_ = c.etcd.Close() // It ends requests, which have nobody waiting any more.
	}
	if c.embedded != nil {
		c.embedded.stop()
	}
}

// ClusterID is the cluster's id.
func (c *Client) ClusterID() string { return c.cluster }

// Image is the newest known metadata; never nil.
func (c *Client) Image() *meta.Image { return c.image.Load() }

// Subscribe calls fn with every image from now on, in order, from one goroutine for all subscribers; the first call
// carries the whole present image as a delta from nothing, and has returned when Subscribe returns.
// fn must not call Subscribe, WaitRevision or anything that writes metadata.
func (c *Client) Subscribe(fn func(*meta.Image, meta.Delta)) { c.dispatch.subscribe(fn) }

// WaitRevision waits until the image has reached rev and all subscribers have taken it in.
func (c *Client) WaitRevision(ctx context.Context, rev int64) error {
	ask := time.NewTicker(progressEvery)
	defer ask.Stop()
	for {
		applied, changed := c.dispatch.applied()
		if applied >= rev {
			return nil
		}
		select {
		case <-changed:
		case <-ask.C: // Revisions that touch other keys only are not seen by the watch unless it is asked how far it is.
			if err := c.etcd.RequestProgress(c.watchContext(c.ctx)); err != nil {
				c.log.Debug("cannot ask etcd for the watch's progress", zap.Error(err))
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for metadata revision %d: %w", rev, context.Cause(ctx))
		case <-c.done:
			return c.Err()
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// Fenced tells whether the lease may have run out (or there is none yet): what is fenced does not acknowledge.
// It reads a local clock only.
func (c *Client) Fenced() bool { return c.fence.fenced() }

// OnFenceChange calls fn after Fenced changed, from one goroutine.
func (c *Client) OnFenceChange(fn func(fenced bool)) { c.fence.listen(fn) }

// Done is closed when the client cannot go on: superseded, etcd wiped, written by a newer version, the embedded etcd failed.
// Err says why. The image stays, and the broker is fenced.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is why Done is closed; nil before.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail ends the client's work for good.
func (c *Client) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if first {
		c.fence.end()
		c.log.Error("metadata cannot be kept", zap.Error(err))
		close(c.done)
	}
}

// watchEmbedded notices the end of an embedded etcd.
func (c *Client) watchEmbedded() {
	if c.embedded == nil {
		return
	}
	select {
	case <-c.embedded.failed:
		c.fail(c.embedded.reason)
	case <-c.ctx.Done():
	}
}

// Close gives up the registration and stops, the embedded etcd too. ctx bounds the goodbye; what etcd does not hear ends with the lease.
func (c *Client) Close(ctx context.Context) error {
	err := ErrClosed
	c.closing.Do(func() {
		c.cancel()
		c.fence.end() // Its goroutine is one of those waited for.
		c.running.Wait()
		err = c.deregister(ctx)
		c.release()
	})
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}
