package controller

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// deletesPerTxn is how many topics one transaction deletes: four operations each.
const deletesPerTxn = opsPerTxn / 4

// DeleteTopics deletes topics by id; one error (or nil) each. A tombstone stays until every broker that may hold data of a topic has
// called AckDeleted. When it returns, the image shows the deletions and the subscribers have taken them in.
func (c *Client) DeleteTopics(ctx context.Context, ids []meta.TopicID) []error {
	errs := make([]error, len(ids))
	var topics []*meta.Topic
	var index []int
	for i, id := range ids {
		t, err := c.topicByID(ctx, id)
		if err == nil && slices.Contains(ids[:i], id) {
			err = refuse(kerr.InvalidRequest, "The topic id %s is in the request twice.", meta.FormatID(id))
		}
		if err != nil {
			errs[i] = err
			continue
		}
		topics, index = append(topics, t), append(index, i)
	}
	var rev int64
	for start := 0; start < len(topics); start += deletesPerTxn {
		end := min(start+deletesPerTxn, len(topics))
		results, at := c.deleteGroup(ctx, topics[start:end])
		rev = max(rev, at)
		for i, err := range results {
			errs[index[start+i]] = err
		}
	}
	c.settle(ctx, rev, errs)
	return errs
}

// deletion is a group of topics on its way out of etcd.
type deletion struct {
	c       *Client
	topics  []*meta.Topic
	errs    []error
	pending []int // into topics: found in etcd by the last attempt
	unsure  bool  // an attempt may have been carried out
	rev     int64
}

// deleteGroup deletes topics in one transaction, but for those that are gone already.
func (c *Client) deleteGroup(ctx context.Context, topics []*meta.Topic) (errs []error, rev int64) {
	d := &deletion{c: c, topics: topics, errs: make([]error, len(topics))}
	err := c.commit(ctx, d.try)
	if err != nil && len(d.pending) == 0 { // It did not even come to reading.
		for i := range topics {
			d.pending = append(d.pending, i)
		}
	}
	for _, i := range d.pending {
		d.errs[i] = err
	}
	return d.errs, d.rev
}

func (d *deletion) try(ctx context.Context) error {
	cmps, ops, err := d.plan(ctx)
	if err != nil || len(ops) == 0 {
		return err
	}
	resp, err := d.c.txn(ctx, cmps, ops)
	if err != nil {
		d.unsure = true
		return err
	}
	if !resp.Succeeded {
		return errAgain
	}
	d.rev = max(d.rev, resp.Header.GetRevision())
	return nil
}

// plan reads what is there and works out what to do. A topic that is gone is unknown, unless an attempt before this one may have done it.
func (d *deletion) plan(ctx context.Context) (cmps []clientv3.Cmp, ops []clientv3.Op, err error) {
	d.pending = d.pending[:0]
	keys := make([]string, 0, 2*len(d.topics))
	for _, t := range d.topics {
		keys = append(keys, d.c.keys.Topic(t.Name), d.c.keys.Deleted(t.ID))
	}
	seen, err := d.c.read(ctx, keys...)
	if err != nil {
		return nil, nil, err
	}
	for i, t := range d.topics {
		topic, stone := seen[2*i], seen[2*i+1]
		_, err := d.c.sameTopic(keys[2*i], topic, t.ID)
		switch {
		case isUnreadable(err):
			return nil, nil, err
		case err != nil && stone.value != nil && d.unsure:
			d.errs[i], d.rev = nil, max(d.rev, stone.mod)
		case err != nil:
			d.errs[i] = unknownTopic(t.ID)
		default:
			d.pending = append(d.pending, i)
			cmps = append(cmps, unchanged(keys[2*i], topic))
			ops = append(ops, d.c.deletionOf(t)...)
		}
	}
	return cmps, ops, nil
}

// deletionOf takes a topic away and says so.
func (c *Client) deletionOf(t *meta.Topic) []clientv3.Op {
	stone := meta.Tombstone{ID: t.ID, Name: t.Name, Holders: c.holdersOf(t)}
	return []clientv3.Op{
		clientv3.OpDelete(c.keys.Topic(t.Name)),
		clientv3.OpDelete(c.keys.Parts(t.ID), clientv3.WithPrefix()),
		clientv3.OpDelete(c.keys.TopicConfigs(t.ID)),
		clientv3.OpPut(c.keys.Deleted(t.ID), string(meta.EncodeTombstone(stone))),
	}
}

// AckDeleted says that this broker holds no data of these deleted topics any more, durably. The last holder's word takes the
// tombstone away. What is not deleted is left alone.
func (c *Client) AckDeleted(ctx context.Context, ids []meta.TopicID) error {
	for group := range slices.Chunk(ids, opsPerTxn) {
		err := c.commit(ctx, func(ctx context.Context) error { return c.tryAck(ctx, group) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) tryAck(ctx context.Context, ids []meta.TopicID) error {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = c.keys.Deleted(id)
	}
	seen, err := c.read(ctx, keys...)
	if err != nil {
		return err
	}
	var cmps []clientv3.Cmp
	var ops []clientv3.Op
	for i, f := range seen {
		if f.value == nil || slices.Contains(keys[:i], keys[i]) {
			continue
		}
		stone, err := meta.DecodeTombstone(ids[i], f.value)
		if stone, err = decoded(keys[i], stone, err); err != nil {
			return err
		}
		left := slices.DeleteFunc(stone.Holders, func(h int32) bool { return h == c.opts.NodeID })
		cmps = append(cmps, unchanged(keys[i], f))
		if stone.Holders = left; len(left) == 0 {
			ops = append(ops, clientv3.OpDelete(keys[i]))
		} else {
			ops = append(ops, clientv3.OpPut(keys[i], string(meta.EncodeTombstone(stone))))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	resp, err := c.txn(ctx, cmps, ops)
	if err == nil && !resp.Succeeded {
		err = errAgain
	}
	return err
}
