package controller

import (
	"context"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// AlterConfigs replaces the configs of a resource by what change makes of the present ones. It may call change more than
// once. An error of change is returned as it is and nothing is written. When it returns, the image shows the new configs and
// the subscribers have taken them in.
func (c *Client) AlterConfigs(ctx context.Context, r meta.Resource, change func(cur map[string]string) (map[string]string, error)) error {
	edit := configEdit{c: c, resource: r, change: change, key: c.keys.Configs(r)}
	switch r.Type {
	case meta.ResourceBroker, meta.ResourceClientMetrics, meta.ResourceGroup:
	case meta.ResourceTopic:
		t, err := c.topicByName(ctx, r.Name)
		if err != nil {
			return err
		}
		edit.topic, edit.key = t, c.keys.TopicConfigs(t.ID)
	default:
		return refuse(kerr.InvalidRequest, "Configs of resource type %d are not stored.", r.Type)
	}
	var rev int64
	err := c.commit(ctx, func(ctx context.Context) (err error) {
		rev, err = edit.try(ctx)
		return err
	})
	if err != nil {
		return err
	}
	errs := []error{nil}
	c.settle(ctx, rev, errs)
	return errs[0]
}

// configEdit is a change of one resource's configs.
type configEdit struct {
	c        *Client
	resource meta.Resource
	key      string
	topic    *meta.Topic // nil but for a topic's configs
	change   func(map[string]string) (map[string]string, error)
	wanted   map[string]string // what an attempt has tried to write; nil before
}

// try reads, changes and writes. If the present configs are what an attempt before this one wanted, it did it.
func (e *configEdit) try(ctx context.Context) (rev int64, err error) {
	keys := []string{e.key}
	if e.topic != nil {
		keys = append(keys, e.c.keys.Topic(e.topic.Name))
	}
	seen, err := e.c.read(ctx, keys...)
	if err != nil {
		return 0, err
	}
	cmps := []clientv3.Cmp{unchanged(e.key, seen[0])}
	if e.topic != nil {
		if _, err := e.c.sameTopic(keys[1], seen[1], e.topic.ID); err != nil {
			return 0, e.unknown(err)
		}
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(keys[1]), "=", seen[1].create))
	}
	var cur map[string]string
	if seen[0].value != nil {
		cur, err = meta.DecodeConfigs(seen[0].value)
		if cur, err = decoded(e.key, cur, err); err != nil {
			return 0, err
		}
	}
	if e.wanted != nil && maps.Equal(cur, e.wanted) {
		return seen[0].mod, nil
	}
	next, err := e.change(maps.Clone(cur))
	if err != nil {
		return 0, &verdict{err}
	}
	if maps.Equal(cur, next) {
		return seen[0].mod, nil
	}
	if e.wanted = next; next == nil {
		e.wanted = map[string]string{}
	}
	value := meta.EncodeConfigs(next)
	if len(value) > bytesPerTxn {
		return 0, &verdict{refuse(kerr.InvalidConfig, "The configs of '%s' take %d bytes, which is too big to be stored; the limit is %d.",
			e.resource.Name, len(value), bytesPerTxn)}
	}
	op := clientv3.OpPut(e.key, string(value))
	if len(next) == 0 {
		op = clientv3.OpDelete(e.key)
	}
	resp, err := e.c.txn(ctx, cmps, []clientv3.Op{op})
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return 0, errAgain
	}
	return resp.Header.GetRevision(), nil
}

// unknown speaks of the topic by name, as it was asked for.
func (e *configEdit) unknown(err error) error {
	if isUnreadable(err) {
		return err
	}
	return &verdict{unknownName(e.resource.Name)}
}

func unknownName(name string) error {
	return refuse(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", name)
}

// topicByName finds a topic; when the image does not know it, the image may be behind.
func (c *Client) topicByName(ctx context.Context, name string) (*meta.Topic, error) {
	if t := c.Image().Topic(name); t != nil {
		return t, nil
	}
	if err := c.catchUp(ctx); err != nil {
		return nil, err
	}
	if t := c.Image().Topic(name); t != nil {
		return t, nil
	}
	return nil, unknownName(name)
}
