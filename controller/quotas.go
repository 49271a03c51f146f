package controller

import (
	"context"
	"maps"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// QuotaChange is what is to become of one entity's quotas; those that it does not name stay.
type QuotaChange struct {
	Entity meta.QuotaEntity
	Set    map[string]float64
	Remove []string
}

// Apply gives the entity's quotas after the change, without touching those before it.
func (q *QuotaChange) Apply(cur map[string]float64) map[string]float64 {
	next := maps.Clone(cur)
	if next == nil {
		next = map[string]float64{}
	}
	for _, key := range q.Remove {
		delete(next, key)
	}
	maps.Copy(next, q.Set)
	return next
}

// AlterQuotas makes the changes, each entity's at most once among them. Up to 126 entities change together, more in several
// transactions. When it returns, the image shows the quotas and the subscribers have taken them in.
func (c *Client) AlterQuotas(ctx context.Context, changes []QuotaChange) error {
	for len(changes) > 0 {
		part := changes[:quotasPerTxn(changes)]
		changes = changes[len(part):]
		var rev int64
		err := c.commit(ctx, func(ctx context.Context) (err error) {
			rev, err = c.tryQuotas(ctx, part)
			return err
		})
		if err != nil {
			return err
		}
		errs := []error{nil}
		c.settle(ctx, rev, errs)
		if errs[0] != nil {
			return errs[0]
		}
	}
	return nil
}

// quotasPerTxn is how many of the changes fit one transaction: at least one.
func quotasPerTxn(changes []QuotaChange) int {
	const perQuota = 64
	size := 0
	for i := range changes {
		q := &changes[i]
		size += 3*len(q.Entity.String()) + perQuota*(1+len(q.Set))
		if i > 0 && (i == opsPerTxn || size > bytesPerTxn) {
			return i
		}
	}
	return len(changes)
}

// tryQuotas reads, changes and writes. What is as it should be already is not written: an attempt before this one did it.
func (c *Client) tryQuotas(ctx context.Context, changes []QuotaChange) (rev int64, err error) {
	keys := make([]string, len(changes))
	for i := range changes {
		keys[i] = c.keys.Quotas(changes[i].Entity)
	}
	seen, err := c.read(ctx, keys...)
	if err != nil {
		return 0, err
	}
	var cmps []clientv3.Cmp
	var ops []clientv3.Op
	for i := range changes {
		rev = max(rev, seen[i].mod)
		var cur map[string]float64
		if seen[i].value != nil {
			cur, err = meta.DecodeQuotas(seen[i].value)
			if cur, err = decoded(keys[i], cur, err); err != nil {
				return 0, err
			}
		}
		next := changes[i].Apply(cur)
		cmps = append(cmps, unchanged(keys[i], seen[i]))
		switch {
		case maps.Equal(cur, next):
		case len(next) == 0:
			ops = append(ops, clientv3.OpDelete(keys[i]))
		default:
			ops = append(ops, clientv3.OpPut(keys[i], string(meta.EncodeQuotas(next))))
		}
	}
	if len(ops) == 0 {
		return rev, nil
	}
	resp, err := c.txn(ctx, cmps, ops)
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return 0, errAgain
	}
	return resp.Header.GetRevision(), nil
}
