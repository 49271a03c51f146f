package config

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Sources, as DescribeConfigs numbers them.
const (
	sourceTopic   = kmsg.ConfigSourceDynamicTopicConfig
	sourceBroker  = kmsg.ConfigSourceDynamicBrokerConfig
	sourceCluster = kmsg.ConfigSourceDynamicDefaultBrokerConfig
	sourceStatic  = kmsg.ConfigSourceStaticBrokerConfig
	sourceDefault = kmsg.ConfigSourceDefaultConfig
	sourceMetrics = kmsg.ConfigSourceClientMetricsConfig
	sourceGroup   = kmsg.ConfigSourceGroupConfig
)

// Entry is one row of DescribeConfigs.
type Entry = kmsg.DescribeConfigsResponseResourceConfig

// Synonym is one layer of a row.
type Synonym = kmsg.DescribeConfigsResponseResourceConfigConfigSynonym

// DescribeBroker lists this broker's configs: all listed ones, and whatever
// else was set.
func (l *Live) DescribeBroker() []Entry {
	s := l.current.Load()
	names := map[string]bool{}
	for _, d := range BrokerDefs() {
		names[d.Name] = true
	}
	for _, layer := range []map[string]string{s.own, s.cluster, s.static.set, s.static.extra} {
		for name := range layer {
			if d := BrokerDef(name); d == nil || !d.Hidden || d.Mode.Dynamic() {
				names[name] = true
			}
		}
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		entries = append(entries, s.brokerEntry(name))
	}
	return entries
}

// DescribeCluster lists what was set for all brokers while running.
func (l *Live) DescribeCluster() []Entry {
	s := l.current.Load()
	entries := []Entry{}
	for _, name := range slices.Sorted(maps.Keys(s.cluster)) {
		e := s.brokerEntry(name)
		e.ConfigSynonyms = slices.DeleteFunc(e.ConfigSynonyms, func(y Synonym) bool { return y.Source != sourceCluster })
		e.Source = sourceCluster
		if e.Value != nil {
			v := s.shown(name, s.cluster[name])
			e.Value = &v
		}
		entries = append(entries, e)
	}
	return entries
}

// defOf returns what is known of a broker's setting, also of one for a listener.
func defOf(name string) *Def {
	if d := BrokerDef(name); d != nil {
		return d
	}
	return listenerBase(name)
}

func (s *snapshot) brokerEntry(name string) Entry {
	d := defOf(name)
	e := kmsg.NewDescribeConfigsResponseResourceConfig()
	e.Name = name
	// What is not known may be a secret.
	e.IsSensitive = d == nil || d.Sensitive()
	e.ReadOnly = d != nil && !d.Mode.Dynamic() && !limitOfListener(d.Name)
	synonyms := []string{name}
	if d != nil {
		e.ConfigType = d.Type
		doc := d.Doc
		e.Documentation = &doc
		synonyms = d.Synonyms
		if d.Name != name {
			synonyms = []string{name, d.Name}
		}
	}
	if !e.IsSensitive {
		e.Value = s.brokerValue(name, d)
	}
	e.ConfigSynonyms = s.layers(name, synonyms, e.IsSensitive)
	e.Source = sourceDefault
	if len(e.ConfigSynonyms) > 0 {
		e.Source = e.ConfigSynonyms[0].Source
	}
	return e
}

// brokerValue is the value in effect, nil for null.
func (s *snapshot) brokerValue(name string, d *Def) *string {
	for _, layer := range []map[string]string{s.own, s.cluster, s.static.set, s.static.extra} {
		if raw, ok := layer[name]; ok {
			v := s.shown(name, raw)
			return &v
		}
	}
	if d == nil || d.Name != name {
		return nil
	}
	v := s.lookup(name).text
	if v == "" && !d.HasDefault {
		return nil
	}
	return &v
}

// shown is a raw value as it was understood.
func (s *snapshot) shown(name, raw string) string {
	d := defOf(name)
	if d == nil {
		return raw
	}
	v, complaint := d.convert(raw)
	if complaint != "" {
		return raw
	}
	return v.text
}

// layers lists where the names are set, from the strongest source down. What
// comes before the asked name itself is left out, as Kafka does: a setting in
// another unit is not shown as this one's.
func (s *snapshot) layers(name string, names []string, sensitive bool) []Synonym {
	var all []Synonym
	add := func(layer map[string]string, source kmsg.ConfigSource) {
		for _, n := range names {
			if raw, ok := layer[n]; ok {
				all = append(all, synonym(n, raw, source, sensitive))
			}
		}
	}
	add(s.own, sourceBroker)
	add(s.cluster, sourceCluster)
	add(s.static.set, sourceStatic)
	add(s.static.extra, sourceStatic)
	for _, n := range names {
		if d := BrokerDef(n); d != nil && d.HasDefault {
			all = append(all, synonym(n, d.Default, sourceDefault, sensitive))
		}
	}
	i := slices.IndexFunc(all, func(y Synonym) bool { return y.Name == name })
	if i < 0 {
		return nil
	}
	return all[i:]
}

func synonym(name, v string, source kmsg.ConfigSource, sensitive bool) Synonym {
	y := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
	y.Name, y.Source = name, source
	if !sensitive {
		y.Value = &v
	}
	return y
}

// DescribeTopic lists a topic's configs; the hidden ones only if the topic sets them.
func (l *Live) DescribeTopic(overrides map[string]string) []Entry {
	s := l.current.Load()
	entries := make([]Entry, 0, len(TopicDefs()))
	for _, d := range TopicDefs() {
		var below []Synonym
		if len(d.Synonyms) > 0 {
			base := d.Synonyms[0]
			if f, ok := topicFallbacks[d.Name]; ok {
				base = f
			}
			below = s.layers(base, d.Synonyms, false)
		}
		entries = append(entries, overlay(d, overrides, topicFallback(s, d), sourceTopic, below))
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if d := TopicDef(name); d != nil && d.Hidden {
			entries = append(entries, overlay(d, overrides, d.Default, sourceTopic, nil))
		}
	}
	return entries
}

// topicFallback is a topic config that the topic does not set.
func topicFallback(s *snapshot, d *Def) string {
	if len(d.Synonyms) == 0 {
		return d.Default
	}
	if p := s.topics.longField(d.Name); p != nil {
		return formatWhole(*p)
	}
	v := s.lookup(d.Synonyms[0])
	if v.text == "" && d.Type != listT && d.Type != stringT {
		return d.Default
	}
	return v.text
}

// overlay makes the row of a config that a resource may set for itself.
func overlay(d *Def, overrides map[string]string, fallback string, source kmsg.ConfigSource, below []Synonym) Entry {
	e := kmsg.NewDescribeConfigsResponseResourceConfig()
	e.Name, e.ConfigType = d.Name, d.Type
	doc := d.Doc
	e.Documentation = &doc
	shown := fallback
	if raw, ok := overrides[d.Name]; ok {
		shown = raw
		if v, complaint := d.convert(raw); complaint == "" {
			shown = v.text
		}
		below = append([]Synonym{synonym(d.Name, shown, source, false)}, below...)
	}
	e.Value, e.ConfigSynonyms, e.Source = &shown, below, sourceDefault
	if len(below) > 0 {
		e.Source = below[0].Source
	}
	return e
}

// DescribeGroup lists a group's configs.
func (l *Live) DescribeGroup(overrides map[string]string) []Entry {
	s := l.current.Load()
	var entries []Entry
	for _, d := range tables().group.sorted {
		fallback := groupDefault(s, d.Name).text
		below := []Synonym{synonym(d.Name, fallback, sourceDefault, false)}
		if len(d.Synonyms) > 0 {
			below = s.layers(d.Synonyms[0], d.Synonyms, false)
		}
		entries = append(entries, overlay(d, overrides, fallback, sourceGroup, below))
	}
	return entries
}

// DescribeClientMetrics lists the configs of a metrics subscription.
func DescribeClientMetrics(overrides map[string]string) []Entry {
	var entries []Entry
	for _, d := range tables().clientMetrics.sorted {
		entries = append(entries, overlay(d, overrides, d.Default, sourceMetrics, nil))
	}
	return entries
}

// CreatedTopic lists a new topic's configs, as the answer to CreateTopics
// does. Unlike in DescribeTopic a setting in another unit counts as the source.
// What Kafka does not have is listed where the topic sets it only: clients look
// each name up in a table of Kafka's.
func (l *Live) CreatedTopic(overrides map[string]string) []kmsg.CreateTopicsResponseTopicConfig {
	s := l.current.Load()
	rows := l.DescribeTopic(overrides)
	configs := make([]kmsg.CreateTopicsResponseTopicConfig, 0, len(rows))
	for _, e := range rows {
		d := TopicDef(e.Name)
		if d.Name == DurabilityName && e.Source != sourceTopic {
			continue
		}
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.Source = e.Name, e.Value, int8(e.Source)
		if e.Source != sourceTopic {
			c.Source = int8(s.strongest(d.Synonyms))
		}
		configs = append(configs, c)
	}
	return configs
}

// strongest is the source that decides among names of one meaning.
func (s *snapshot) strongest(names []string) kmsg.ConfigSource {
	for _, n := range names {
		switch {
		case has(s.own, n):
			return sourceBroker
		case has(s.cluster, n):
			return sourceCluster
		case has(s.static.set, n):
			return sourceStatic
		}
	}
	return sourceDefault
}

func has(layer map[string]string, name string) bool { _, ok := layer[name]; return ok }
