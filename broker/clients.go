package broker

import (
	"context"
	"errors"

	"github.com/mainstem/mainstem/broker/clients"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/replica"
)

// errStarting says that there is nothing to show yet.
var errStarting = errors.New("the broker is starting")

// listClients is who is connected to this broker, and what they do here.
func (b *Broker) listClients(ctx context.Context) (any, error) {
	if metrics.Phase(b.phase.Load()) != metrics.Running {
		return nil, errStarting
	}
	return b.clients.List(ctx, clients.Options{
		Members: b.groups.Members,
		End: func(topic string, partition int32) (int64, bool) {
			p, err := replica.Find(b.replicas.Topic(topic), partition)
			if err != nil {
				return 0, false
			}
			return p.HighWatermark(), true
		},
	})
}
