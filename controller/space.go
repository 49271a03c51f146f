package controller

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// makeRoom is called when etcd refuses to grow. The embedded one is compacted, defragmented and told to go on; an external one is its
// operator's. Nil: try again.
func (c *Client) makeRoom(ctx context.Context) error {
	if c.embedded == nil {
		c.log.Error("etcd's database has reached its quota and takes no writes; compact and defragment it, then disarm its alarm "+
			"(etcdctl compact, defrag, alarm disarm), or raise its quota", zap.Strings("endpoints", c.opts.Endpoints))
		return fmt.Errorf("write to %s: %w", c.opts.where(), ErrNoSpace)
	}
	select {
	case <-c.healing:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { c.healing <- struct{}{} }()
	alarms, err := c.etcd.AlarmList(ctx)
	if err == nil && len(alarms.Alarms) == 0 {
		return nil // Somebody else has healed it.
	}
	before := c.embedded.server.Backend().Size()
	if err := c.shrink(ctx); err != nil {
		return fmt.Errorf("make room in the embedded etcd: %w", err)
	}
	after := c.embedded.server.Backend().Size()
	fields := []zap.Field{zap.Int64("bytes_before", before), zap.Int64("bytes_after", after), zap.Int64("quota", c.opts.quota)}
	if after+maxRequestBytes > c.opts.quota {
		c.log.Error("the embedded etcd has reached its quota and could not be made smaller; delete topics that are not needed", fields...)
		return fmt.Errorf("write to %s: %w", c.opts.where(), ErrNoSpace)
	}
	if _, err := c.etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("make room in the embedded etcd: %w", err)
	}
	c.log.Warn("the embedded etcd had reached its quota; it was compacted and takes writes again", fields...)
	return nil
}

// shrink drops all revisions but the newest and gives their pages back.
func (c *Client) shrink(ctx context.Context) error {
	resp, err := c.etcd.Get(ctx, c.keys.Cluster())
	if err != nil {
		return err
	}
	_, err = c.etcd.Compact(ctx, resp.Header.GetRevision(), clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	return c.embedded.server.Backend().Defrag()
}
