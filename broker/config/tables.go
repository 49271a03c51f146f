package config

import (
	"slices"
	"sync"
)

// defs are the configs of one kind of resource.
type defs struct {
	byName map[string]*Def
	sorted []*Def // Without the hidden ones.
}

func (t *defs) add(rows []row, hidden bool) {
	for _, r := range rows {
		d := r.build()
		d.Hidden = hidden
		t.byName[d.Name] = d
		if !hidden {
			t.sorted = append(t.sorted, d)
		}
	}
}

func (t *defs) finish() {
	slices.SortFunc(t.sorted, func(a, b *Def) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

func (t *defs) names() []string {
	names := make([]string, 0, len(t.byName))
	for name := range t.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tables is built on first use and never changes.
type allTables struct {
	broker, topic, group, clientMetrics defs
}

var tables = sync.OnceValue(func() *allTables {
	t := &allTables{}
	for _, d := range []*defs{&t.broker, &t.topic, &t.group, &t.clientMetrics} {
		d.byName = map[string]*Def{}
	}
	for _, rows := range [][]row{
		topicsRows, logRows, networkRows, clusterRows, groupsRows, transactionsRows, remoteRows, securityRows, ownRows,
	} {
		t.broker.add(rows, false)
	}
	t.broker.add(hiddenRows, true)
	t.topic.add(topicRows, false)
	t.topic.add(ownTopicRows, false)
	t.topic.add(hiddenTopicRows, true)
	t.group.add(groupRows, false)
	t.clientMetrics.add(clientMetricsRows, false)
	for _, d := range []*defs{&t.broker, &t.topic, &t.group, &t.clientMetrics} {
		d.finish()
	}
	for _, d := range t.broker.byName {
		d.Synonyms = brokerSynonyms(d.Name)
	}
	for _, d := range t.topic.byName {
		if s, ok := topicFallbacks[d.Name]; ok {
			d.Synonyms = brokerSynonyms(s)
		} else if _, ok := t.broker.byName[d.Name]; ok {
			d.Synonyms = brokerSynonyms(d.Name)
		}
	}
	for _, d := range t.group.byName {
		if _, ok := t.broker.byName["group."+d.Name]; ok {
			d.Synonyms = []string{"group." + d.Name}
		}
	}
	return t
})

// BrokerDef returns a broker config, nil when there is none of that name.
func BrokerDef(name string) *Def { return tables().broker.byName[name] }

// TopicDef returns a topic config, nil when there is none of that name.
func TopicDef(name string) *Def { return tables().topic.byName[name] }

// GroupDef returns a group config, nil when there is none of that name.
func GroupDef(name string) *Def { return tables().group.byName[name] }

// ClientMetricsDef returns a config of a client metrics subscription, nil when
// there is none of that name.
func ClientMetricsDef(name string) *Def { return tables().clientMetrics.byName[name] }

// BrokerDefs are all listed broker configs by name.
func BrokerDefs() []*Def { return tables().broker.sorted }

// TopicDefs are all listed topic configs by name.
func TopicDefs() []*Def { return tables().topic.sorted }

// chains are the broker configs that mean the same in different units, the
// most important first.
var chains = [][]string{
	{"log.roll.ms", "log.roll.hours"},
	{"log.roll.jitter.ms", "log.roll.jitter.hours"},
	{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
}

func brokerSynonyms(name string) []string {
	for _, c := range chains {
		if slices.Contains(c, name) {
			return c
		}
	}
	if name == "log.flush.interval.ms" {
		return []string{name, "log.flush.scheduler.interval.ms"}
	}
	return []string{name}
}

// topicFallbacks are the broker configs that give topic configs their value,
// where the names differ.
var topicFallbacks = map[string]string{
	"cleanup.policy":                  "log.cleanup.policy",
	"delete.retention.ms":             "log.cleaner.delete.retention.ms",
	"file.delete.delay.ms":            "log.segment.delete.delay.ms",
	"flush.messages":                  "log.flush.interval.messages",
	"flush.ms":                        "log.flush.interval.ms",
	"index.interval.bytes":            "log.index.interval.bytes",
	"local.retention.bytes":           "log.local.retention.bytes",
	"local.retention.ms":              "log.local.retention.ms",
	"max.compaction.lag.ms":           "log.cleaner.max.compaction.lag.ms",
	"max.message.bytes":               "message.max.bytes",
	"message.timestamp.after.max.ms":  "log.message.timestamp.after.max.ms",
	"message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
	"message.timestamp.type":          "log.message.timestamp.type",
	"min.cleanable.dirty.ratio":       "log.cleaner.min.cleanable.ratio",
	"min.compaction.lag.ms":           "log.cleaner.min.compaction.lag.ms",
	"preallocate":                     "log.preallocate",
	"retention.bytes":                 "log.retention.bytes",
	"retention.ms":                    "log.retention.ms",
	"segment.bytes":                   "log.segment.bytes",
	"segment.index.bytes":             "log.index.size.max.bytes",
	"segment.jitter.ms":               "log.roll.jitter.ms",
	"segment.ms":                      "log.roll.ms",
}
