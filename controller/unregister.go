package controller

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// UnregisterBroker forgets a broker that is not alive. Its openings stay, since epochs are counted by them, and so do its configs
// and the partitions that it holds. kerr.BrokerIDNotRegistered when there is none; a living one is refused. When it
// returns, the image shows it.
func (c *Client) UnregisterBroker(ctx context.Context, id int32) error {
	tried := false
	return c.onImage(ctx, func(image *meta.Image) ([]clientv3.Cmp, []clientv3.Op, error) {
		b := image.Broker(id)
		if b == nil && tried {
			return nil, nil, nil // By an attempt whose answer was lost.
		}
		if b == nil {
			return nil, nil, refuse(kerr.BrokerIDNotRegistered, "Broker ID %d is not currently registered.", id)
		}
		if _, held := image.Live(id); held || !b.Fenced {
			return nil, nil, refuse(kerr.InvalidRequest, "Broker %d is alive; stop it first. A living broker would go on without serving anybody.", id)
		}
		tried = true
		key := c.keys.Broker(id)
		return []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(c.keys.Live(id)), "=", 0),
			clientv3.Compare(clientv3.ModRevision(key), "<", image.Revision()+1),
		}, []clientv3.Op{clientv3.OpDelete(key)}, nil
	})
}
