package config

import (
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The tables in testdata were read off a running Apache Kafka 4.3.1.

// facts reads one of them.
func facts(t *testing.T, file string) []map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[head[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// machine are configs whose values belong to the machine that was asked, or
// whose defaults are ours on purpose.
var machine = []string{
	"advertised.listeners", // Example.
	"listeners",            // Ours is the loopback address, since there is no access control yet.
	"log.dir",              // Ours is below the working directory.
	"log.dirs",
}

func typeByName(name string) kmsg.ConfigType {
	for typ := kmsg.ConfigType(0); typ < 20; typ++ {
		if typ.String() == name {
			return typ
		}
	}
	return 0
}

// defaultFact is the value of the row's default layer: the last synonym with
// source 5, or the value itself when that came from there.
func defaultFact(row map[string]string) (v string, null bool) {
	for _, s := range strings.Split(row["synonyms(name=value[source])"], "; ") {
		if v, ok := strings.CutSuffix(s, "[5]"); ok {
			_, v, _ = strings.Cut(v, "=")
			return strings.Replace(v, "(empty)", "", 1), false
		}
	}
	if row["source"] == "5" && row["value"] != "(null)" {
		return strings.Replace(row["value"], "(empty)", "", 1), false
	}
	return "", true
}

func TestBrokerTableIsKafkas(t *testing.T) {
	rows := facts(t, "broker-configs.tsv")
	require.Len(t, rows, 340)
	own := map[string]bool{}
	for _, r := range ownRows {
		own[r.name] = true
	}
	known := 0
	for _, d := range BrokerDefs() {
		if !own[d.Name] {
			known++
		}
	}
	assert.Equal(t, len(rows), known, "no names besides Kafka's and ours")
	for _, row := range rows {
		name := row["name"]
		d := BrokerDef(name)
		require.NotNil(t, d, name)
		assert.Equal(t, typeByName(row["type"]), d.Type, name)
		assert.Equal(t, row["sensitive"] == "yes", d.Sensitive(), name)
		assert.Equal(t, row["read_only"] == "yes", !d.Mode.Dynamic(), name)
		assert.NotEmpty(t, d.Doc, name)
		mode := map[string]Mode{"no": ReadOnly, "cluster,broker": ClusterWide, "broker": PerBroker, "cluster": ClusterOnly}[row["dynamic"]]
		if mode == ReadOnly && row["read_only"] == "no" {
			mode = PerListener
		}
		assert.Equal(t, mode, d.Mode, name)
		if contains(machine, name) {
			continue
		}
		want, null := defaultFact(row)
		assert.Equal(t, null, !d.HasDefault, name)
		assert.Equal(t, want, d.Default, name)
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func TestBrokerConfigsChangeWhereKafkaLetsThem(t *testing.T) {
	l := live(t, "listeners=PLAINTEXT://127.0.0.1:28192,CONTROLLER://127.0.0.1:29192\n"+
		"advertised.listeners=PLAINTEXT://127.0.0.1:28192\nlistener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n")
	for _, row := range facts(t, "broker-configs.tsv") {
		set := map[string]string{row["name"]: row["tried_value"]}
		assert.Equal(t, row["code_cluster_wide"] == "0", l.ValidateBroker(AllBrokers, set) == nil, "%s for all", row["name"])
		assert.Equal(t, row["code_per_broker"] == "0", l.ValidateBroker(ThisBroker, set) == nil, "%s for one", row["name"])
	}
}

func TestBrokerBoundsAreKafkas(t *testing.T) {
	l := live(t, "")
	for _, row := range facts(t, "broker-configs.tsv") {
		if row["min"] == "" {
			continue
		}
		scope := ThisBroker
		if row["dynamic"] == "cluster" {
			scope = AllBrokers
		}
		bounds(t, row, func(v string) error { return l.ValidateBroker(scope, map[string]string{row["name"]: v}) })
	}
}

// bounds tries the smallest and the largest accepted number and their neighbours.
func bounds(t *testing.T, row map[string]string, try func(string) error) {
	t.Helper()
	one := big.NewInt(1)
	least, ok := new(big.Int).SetString(row["min"], 10)
	require.True(t, ok)
	most, ok := new(big.Int).SetString(row["max"], 10)
	require.True(t, ok)
	assert.NoError(t, try(least.String()), "%s at its least", row["name"])
	assert.NoError(t, try(most.String()), "%s at its most", row["name"])
	assert.Error(t, try(new(big.Int).Sub(least, one).String()), "%s below %s", row["name"], least)
	assert.Error(t, try(new(big.Int).Add(most, one).String()), "%s above %s", row["name"], most)
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

// candidates tries what Kafka was seen to accept and to refuse.
func candidates(t *testing.T, row map[string]string, try func(string) error) {
	t.Helper()
	for _, m := range quoted.FindAllStringSubmatch(row["accepted(validate-only)"], -1) {
		if m[1] == "NaN" {
			// Kafka takes it for a ratio and then compares with it; we refuse it.
			assert.Error(t, try(m[1]), "%s=NaN", row["name"])
			continue
		}
		assert.NoError(t, try(m[1]), "%s=%q", row["name"], m[1])
	}
	refused, _, _ := strings.Cut(row["rejected(code:{values})"], "} 42:")
	for _, m := range quoted.FindAllStringSubmatch(refused, -1) {
		assert.Error(t, try(m[1]), "%s=%q", row["name"], m[1])
	}
	if row["min"] != "" {
		bounds(t, row, try)
	}
}

func TestTopicTableIsKafkas(t *testing.T) {
	rows := facts(t, "topic-configs.tsv")
	assert.Len(t, TopicDefs(), len(rows)+len(ownTopicRows))
	l := live(t, "")
	for _, row := range rows {
		d := TopicDef(row["name"])
		require.NotNil(t, d, row["name"])
		assert.Equal(t, typeByName(row["type"]), d.Type, row["name"])
		candidates(t, row, func(v string) error { return l.ValidateTopic(map[string]string{row["name"]: v}) })
	}
}

func TestGroupTableIsKafkas(t *testing.T) {
	rows := facts(t, "group-configs.tsv")
	assert.Len(t, tables().group.sorted, len(rows))
	l := live(t, "")
	for _, row := range rows {
		require.NotNil(t, GroupDef(row["name"]), row["name"])
		candidates(t, row, func(v string) error { return l.ValidateGroup(map[string]string{row["name"]: v}) })
	}
}

func TestClientMetricsTableIsKafkas(t *testing.T) {
	rows := facts(t, "client-metrics-configs.tsv")
	assert.Len(t, tables().clientMetrics.sorted, len(rows))
	for _, row := range rows {
		require.NotNil(t, ClientMetricsDef(row["name"]), row["name"])
		candidates(t, row, func(v string) error { return ValidateClientMetrics(map[string]string{row["name"]: v}) })
	}
}

// describedAs compares one row of DescribeConfigs with the facts.
func describedAs(t *testing.T, row map[string]string, e Entry) {
	t.Helper()
	name := row["name"]
	got := "(null)"
	if e.Value != nil {
		got = *e.Value
		if got == "" {
			got = "(empty)"
		}
	}
	assert.Equal(t, row["value"], got, name)
	assert.Equal(t, row["source"], formatWhole(int64(e.Source)), name)
	assert.Equal(t, typeByName(row["type"]), e.ConfigType, name)
	assert.Equal(t, row["read_only"] == "yes", e.ReadOnly, name)
	assert.Equal(t, row["sensitive"] == "yes", e.IsSensitive, name)
	var synonyms []string
	for _, s := range e.ConfigSynonyms {
		v := "(null)"
		if s.Value != nil {
			v = *s.Value
			if v == "" {
				v = "(empty)"
			}
		}
		synonyms = append(synonyms, s.Name+"="+v+"["+formatWhole(int64(s.Source))+"]")
	}
	assert.Equal(t, row["synonyms(name=value[source])"], strings.Join(synonyms, "; "), name)
}

func byName(entries []Entry) map[string]Entry {
	m := map[string]Entry{}
	for _, e := range entries {
		m[e.Name] = e
	}
	return m
}

// asked is the configuration of the Kafka that the facts came from.
const asked = `process.roles=broker,controller
node.id=1
broker.rack=rack1
controller.quorum.voters=1@127.0.0.1:29192
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:28192,CONTROLLER://127.0.0.1:29192
advertised.listeners=PLAINTEXT://127.0.0.1:28192
log.dirs=/tmp/kafka-logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

func TestConfigsAreDescribedAsByKafka(t *testing.T) {
	l := live(t, asked)
	brokers := byName(l.DescribeBroker())
	assert.Len(t, brokers, 340+len(ownRows))
	for _, row := range facts(t, "broker-configs.tsv") {
		switch row["name"] {
		case "log.dir": // Ours is below the working directory.
			continue
		case "listeners": // Ours listens on the loopback address alone.
			row["synonyms(name=value[source])"] = strings.Replace(row["synonyms(name=value[source])"], "://:9092", "://127.0.0.1:9092", 1)
		}
		describedAs(t, row, brokers[row["name"]])
	}
	topics := byName(l.DescribeTopic(nil))
	assert.Len(t, topics, 33+len(ownTopicRows))
	for _, row := range facts(t, "topic-configs.tsv") {
		describedAs(t, row, topics[row["name"]])
	}
	groups := byName(l.DescribeGroup(nil))
	for _, row := range facts(t, "group-configs.tsv") {
		describedAs(t, row, groups[row["name"]])
	}
	metrics := byName(DescribeClientMetrics(nil))
	for _, row := range facts(t, "client-metrics-configs.tsv") {
		describedAs(t, row, metrics[row["name"]])
	}
	cluster := l.DescribeCluster()
	require.Len(t, cluster, 1)
	assert.Equal(t, "min.insync.replicas", cluster[0].Name)
	assert.Len(t, cluster[0].ConfigSynonyms, 1)
}

// live loads a properties text over the defaults.
func live(t *testing.T, text string) *Live {
	t.Helper()
	s, err := load(t, text)
	require.NoError(t, err)
	return NewLive(s)
}

func load(t *testing.T, text string, overrides ...string) (*Static, error) {
	t.Helper()
	file, err := ParseFile("server.properties", []byte(text))
	require.NoError(t, err)
	over, err := ParseOverrides(overrides)
	require.NoError(t, err)
	return Load(Options{Sources: []Source{file, over}, Hostname: "myhost"})
}
