package broker

import (
	"net/netip"
	"slices"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/protocol"
)

// apis is the whole table of what this broker serves; ApiVersions is made from it.
func (b *Broker) apis() []protocol.API {
	return slices.Concat(b.records.APIs(), b.admin.APIs(), b.groups.APIs(), b.txns.APIs())
}

// features are those that clients and tools look at. metadata.version stands for
// what Apache Kafka 4.3 can do; there is nothing here that depends on its level.
func (b *Broker) features() protocol.Features {
	const metadata, lowest, level = "metadata.version", 7, 30
	// Consumer groups by heartbeat are there from level 1 on.
	const groups, groupsLevel = "group.version", 1
	// Producers whose epoch is raised by each transaction are there from level 2 on.
	const transactions, transactionsLevel = "transaction.version", 2
	return protocol.Features{
		Supported: []protocol.SupportedFeature{
			{Name: metadata, Min: lowest, Max: level},
			{Name: groups, Max: groupsLevel},
			{Name: transactions, Max: transactionsLevel},
		},
		Finalized: []protocol.FinalizedFeature{
			{Name: metadata, Level: level},
			{Name: groups, Level: groupsLevel},
			{Name: transactions, Level: transactionsLevel},
		},
		Epoch: b.metadata.Image().Revision(),
	}
}

// limits are the bounds on connections at this moment.
func (b *Broker) limits() protocol.Limits {
	v := b.live.Values()
	l := protocol.Limits{
		IdleTimeout:         v.ConnectionIdle,
		MaxConnections:      v.MaxConnections,
		MaxConnectionsPerIP: v.MaxConnectionsPerIP,
		CreationRate:        v.MaxConnectionRate,
		PerIP:               map[netip.Addr]int{},
		Listeners:           map[string]protocol.ListenerLimits{},
	}
	for name, of := range v.Listeners {
		l.Listeners[name] = protocol.ListenerLimits{MaxConnections: of.MaxConnections, CreationRate: of.ConnectionRate}
	}
	for host, n := range v.MaxConnectionsOverrides {
		if ip, err := netip.ParseAddr(host); err == nil {
			l.PerIP[ip] = n
		}
	}
	return l
}

func (b *Broker) limitsChanged(*config.Values) { b.server.SetLimits(b.limits()) }

// notifyOnChange makes a change of settings wake a goroutine.
func notifyOnChange(c chan<- struct{}) func(*config.Values) {
	return func(*config.Values) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
