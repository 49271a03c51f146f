package config

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Values are the broker configs that hot paths read: plain fields of an
// immutable snapshot, without a look-up by name.
type Values struct {
	MessageMaxBytes          int
	FetchMaxBytes            int
	FetchSessionSlots        int // max.incremental.fetch.session.cache.slots.
	RequestMaxBytes          int // socket.request.max.bytes.
	RequestPartitionLimit    int // max.request.partition.size.limit.
	NumPartitions            int
	DefaultReplicationFactor int
	AutoCreateTopics         bool
	DeleteTopics             bool
	RetentionCheck           time.Duration
	ProducerIDExpiration     time.Duration
	ReplicaLagTimeMax        time.Duration
	MaxConnections           int
	MaxConnectionsPerIP      int
	// MaxConnectionsOverrides has other limits for single addresses; it is not to be changed.
	MaxConnectionsOverrides map[string]int
	MaxConnectionRate       int // max.connection.creation.rate, a second.
	// Listeners are bounds of single listeners, by name; they hold besides the
	// ones above. The map is not to be changed.
	Listeners         map[string]ListenerLimits
	ConnectionIdle    time.Duration // Below zero: never.
	MetricsTopicLimit int
	Durability        Durability
}

// ListenerLimits bound the connections of one listener; zero means no bound.
type ListenerLimits struct {
	MaxConnections int // listener.name.<name>.max.connections.
	ConnectionRate int // listener.name.<name>.max.connection.creation.rate.
}

// Live is the configuration at this moment: Static, and above it what was set
// while running for all brokers and for this one. Safe for concurrent use.
type Live struct {
	static  *Static
	current atomic.Pointer[snapshot]

	mu    sync.Mutex
	hooks []hook // Guarded by mu.
}

type hook struct {
	names []string
	fn    func(*Values)
}

// snapshot is one state of Live. It is immutable.
type snapshot struct {
	static *Static
	// own and cluster are what was set while running, as it was written.
	own, cluster map[string]string
	parsed       map[string]value // Of own and cluster, the stronger.
	values       Values
	topics       Topic // A topic without settings of its own.
	generation   uint64
}

// NewLive starts with nothing but s.
func NewLive(s *Static) *Live {
	l := &Live{static: s}
	snap, _ := l.build(nil, nil)
	l.current.Store(snap)
	return l
}

// Static returns what Live was made from.
func (l *Live) Static() *Static { return l.static }

// Apply installs the configs set for all brokers and those set for this one,
// then calls the hooks of what changed. What this version does not accept is
// left out and returned, for the log; the rest takes effect.
func (l *Live) Apply(cluster, own map[string]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.current.Load()
	after, errs := l.build(cluster, own)
	after.generation = before.generation
	if after.topics != before.topics {
		after.generation++
	}
	l.current.Store(after)
	for _, h := range l.hooks {
		for _, name := range h.names {
			if changed(before, after, name) {
				h.fn(&after.values)
				break
			}
		}
	}
	return errs
}

// changed compares a config, and what single listeners have of it.
func changed(before, after *snapshot, name string) bool {
	if before.lookup(name).text != after.lookup(name).text {
		return true
	}
	one := func(layer map[string]string) map[string]string {
		of := map[string]string{}
		for key, v := range layer {
			if strings.HasPrefix(key, "listener.name.") && strings.HasSuffix(key, "."+name) {
				of[key] = v
			}
		}
		return of
	}
	return !maps.Equal(one(before.own), one(after.own)) || !maps.Equal(one(before.cluster), one(after.cluster))
}

// OnChange registers fn: Apply calls it after any of names has changed, for the
// broker or for one listener. fn must not call Apply or OnChange.
func (l *Live) OnChange(fn func(*Values), names ...string) {
	for _, n := range names {
		defaultOf(n) // Panics on a wrong name now rather than never calling fn.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks = append(l.hooks, hook{names: names, fn: fn})
}

// build makes the snapshot of two dynamic layers, leaving out what is wrong.
func (l *Live) build(cluster, own map[string]string) (*snapshot, error) {
	var errs []error
	s := &snapshot{static: l.static, own: map[string]string{}, cluster: map[string]string{}}
	keep := func(from, to map[string]string, scope Scope) {
		for name, raw := range from {
			if err := checkDynamic(name, raw, scope); err != nil {
				errs = append(errs, fmt.Errorf("stored %w", err))
				continue
			}
			to[name] = raw
		}
	}
	keep(cluster, s.cluster, AllBrokers)
	keep(own, s.own, ThisBroker)
	// One value for the whole cluster, so that any broker may judge a produce
	// or an election: it always shows as set for all brokers, as in Kafka.
	if _, ok := s.cluster[minInsync]; !ok {
		s.cluster[minInsync] = l.static.lookup(minInsync).text
	}
	s.parse()
	for {
		dropped := false
		for _, err := range crossChecks(s.lookup) {
			var v interface{ setting() string }
			if errors.As(err, &v) && s.drop(v.setting()) {
				errs = append(errs, fmt.Errorf("stored %w", err))
				dropped = true
			}
		}
		if !dropped {
			break
		}
		s.parse()
	}
	s.values = hotValues(s.lookup)
	s.values.Listeners = s.listenerLimits()
	s.topics = topicDefaults(s.lookup)
	return s, errors.Join(errs...)
}

const minInsync = "min.insync.replicas"

func (s *snapshot) drop(name string) bool {
	_, a := s.own[name]
	_, b := s.cluster[name]
	delete(s.own, name)
	delete(s.cluster, name)
	return a || b
}

// parse understands the dynamic layers; they passed their checks.
func (s *snapshot) parse() {
	s.parsed = map[string]value{}
	for _, layer := range []map[string]string{s.cluster, s.own} {
		for name, raw := range layer {
			if d := BrokerDef(name); d != nil {
				s.parsed[name], _ = d.convert(raw)
			}
		}
	}
}

func (s *snapshot) lookup(name string) value {
	if v, ok := s.parsed[name]; ok {
		return v
	}
	return s.static.lookup(name)
}

func hotValues(get func(string) value) Values {
	overrides, _ := parseAddressLimits(get("max.connections.per.ip.overrides").text)
	return Values{
		MessageMaxBytes:          int(get("message.max.bytes").num),
		FetchMaxBytes:            int(get("fetch.max.bytes").num),
		FetchSessionSlots:        int(get("max.incremental.fetch.session.cache.slots").num),
		RequestMaxBytes:          int(get("socket.request.max.bytes").num),
		RequestPartitionLimit:    int(get("max.request.partition.size.limit").num),
		NumPartitions:            int(get("num.partitions").num),
		DefaultReplicationFactor: int(get("default.replication.factor").num),
		AutoCreateTopics:         get("auto.create.topics.enable").num != 0,
		DeleteTopics:             get("delete.topic.enable").num != 0,
		RetentionCheck:           millis(get("log.retention.check.interval.ms").num),
		ProducerIDExpiration:     millis(get("producer.id.expiration.ms").num),
		ReplicaLagTimeMax:        millis(get("replica.lag.time.max.ms").num),
		MaxConnections:           int(get("max.connections").num),
		MaxConnectionsPerIP:      int(get("max.connections.per.ip").num),
		MaxConnectionsOverrides:  overrides,
		MaxConnectionRate:        int(get("max.connection.creation.rate").num),
		ConnectionIdle:           millis(get("connections.max.idle.ms").num),
		MetricsTopicLimit:        int(get("mainstem.metrics.topic.limit").num),
		Durability:               durability(get(DurabilityName)),
	}
}

// listenerLimits are the bounds that were set for single listeners.
func (s *snapshot) listenerLimits() map[string]ListenerLimits {
	limits := map[string]ListenerLimits{}
	for _, l := range s.static.listeners {
		of := ListenerLimits{
			MaxConnections: s.ofListener(l.Name, "max.connections"),
			ConnectionRate: s.ofListener(l.Name, "max.connection.creation.rate"),
		}
		if of != (ListenerLimits{}) {
			limits[l.Name] = of
		}
	}
	return limits
}

// ofListener is a whole number that was set for one listener, 0 if none was.
func (s *snapshot) ofListener(listener, config string) int {
	key := "listener.name." + strings.ToLower(listener) + "." + config
	for _, layer := range []map[string]string{s.own, s.cluster, s.static.extra} {
		if raw, ok := layer[key]; ok {
			if v, err := BrokerDef(config).parse(raw); err == nil {
				return int(v.num)
			}
		}
	}
	return 0
}

// Values returns the present snapshot of what hot paths need.
func (l *Live) Values() *Values { return &l.current.Load().values }

// TopicGeneration changes whenever a broker config that gives topics their
// value has changed.
func (l *Live) TopicGeneration() uint64 { return l.current.Load().generation }

func (l *Live) lookup(name string) value { return l.current.Load().lookup(name) }

// Int returns a broker config at this moment. It panics on a name that is no config.
func (l *Live) Int(name string) int { return int(l.lookup(name).num) }

// Int64 is Int for longs.
func (l *Live) Int64(name string) int64 { return l.lookup(name).num }

// Bool is Int for booleans.
func (l *Live) Bool(name string) bool { return l.lookup(name).num != 0 }

// Float is Int for doubles.
func (l *Live) Float(name string) float64 { return l.lookup(name).real }

// String is Int for strings; null reads as "".
func (l *Live) String(name string) string { return l.lookup(name).text }

// List is Int for lists.
func (l *Live) List(name string) []string { return l.lookup(name).list }

// Millis is Int for a time in milliseconds.
func (l *Live) Millis(name string) time.Duration { return millis(l.lookup(name).num) }

// Listeners are the listeners with their addresses. They change with a restart only.
func (l *Live) Listeners() []Listener { return l.static.listeners }
