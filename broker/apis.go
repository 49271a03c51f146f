package broker

import (
	"net/netip"
	"slices"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// apis is the whole table of what this broker serves; ApiVersions is made from it.
func (b *Broker) apis() []protocol.API {
	return slices.Concat(b.records.APIs(), b.admin.APIs(), b.groups.APIs(), b.txns.APIs())
}

// features are those that clients and tools look at.
func (b *Broker) features() protocol.Features {
	image := b.metadata.Image()
	f := protocol.Features{Epoch: image.Revision()}
	for _, known := range meta.Features(b.config.Bool(config.UnstableFeatures)) {
		f.Supported = append(f.Supported, protocol.SupportedFeature{Name: known.Name, Min: known.Min, Max: known.Max})
		if level := image.Level(known.Name); level > 0 {
			f.Finalized = append(f.Finalized, protocol.FinalizedFeature{Name: known.Name, Level: level})
		}
	}
	return f
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
