package config

import (
	"strings"
	"time"
)

// Static is what the broker was started with. It is immutable.
type Static struct {
	set    map[string]string // As written, known settings only.
	extra  map[string]string // As written: for one listener, or unknown and tolerated.
	values map[string]value  // Of set, understood.

	nodeID      int32
	logDir      string
	listeners   []Listener
	interBroker string
	notices     []string
}

// lookup returns a setting or its default.
func (s *Static) lookup(name string) value {
	if v, ok := s.values[name]; ok {
		return v
	}
	return defaultOf(name)
}

// defaultOf returns a broker config's default; null is the zero value.
func defaultOf(name string) value {
	d := BrokerDef(name)
	if d == nil {
		panic("BUG: no config is named " + name)
	}
	if !d.HasDefault {
		return value{}
	}
	v, complaint := d.convert(d.Default)
	if complaint != "" {
		panic("BUG: the default of " + name + " is not of its type")
	}
	return v
}

// Notices are lines for the start-up log: what was ignored or adapted.
func (s *Static) Notices() []string { return s.notices }

// IsSet tells whether a source named the setting.
func (s *Static) IsSet(name string) bool { _, ok := s.set[name]; return ok }

// Int returns a broker config by name, its default when it was not set. It
// panics on a name that is no config.
func (s *Static) Int(name string) int { return int(s.lookup(name).num) }

// Int64 is Int for longs.
func (s *Static) Int64(name string) int64 { return s.lookup(name).num }

// Bool is Int for booleans.
func (s *Static) Bool(name string) bool { return s.lookup(name).num != 0 }

// Float is Int for doubles.
func (s *Static) Float(name string) float64 { return s.lookup(name).real }

// String is Int for strings; null reads as "".
func (s *Static) String(name string) string { return s.lookup(name).text }

// List is Int for lists; elements are trimmed, empty means none.
func (s *Static) List(name string) []string { return s.lookup(name).list }

// Millis is Int for a time in milliseconds.
func (s *Static) Millis(name string) time.Duration { return millis(s.lookup(name).num) }

// millis converts without overflow: what is longer than a Duration holds is
// the longest Duration.
func millis(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

// SessionTimeout is broker.session.timeout.ms as a lease can have it: in whole
// seconds, at least two.
func (s *Static) SessionTimeout() time.Duration {
	t := s.Millis("broker.session.timeout.ms")
	return max(2*time.Second, (t + time.Second - 1).Truncate(time.Second))
}

// Listeners returns the broker's listeners, without a controller's.
func (s *Static) Listeners() []Listener { return s.listeners }

// InterBrokerListener is the name of the listener that brokers use among themselves.
func (s *Static) InterBrokerListener() string { return s.interBroker }

// NodeID is node.id, or broker.id where only that was set; 1 by default.
func (s *Static) NodeID() int32 { return s.nodeID }

// LogDir is the one data directory.
func (s *Static) LogDir() string { return s.logDir }

// Etcd says which etcd to use.
type Etcd struct {
	Endpoints                             []string // None means the embedded one.
	Prefix, User, Password                string
	TLS                                   bool // An etcd.tls.* setting is there, or an endpoint is https.
	CAFile, CertFile, KeyFile, ServerName string
}

// Etcd returns the settings of the metadata store.
func (s *Static) Etcd() Etcd {
	e := Etcd{
		Endpoints: s.List("etcd.endpoints"), Prefix: s.String("etcd.prefix"),
		User: s.String("etcd.user"), Password: s.String("etcd.password"),
		CAFile: s.String("etcd.tls.ca"), CertFile: s.String("etcd.tls.cert"),
		KeyFile: s.String("etcd.tls.key"), ServerName: s.String("etcd.tls.server.name"),
	}
	e.TLS = e.CAFile != "" || e.CertFile != "" || e.KeyFile != "" || e.ServerName != ""
	for _, ep := range e.Endpoints {
		e.TLS = e.TLS || strings.HasPrefix(ep, "https://")
	}
	return e
}
