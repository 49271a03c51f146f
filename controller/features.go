package controller

import (
	"context"
	"errors"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// UpdateFeatures gives features the levels that change makes of an image, all of them or none. It may call change more than once;
// an error of change is returned as it is. When it returns, the image shows the levels and the subscribers have taken them in.
func (c *Client) UpdateFeatures(ctx context.Context, change func(*meta.Image) (map[string]int16, error)) error {
	return c.onImage(ctx, func(image *meta.Image) ([]clientv3.Cmp, []clientv3.Op, error) {
		levels, err := change(image)
		if err != nil {
			return nil, nil, err
		}
		var cmps []clientv3.Cmp
		var puts []clientv3.Op
		for _, name := range slices.Sorted(maps.Keys(levels)) {
			if was, ok := image.Features()[name]; ok && was == levels[name] {
				continue
			}
			key := c.keys.Feature(name)
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(key), "<", image.Revision()+1))
			puts = append(puts, clientv3.OpPut(key, string(meta.EncodeNumber(int64(levels[name])))))
		}
		return cmps, puts, nil
	})
}

// onImage commits what plan makes of the newest image, in one transaction, which depends on the conditions of the plan. When they
// do not hold any more, or an attempt may have been carried out, it is planned again on an image that shows it. No writes: nothing
// is left to do.
func (c *Client) onImage(ctx context.Context, plan func(*meta.Image) ([]clientv3.Cmp, []clientv3.Op, error)) error {
	for {
		var rev int64
		err := c.commit(ctx, func(ctx context.Context) error {
			cmps, ops, err := plan(c.Image())
			if err != nil {
				return &verdict{err}
			}
			if len(ops) == 0 {
				return nil
			}
			resp, err := c.txn(ctx, cmps, ops)
			if err != nil {
				return err
			}
			if !resp.Succeeded {
				return &verdict{errStale}
			}
			rev = resp.Header.GetRevision()
			return nil
		})
		switch {
		case errors.Is(err, errStale):
			if err := c.catchUp(ctx); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			errs := []error{nil}
			c.settle(ctx, rev, errs)
			return errs[0]
		}
	}
}
