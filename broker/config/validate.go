package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Scope says for whom a broker config is set while running.
type Scope uint8

const (
	// AllBrokers is the broker resource with an empty name.
	AllBrokers Scope = iota
	// ThisBroker is the broker resource with this broker's id.
	ThisBroker
)

// Reasons for which a change is refused, besides a ValueError.
var (
	// ErrNotDynamic means that the config changes with a restart only. Tools look for Kafka's words.
	ErrNotDynamic = errors.New("Cannot update these configs dynamically") //nolint:staticcheck // Kafka begins it so.
	// ErrPerBroker means that the config cannot be set for all brokers at once.
	ErrPerBroker = errors.New("cannot be set for all brokers at once; name a broker")
	// ErrClusterOnly means that the config cannot be set for one broker.
	ErrClusterOnly = errors.New("is one value for the whole cluster; set it for all brokers")
	// ErrPerListener means that the config needs a listener's name before it.
	ErrPerListener = errors.New("can be changed for one listener only: put listener.name.<name>. before it")
	// ErrUnknown means that there is no config of that name.
	ErrUnknown = errors.New("unknown config")
)

// checkDynamic judges one broker config by itself. Names that are no config
// may be set: tools keep notes that way, and Kafka allows it.
func checkDynamic(name, raw string, scope Scope) error {
	d := BrokerDef(name)
	if d == nil {
		base := listenerBase(name)
		if base == nil {
			return nil
		}
		if scope == AllBrokers && !limitOfListener(base.Name) {
			return fmt.Errorf("%s %w", name, ErrPerBroker)
		}
		if base.Mode == ReadOnly && !limitOfListener(base.Name) {
			return notDynamic(name)
		}
		_, err := base.parse(raw)
		return err
	}
	switch {
	case d.Mode == ReadOnly:
		return notDynamic(name)
	case d.Mode == PerListener:
		return fmt.Errorf("%s %w", name, ErrPerListener)
	case d.Mode == PerBroker && scope == AllBrokers:
		return fmt.Errorf("%s %w", name, ErrPerBroker)
	case d.Mode == ClusterOnly && scope == ThisBroker:
		return fmt.Errorf("%s %w", name, ErrClusterOnly)
	}
	_, err := d.parse(raw)
	return err
}

func notDynamic(name string) error {
	return fmt.Errorf("%w: [%s]. Set it in server.properties and restart", ErrNotDynamic, name)
}

// limitOfListener are the configs that a listener may have of its own besides
// those of security.
func limitOfListener(name string) bool {
	return slices.Contains([]string{"max.connections", "max.connection.creation.rate", "num.network.threads"}, name)
}

// threadCounts may at most double or halve in one step.
var threadCounts = []string{
	"background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads",
	"num.recovery.threads.per.data.dir", "num.replica.fetchers",
	"remote.log.manager.copier.thread.pool.size", "remote.log.manager.expiration.thread.pool.size",
	"remote.log.manager.follower.thread.pool.size", "remote.log.reader.threads",
}

// ValidateBroker judges the whole set of configs that a broker resource would
// have after a change.
func (l *Live) ValidateBroker(scope Scope, next map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if err := checkDynamic(name, next[name], scope); err != nil {
			return err
		}
	}
	now := l.current.Load()
	trial := &snapshot{static: l.static, own: now.own, cluster: now.cluster}
	if scope == AllBrokers {
		trial.cluster = next
	} else {
		trial.own = next
	}
	trial.parse()
	for _, name := range threadCounts {
		was, is := now.lookup(name).num, trial.lookup(name).num
		if _, set := next[name]; set && (is > was*2 || is < was/2) {
			return &ValueError{Name: name, Value: next[name], Reason: fmt.Sprintf("one step may at most halve or double the present %d", was)}
		}
	}
	if err := l.sameListeners(trial); err != nil {
		return err
	}
	return errors.Join(crossChecks(trial.lookup)...)
}

// sameListeners refuses to add, move or remove a listener while running.
func (l *Live) sameListeners(trial *snapshot) error {
	r, err := resolveListeners(listenerInput{
		listeners: trial.lookup("listeners").text, advertised: trial.lookup("advertised.listeners").text,
		protocols: trial.lookup("listener.security.protocol.map").text, controllers: trial.lookup("controller.listener.names").list,
		interBroker: trial.lookup("inter.broker.listener.name").text, hostname: "localhost",
	})
	if err != nil {
		return err
	}
	same := func(a, b Listener) bool {
		return a.Name == b.Name && a.Host == b.Host && a.Port == b.Port && a.Protocol == b.Protocol
	}
	if !slices.EqualFunc(r.listeners, l.static.listeners, same) {
		return &ValueError{Name: "listeners", Value: trial.lookup("listeners").text, Reason: "listeners cannot be added, moved or removed while the broker runs"}
	}
	return nil
}

// validateAll judges each of a resource's configs by its table.
func validateAll(kind string, table *defs, next map[string]string) (map[string]value, error) {
	values := make(map[string]value, len(next))
	for _, name := range slices.Sorted(maps.Keys(next)) {
		d := table.byName[name]
		if d == nil {
			err := fmt.Errorf("%w: unknown %s config name %q", ErrUnknown, kind, name)
			if n := nearest(name, table.names()); n != "" {
				err = fmt.Errorf("%w, did you mean %s?", err, n)
			}
			return nil, err
		}
		v, err := d.parse(next[name])
		if err != nil {
			return nil, err
		}
		values[name] = v
	}
	return values, nil
}

// ValidateTopic judges the whole set of configs that a topic would have of its own.
func (l *Live) ValidateTopic(next map[string]string) error {
	if _, err := validateAll("topic", &tables().topic, next); err != nil {
		return err
	}
	t := l.Topic(next)
	if t.MinCompactionLagMs > t.MaxCompactionLagMs {
		return &ValueError{
			Name: "min.compaction.lag.ms", Value: fmt.Sprint(t.MinCompactionLagMs),
			Reason: fmt.Sprintf("must be at most max.compaction.lag.ms=%d", t.MaxCompactionLagMs),
		}
	}
	return nil
}

// ValidateGroup judges the whole set of configs that a group would have of its own.
func (l *Live) ValidateGroup(next map[string]string) error {
	values, err := validateAll("group", &tables().group, next)
	if err != nil {
		return err
	}
	snap := l.current.Load()
	get := func(name string) value {
		if v, ok := values[name]; ok {
			return v
		}
		return groupDefault(snap, name)
	}
	if errs := ranges("", get, snap.lookup); len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// groupDefault is a group config that the group does not set.
func groupDefault(s *snapshot, name string) value {
	d := GroupDef(name)
	if len(d.Synonyms) > 0 {
		return s.lookup(d.Synonyms[0])
	}
	v, _ := d.convert(d.Default)
	return v
}

// ValidateClientMetrics judges the whole set of configs of a metrics subscription.
func ValidateClientMetrics(next map[string]string) error {
	_, err := validateAll("client metrics", &tables().clientMetrics, next)
	return err
}
