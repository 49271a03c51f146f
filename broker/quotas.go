package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/protocol"
)

func newQuotas(c *config.Static) *quota.Manager {
	window := func(prefix string) quota.Window {
		return quota.Window{
			Samples: c.Int(prefix + "quota.window.num"),
			Length:  time.Duration(c.Int(prefix+"quota.window.size.seconds")) * time.Second,
		}
	}
	return quota.New(quota.Options{Clients: window(""), Mutations: window("controller.")})
}

// clientQuotas are the quotas that the server itself holds clients to.
func (b *Broker) clientQuotas() protocol.Quotas {
	return protocol.Quotas{
		Timed: func() bool { return b.quotas.Bounds(quota.Request) },
		Took: func(c *protocol.Call, took time.Duration) time.Duration {
			if c.Key == int16(kmsg.WriteTxnMarkers) {
				return 0 // What brokers ask of each other is free.
			}
			return b.quotas.ChargeTime(quota.ClientOf(c.Conn.Principal, c.ClientID), took)
		},
		Connection: b.quotas.Connection,
	}
}

// quotaFigures are those of some clients with quotas.
func (b *Broker) quotaFigures(most int) []metrics.Quota {
	var out []metrics.Quota
	for _, f := range b.quotas.Figures(most) {
		out = append(out, metrics.Quota(f))
	}
	return out
}
