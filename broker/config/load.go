package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Options are given to Load.
type Options struct {
	Sources []Source // The weakest first: file, environment, overrides.
	Lenient bool     // Ignore what is not known, as Kafka does.
	// Hostname is what clients are told where a listener listens on all
	// interfaces and advertised.listeners says nothing; "" refuses that.
	Hostname string
}

// Load merges the sources over the defaults and checks all of it. The error
// joins one line for each thing that is wrong.
func Load(o Options) (*Static, error) {
	l := loader{lenient: o.Lenient, set: map[string]string{}, at: map[string]string{}, extra: map[string]string{}}
	for _, s := range o.Sources {
		l.take(s)
	}
	l.rename()
	st := &Static{set: l.set, extra: l.extra, values: map[string]value{}}
	for name, raw := range l.set {
		v, err := BrokerDef(name).parse(raw)
		if err != nil {
			l.fail(fmt.Errorf("%s: %w", l.at[name], err))
			continue
		}
		st.values[name] = v
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	l.identity(st)
	l.kraft(st)
	l.directory(st)
	l.listeners(st, o.Hostname)
	for _, err := range crossChecks(st.lookup) {
		l.fail(err)
	}
	st.notices = l.notices
	return st, l.err()
}

// loader collects settings and complaints.
type loader struct {
	lenient bool
	set     map[string]string // Known settings, the strongest source's.
	at      map[string]string // Where each stands.
	extra   map[string]string // listener.name.… and, when lenient, unknown ones.
	notices []string
	errs    []error
}

func (l *loader) fail(err error) { l.errs = append(l.errs, err) }

func (l *loader) note(format string, args ...any) {
	l.notices = append(l.notices, fmt.Sprintf(format, args...))
}

func (l *loader) err() error {
	slices.SortFunc(l.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(l.errs...)
}

// take adds a source over the earlier ones.
func (l *loader) take(s Source) {
	var ignored []string
	for _, key := range s.keys() {
		v := s.entries[key]
		switch {
		case BrokerDef(key) != nil:
			l.set[key], l.at[key] = v, s.where(key)
		case listenerBase(key) != nil:
			l.extra[key] = v
			if _, err := listenerBase(key).parse(v); err != nil {
				l.fail(fmt.Errorf("%s: %w", s.where(key), err))
			}
		case removed(key) != "":
			l.note("%s is ignored: %s", s.at(key), removed(key))
		case s.env:
			ignored = append(ignored, describeIgnored(key))
		case l.lenient:
			l.extra[key] = v
			l.note("%s", unknown(key, s.Name).ignored())
		default:
			l.fail(unknown(key, s.Name))
		}
	}
	if len(ignored) > 0 {
		l.note("environment variables that are no config are ignored: %s", strings.Join(ignored, ", "))
	}
}

func describeIgnored(key string) string {
	name := envName(key)
	if n := nearest(key, tables().broker.names()); n != "" && distance(key, n, 3) < 3 {
		return name + " (did you mean " + envName(n) + "?)"
	}
	return name
}

// listenerConfig is a setting for one listener, perhaps for one SASL mechanism
// of it.
var listenerConfig = regexp.MustCompile(`^listener\.name\.([^.]+)\.(.+)$`)

// listenerBase returns the broker config that a listener.name.… setting is
// about, nil when it is none.
func listenerBase(key string) *Def {
	m := listenerConfig.FindStringSubmatch(key)
	if m == nil {
		return nil
	}
	if d := BrokerDef(m[2]); d != nil {
		return d
	}
	if _, rest, ok := strings.Cut(m[2], "."); ok {
		return BrokerDef(rest)
	}
	return nil
}

// removed says why a config of older Kafka versions means nothing here, "" if
// it is none of those.
func removed(key string) string {
	switch {
	case strings.HasPrefix(key, "zookeeper."):
		return "there is no ZooKeeper, metadata is in etcd"
	case slices.Contains(removedKeys, key), strings.HasPrefix(key, "password.encoder."):
		return "Kafka 4 has it no more"
	}
	return ""
}

var removedKeys = []string{
	"advertised.host.name", "advertised.port", "auto.include.jmx.reporter", "broker.id.generation.enable",
	"control.plane.listener.name", "delegation.token.master.key", "early.start.listeners.enable",
	"group.coordinator.new.enable", "host.name", "inter.broker.protocol.version",
	"log.cleaner.enable.backoff", "log.message.downconversion.enable", "log.message.format.version",
	"log.message.timestamp.difference.max.ms", "offsets.commit.required.acks", "port",
	"reserved.broker.max.id", "sasl.server.max.receive.size.enable",
}

// rename gives node.id and broker.id one value, as Kafka does.
func (l *loader) rename() {
	for _, pair := range [][2]string{{"node.id", "broker.id"}, {"broker.id", "node.id"}} {
		v, ok := l.set[pair[0]]
		if _, also := l.set[pair[1]]; ok && !also {
			l.set[pair[1]], l.at[pair[1]] = v, l.at[pair[0]]
		}
	}
}

func (l *loader) identity(st *Static) {
	node, broker := st.values["node.id"], st.values["broker.id"]
	if node.num != broker.num {
		l.fail(fmt.Errorf("node.id=%s and broker.id=%s differ: remove broker.id, it is the older name of node.id", node.text, broker.text))
	}
	if _, ok := st.set["node.id"]; !ok {
		st.values["node.id"] = value{text: "1", num: 1} // Kafka has no default to show.
	}
	st.nodeID = int32(st.lookup("node.id").num)
}

// kraft says what becomes of the settings of a KRaft quorum.
func (l *loader) kraft(st *Static) {
	var names []string
	for name := range st.set {
		if strings.HasPrefix(name, "controller.quorum.") && !strings.Contains(name, "quota") ||
			strings.HasPrefix(name, "metadata.") || name == "process.roles" || name == "controller.listener.names" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		l.note("settings of a KRaft quorum are ignored, metadata is in etcd: %s", strings.Join(names, ", "))
	}
	roles := st.lookup("process.roles").list
	if len(roles) > 0 && !slices.Contains(roles, "broker") {
		l.fail(fmt.Errorf("process.roles=%s: Mainstem has no process that is a controller only; start brokers alone", strings.Join(roles, ",")))
	}
}

// directory finds the one data directory.
func (l *loader) directory(st *Static) {
	dirs := st.lookup("log.dirs").list
	name := "log.dirs"
	if len(dirs) == 0 {
		name, dirs = "log.dir", st.lookup("log.dir").list
	}
	if len(dirs) == 0 {
		l.fail(errors.New("log.dirs names no directory: give one, such as log.dirs=/var/lib/mainstem"))
		return
	}
	st.logDir = dirs[0]
	if len(dirs) == 1 {
		return
	}
	if !l.lenient {
		l.fail(fmt.Errorf("%s names %d directories: Mainstem uses one; join the disks, or keep only %s", name, len(dirs), dirs[0]))
		return
	}
	l.note("%s names %d directories: only %s is used", name, len(dirs), dirs[0])
}

func (l *loader) listeners(st *Static, hostname string) {
	if _, ok := st.set["inter.broker.listener.name"]; ok {
		if _, also := st.set["security.inter.broker.protocol"]; also {
			l.fail(errors.New("inter.broker.listener.name and security.inter.broker.protocol are both set: keep the first"))
		}
	}
	protocols := st.lookup("listener.security.protocol.map").text
	r, err := resolveListeners(listenerInput{
		listeners: st.lookup("listeners").text, advertised: st.lookup("advertised.listeners").text,
		protocols: protocols, controllers: st.lookup("controller.listener.names").list,
		interBroker: st.lookup("inter.broker.listener.name").text, hostname: hostname,
	})
	if err != nil {
		l.fail(err)
		return
	}
	st.listeners, st.interBroker = r.listeners, r.interBroker
	l.notices = append(l.notices, r.notices...)
}
