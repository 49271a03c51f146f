package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller/meta"
)

// progressEvery is how often a waiting caller asks how far the watch is.
const progressEvery = 50 * time.Millisecond

// watchContext makes a watch end when its member has lost the others. All watches and requests for progress share one stream by it.
func (c *Client) watchContext(ctx context.Context) context.Context {
	if c.embedded != nil {
		return ctx
	}
	return clientv3.WithRequireLeader(ctx)
}

// watch keeps the image up to date until Close.
func (c *Client) watch() {
	defer c.dispatch.end()
	wait := firstBackoff
	for c.ctx.Err() == nil {
		began := time.Now()
		err := c.follow()
		if errors.Is(err, errRelist) {
			err = c.listAgain()
		}
		if isUnreadable(err) {
			c.fail(err)
			return
		}
		if err == nil || c.ctx.Err() != nil {
			continue
		}
		if time.Since(began) > maxBackoff {
			wait = firstBackoff
		}
		c.log.Warn("the watch of the metadata in etcd was interrupted; the last known image stays",
			zap.Duration("again_in", wait), zap.String("cause", cause(err)))
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
		}
		wait = min(2*wait, maxBackoff)
	}
}

// errRelist says that the changes since the image are not to be had.
var errRelist = errors.New("changes are gone")

// follow takes in changes until the watch ends.
func (c *Client) follow() error {
	ctx, cancel := context.WithCancel(c.watchContext(c.ctx))
	defer cancel()
	events := c.etcd.Watch(ctx, c.opts.Prefix, clientv3.WithPrefix(), clientv3.WithRev(c.Image().Revision()+1))
	for {
		select {
		case resp, ok := <-events:
			if !ok {
				return errors.New("watch ended")
			}
			if err := c.take(&resp); err != nil {
				return err
			}
		case <-c.relist:
			return errRelist
		}
	}
}

// take turns one answer, which is whole revisions, into one image.
func (c *Client) take(resp *clientv3.WatchResponse) error {
	if resp.CompactRevision != 0 {
		return errRelist
	}
	if err := resp.Err(); err != nil {
		return err
	}
	base := c.Image()
	if len(resp.Events) == 0 {
		if resp.IsProgressNotify() && resp.Header.GetRevision() > base.Revision() {
			return c.advance(base, resp.Header.GetRevision(), nil)
		}
		return nil
	}
	changes := make([]meta.Change, len(resp.Events))
	for i, e := range resp.Events {
		changes[i] = c.change(e.Kv, e.Type == mvccpb.Event_DELETE)
	}
	// The answer's own revision is ahead of its last event while a watch catches up.
	return c.advance(base, changes[len(changes)-1].ModRevision, changes)
}

func (c *Client) change(kv *mvccpb.KeyValue, deleted bool) meta.Change {
	return meta.Change{
		Key: strings.TrimPrefix(string(kv.Key), c.opts.Prefix), Value: kv.Value,
		Deleted: deleted, ModRevision: kv.ModRevision,
	}
}

// advance publishes the image that follows base.
func (c *Client) advance(base *meta.Image, rev int64, changes []meta.Change) error {
	image, delta, err := meta.Apply(base, rev, changes)
	if err != nil {
		return &unreadableError{err}
	}
	if err := c.checkSame(image); err != nil {
		c.fail(err)
		return nil
	}
	c.publish(image, &delta)
	return nil
}

func (c *Client) publish(image *meta.Image, delta *meta.Delta) {
	c.image.Store(image)
	c.dispatch.publish(image, delta)
	if c.session.lost(image, c.opts.NodeID) {
		c.session.hurry()
	}
}

// checkSame refuses an image of another cluster, or of none: the one before stays.
func (c *Client) checkSame(image *meta.Image) error {
	if image.ClusterID() == c.cluster {
		return nil
	}
	return c.otherCluster(image.ClusterID())
}

// otherCluster says what a running broker found in place of its cluster.
func (c *Client) otherCluster(found string) error {
	e := &IdentityError{
		Want: c.cluster, Found: found,
		Cause:  fmt.Sprintf("%s (prefix %s) does not hold cluster %s any more: it was wiped or replaced", c.opts.where(), c.opts.Prefix, c.cluster),
		Remedy: "bring etcd back from a backup, or correct etcd.endpoints and the key prefix; the data on this broker is kept",
	}
	if found != "" {
		e.Cause += " by cluster " + found
	}
	return e
}

// list reads everything at one revision and publishes it. A revision below the image's means that etcd went back.
func (c *Client) list(ctx context.Context) error {
	base := meta.Empty()
	opts := []clientv3.OpOption{clientv3.WithLimit(c.opts.listLimit), clientv3.WithRange(clientv3.GetPrefixRangeEnd(c.opts.Prefix))}
	var changes []meta.Change
	var rev int64
	for from := c.opts.Prefix; ; {
		page := opts
		if rev != 0 {
			page = append(opts[:len(opts):len(opts)], clientv3.WithRev(rev))
		}
		resp, err := c.etcd.Get(ctx, from, page...)
		if err != nil {
			return err
		}
		if rev == 0 {
			rev = resp.Header.GetRevision()
		}
		for _, kv := range resp.Kvs {
			changes = append(changes, c.change(kv, false))
		}
		if !resp.More {
			break
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
	image, _, err := meta.Apply(base, rev, changes)
	if err != nil {
		return &unreadableError{err}
	}
	if err := c.checkSame(image); err != nil {
		return err
	}
	delta := meta.Diff(c.Image(), image)
	c.publish(image, &delta)
	return nil
}

// listAgain lists after changes were lost. A compaction while it lists makes it begin again.
func (c *Client) listAgain() error {
	ctx, cancel := context.WithTimeout(c.ctx, listTimeout)
	defer cancel()
	err := c.list(ctx)
	for errors.Is(err, rpctypes.ErrCompacted) {
		err = c.list(ctx)
	}
	var identity *IdentityError
	if errors.As(err, &identity) {
		c.fail(err)
		return nil
	}
	if err != nil && !isUnreadable(err) {
		c.askRelist()
	}
	return err
}

// askRelist makes the watch list everything anew.
func (c *Client) askRelist() {
	select {
	case c.relist <- struct{}{}:
	default:
	}
}
