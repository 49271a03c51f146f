package admin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap/zapcore"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
)

const (
	topicType  = kmsg.ConfigResourceTypeTopic
	brokerType = kmsg.ConfigResourceTypeBroker
	loggerType = kmsg.ConfigResourceTypeBrokerLogger
	groupType  = kmsg.ConfigResourceTypeGroupConfig
	clientType = kmsg.ConfigResourceTypeClientMetrics
)

// describeRow asks for all configs of a resource.
func (w *world) describeRow(t kmsg.ConfigResourceType, name string, keys ...string) kmsg.DescribeConfigsResponseResource {
	w.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms, req.IncludeDocumentation = 4, true, true
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = t, name, keys
	req.Resources = append(req.Resources, r)
	return w.ask(req).(*kmsg.DescribeConfigsResponse).Resources[0]
}

func (w *world) configsOf(t kmsg.ConfigResourceType, name string) map[string]config.Entry {
	w.t.Helper()
	row := w.describeRow(t, name)
	require.Zero(w.t, row.ErrorCode)
	m := map[string]config.Entry{}
	for _, e := range row.Configs {
		m[e.Name] = e
	}
	return m
}

// alter sends changes such as "retention.ms=5", "-retention.ms",
// "cleanup.policy+=compact", "cleanup.policy-=compact".
func (w *world) alter(t kmsg.ConfigResourceType, name string, changes ...string) (int16, string) {
	w.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = t, name
	for _, c := range changes {
		e := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		key, v, set := strings.Cut(c, "=")
		e.Name, e.Value = key, &v
		switch {
		case !set:
			e.Name, e.Op, e.Value = key[1:], kmsg.IncrementalAlterConfigOpDelete, nil
		case strings.HasSuffix(key, "+"):
			e.Name, e.Op = key[:len(key)-1], kmsg.IncrementalAlterConfigOpAppend
		case strings.HasSuffix(key, "-"):
			e.Name, e.Op = key[:len(key)-1], kmsg.IncrementalAlterConfigOpSubtract
		}
		r.Configs = append(r.Configs, e)
	}
	req.Resources = append(req.Resources, r)
	row := w.ask(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
	if row.ErrorMessage == nil {
		return row.ErrorCode, ""
	}
	return row.ErrorCode, *row.ErrorMessage
}

func (w *world) mustAlter(t kmsg.ConfigResourceType, name string, changes ...string) {
	w.t.Helper()
	code, text := w.alter(t, name, changes...)
	require.Zero(w.t, code, text)
}

func TestIncrementalChangesTouchOnlyWhatTheyName(t *testing.T) {
	w := newWorld(t, "")
	require.Zero(t, w.codes(createRequest(newTopicSpec{"t", 1, 1, map[string]string{"cleanup.policy": "compact", "retention.ms": "1000"}}))["t"])
	w.mustAlter(topicType, "t", "segment.bytes=2000000")
	got := w.configsOf(topicType, "t")
	assert.Equal(t, "compact", *got["cleanup.policy"].Value)
	assert.Equal(t, "1000", *got["retention.ms"].Value)
	w.mustAlter(topicType, "t", "cleanup.policy+=delete")
	assert.Equal(t, "compact,delete", *w.configsOf(topicType, "t")["cleanup.policy"].Value)
	w.mustAlter(topicType, "t", "cleanup.policy-=compact,delete")
	assert.Empty(t, *w.configsOf(topicType, "t")["cleanup.policy"].Value, "an empty list is legal")
	w.mustAlter(topicType, "t", "-cleanup.policy")
	assert.Equal(t, kmsg.ConfigSourceDefaultConfig, w.configsOf(topicType, "t")["cleanup.policy"].Source)

	// The older request replaces the whole set.
	req := kmsg.NewPtrAlterConfigsRequest()
	r := kmsg.NewAlterConfigsRequestResource()
	v := "2000"
	r.ResourceType, r.ResourceName = topicType, "t"
	r.Configs = []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: &v}}
	req.Resources = append(req.Resources, r)
	require.Zero(t, w.ask(req).(*kmsg.AlterConfigsResponse).Resources[0].ErrorCode)
	assert.Equal(t, map[string]string{"retention.ms": "2000"}, w.store.Image().Topic("t").Configs)
}

func TestABadValueRefusesItsResourceOnly(t *testing.T) {
	w := newWorld(t, "")
	w.create(1, "t")
	for _, c := range []struct {
		change string
		code   int16
	}{
		{"cleanup.policy=compactt", 40},
		{"compression.type=SNAPPY", 40},
		{"min.insync.replicas=0", 40},
		{"retention.ms=", 40},
		{"retention.ms= ", 40},
		{"retention.ms=1e3", 40},
		{"retention.ms=9223372036854775808", 40},
		{"retention.ms=-2", 40},
		{"retention.ms=NaN", 40},
		{"no.such=1", 40},
		{"retention.ms+=1", 40},
		{"leader.replication.throttled.replicas=" + strings.Repeat("x", 30_000), 40},
		{"retention.ms=+5", 0},
		{"retention.ms= 7 ", 0},
		{"preallocate=TRUE", 0},
		{"cleanup.policy= ", 0},
	} {
		code, text := w.alter(topicType, "t", "flush.ms=9", c.change)
		assert.Equal(t, c.code, code, c.change)
		assert.Equal(t, code == 0, text == "", c.change)
		assert.Less(t, len(text), 1000)
		_, changed := w.store.Image().Topic("t").Configs["flush.ms"]
		assert.Equal(t, code == 0, changed, "all or nothing: %s", c.change)
		w.mustAlter(topicType, "t", "-flush.ms")
	}
}

func TestBrokerConfigsTakeEffectAtOnce(t *testing.T) {
	w := newWorld(t, "log.retention.hours=1")
	w.create(1, "t")
	w.mustAlter(brokerType, "", "log.retention.ms=5000")
	assert.Equal(t, "5000", *w.configsOf(topicType, "t")["retention.ms"].Value)
	assert.Equal(t, kmsg.ConfigSourceDynamicDefaultBrokerConfig, w.configsOf(topicType, "t")["retention.ms"].Source)
	w.mustAlter(brokerType, "1", "log.retention.ms=6000")
	assert.Equal(t, int64(6000), w.live.Topic(nil).RetentionMs)
	assert.Equal(t, kmsg.ConfigSourceDynamicBrokerConfig, w.configsOf(brokerType, "1")["log.retention.ms"].Source)
	assert.Equal(t, "5000", *w.configsOf(brokerType, "")["log.retention.ms"].Value, "the cluster's is what it was")
	w.mustAlter(brokerType, "1", "-log.retention.ms")
	w.mustAlter(brokerType, "", "-log.retention.ms")
	assert.Equal(t, int64(3600_000), w.live.Topic(nil).RetentionMs)

	w.mustAlter(brokerType, "", "min.insync.replicas=2")
	assert.Equal(t, 2, w.live.Topic(nil).MinInsyncReplicas)
	w.mustAlter(brokerType, "1", "my.note=1", "leader.replication.throttled.rate=5")
	w.mustAlter(brokerType, "1", "mainstem.durability=async")
	assert.Equal(t, config.Async, w.live.Values().Durability)
}

func TestBrokerChangesAreRefusedAsByKafka(t *testing.T) {
	w := newWorld(t, "")
	for _, c := range []struct {
		name, change string
		code         int16
	}{
		{"1", "num.partitions=3", 42},
		{"1", "log.retention.ms=abc", 42},
		{"99", "log.retention.ms=1", 42},
		{"abc", "log.retention.ms=1", 42},
		{"1", "min.insync.replicas=1", 40},
		{"", "-min.insync.replicas", 40},
		{"1", "log.cleaner.threads=3", 42},
		{"1", "num.io.threads=17", 42},
		{"1", "num.io.threads=3", 42},
		{"", "listeners=PLAINTEXT://:1", 42},
		{"1", "num.io.threads+=3", 40},
	} {
		code, _ := w.alter(brokerType, c.name, c.change)
		assert.Equal(t, c.code, code, c.change)
	}
}

func TestTheLogLevelChangesAtOnce(t *testing.T) {
	w := newWorld(t, "")
	assert.Equal(t, "WARN", *w.configsOf(loggerType, "1")["root"].Value)
	w.mustAlter(loggerType, "1", "root=debug")
	assert.Equal(t, zapcore.DebugLevel, w.level.Level())
	for change, code := range map[string]int16{
		"root=LOUD": 40, "no.such=WARN": 40, "-no.such": 40, "-root": 42, "root+=WARN": 42, "root=FATAL": 0, "root=TRACE": 0,
	} {
		got, _ := w.alter(loggerType, "1", change)
		assert.Equal(t, code, got, change)
	}
	for _, name := range []string{"", "2"} {
		got, _ := w.alter(loggerType, name, "root=INFO")
		assert.Equal(t, int16(42), got)
	}
}

func TestGroupsAndSubscriptionsKeepTheirSettings(t *testing.T) {
	w := newWorld(t, "")
	w.mustAlter(groupType, "g", "consumer.session.timeout.ms=50000")
	got := w.configsOf(groupType, "g")
	assert.Equal(t, "50000", *got["consumer.session.timeout.ms"].Value)
	assert.Equal(t, kmsg.ConfigSourceGroupConfig, got["consumer.session.timeout.ms"].Source)
	w.mustAlter(clientType, "sub", "interval.ms=60000", "match=client_id=a")
	assert.Equal(t, kmsg.ConfigSourceClientMetricsConfig, w.configsOf(clientType, "sub")["interval.ms"].Source)
	for _, c := range []struct {
		kind kmsg.ConfigResourceType
		name string
		set  string
		code int16
	}{
		{groupType, "", "consumer.session.timeout.ms=50000", 42},
		{groupType, "g", "consumer.session.timeout.ms=1", 40},
		{groupType, "g", "no.such=1", 40},
		{clientType, "", "interval.ms=500", 42},
		{clientType, "s", "no.such=1", 42},
		{clientType, "s", "interval.ms=1", 40},
	} {
		code, _ := w.alter(c.kind, c.name, c.set)
		assert.Equal(t, c.code, code, c.set)
	}

	list := kmsg.NewPtrListConfigResourcesRequest()
	assert.Equal(t, []string{"16 sub"}, w.list(list))
	list.Version = 1
	w.create(1, "t")
	assert.Equal(t, []string{"32 g", "16 sub", "8 1", "4 1", "2 t"}, w.list(list))
	list.ResourceTypes = []int8{2, 32}
	assert.Equal(t, []string{"32 g", "2 t"}, w.list(list))
	w.mustAlter(clientType, "sub", "-interval.ms", "-match")
	list.ResourceTypes = []int8{16}
	assert.Empty(t, w.list(list), "without settings there is no subscription")
}

func (w *world) list(req *kmsg.ListConfigResourcesRequest) []string {
	var got []string
	for _, r := range w.ask(req).(*kmsg.ListConfigResourcesResponse).ConfigResources {
		got = append(got, formatID(int32(r.Type))+" "+r.Name)
	}
	return got
}

func TestDocumentationAndSynonymsComeWhenAsked(t *testing.T) {
	w := newWorld(t, "")
	w.create(1, "t")
	row := w.describeRow(topicType, "t", "segment.bytes")
	require.Len(t, row.Configs, 1)
	assert.NotEmpty(t, *row.Configs[0].Documentation)
	assert.NotEmpty(t, row.Configs[0].ConfigSynonyms)
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = topicType, "t"
	req.Resources = append(req.Resources, r)
	for _, e := range w.ask(req).(*kmsg.DescribeConfigsResponse).Resources[0].Configs {
		assert.Nil(t, e.Documentation)
		assert.Empty(t, e.ConfigSynonyms)
	}
}

func TestACordonedDirectoryTakesNoNewPartitions(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.mustAlter(brokerType, "1", "cordoned.log.dirs=*")
	w.create(4, "t")
	for _, p := range w.store.Image().Topic("t").Partitions {
		assert.Equal(t, []int32{2}, p.Replicas)
	}
	assert.Equal(t, int16(38), w.codes(createRequest(newTopicSpec{"u", 1, 2, nil}))["u"])
	dirs := kmsg.NewPtrDescribeLogDirsRequest()
	dirs.Version = 5
	assert.True(t, w.ask(dirs).(*kmsg.DescribeLogDirsResponse).Dirs[0].IsCordoned)
}

func TestConfigsOfADeletedTopicAreGone(t *testing.T) {
	w := newWorld(t, "")
	require.Zero(t, w.codes(createRequest(newTopicSpec{"t", 1, 1, map[string]string{"retention.ms": "5"}}))["t"])
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TopicNames = 5, []string{"t"}
	w.ask(req)
	assert.Equal(t, int16(3), w.describeRow(topicType, "t").ErrorCode)
	w.create(1, "t")
	assert.Empty(t, w.store.Image().Topic("t").Configs)
}

func TestTheLogSaysWhatChangedWithoutSecrets(t *testing.T) {
	before := map[string]string{"log.retention.ms": "1", "message.max.bytes": "2", "gone": "x"}
	after := map[string]string{"log.retention.ms": "1", "message.max.bytes": "3", "sasl.jaas.config": "secret", "my.note": "secret"}
	assert.Equal(t, []string{"message.max.bytes=3", "my.note=[hidden]", "sasl.jaas.config=[hidden]", "-gone"},
		differences(meta.ResourceBroker, before, after))
}
