package fieldcases

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

const (
	opSet kmsg.IncrementalAlterConfigOp = iota
	opDelete
	opAppend
	opSubtract
)

// change is one entry of an incremental change; a nil value is null.
type change struct {
	key   string
	op    kmsg.IncrementalAlterConfigOp
	value *string
}

func setting(key, value string) change { return change{key, opSet, &value} }

func changed(topic string, changes ...change) kmsg.IncrementalAlterConfigsRequestResource {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for _, ch := range changes {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Op, config.Value = ch.key, ch.op, ch.value
		r.Configs = append(r.Configs, config)
	}
	return r
}

// alter sends an incremental change and returns the answer for each resource.
func alter(c *frames.Conn, resources ...kmsg.IncrementalAlterConfigsRequestResource) []kmsg.IncrementalAlterConfigsResponseResource {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.Resources = 1, resources
	return frames.Ask[*kmsg.IncrementalAlterConfigsResponse](c, req).Resources
}

// set changes one config of a topic.
func set(t *testing.T, c *frames.Conn, topic, key, value string) {
	t.Helper()
	require.Zero(t, alter(c, changed(topic, setting(key, value)))[0].ErrorCode)
}

// config is a value and where it comes from.
type config struct {
	value  string
	source kmsg.ConfigSource
}

const (
	fromTopic   = kmsg.ConfigSourceDynamicTopicConfig
	fromDefault = kmsg.ConfigSourceDefaultConfig
)

// configsOf describes a topic.
func configsOf(t *testing.T, c *frames.Conn, topic string) map[string]config {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	req.Resources = append(req.Resources, r)
	resp := frames.Ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0]
	require.Zero(t, resp.ErrorCode)
	out := map[string]config{}
	for _, e := range resp.Configs {
		if e.Value != nil {
			out[e.Name] = config{*e.Value, e.Source}
		}
	}
	return out
}

// TestChangingOneConfigLeavesTheOthers is O-CF-1: the incremental API touches
// what it names; the old one replaces the whole set.
func TestChangingOneConfigLeavesTheOthers(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.CreateWith(1, map[string]string{"cleanup.policy": "compact", "retention.ms": "1000"}, "t", "u")
	set(t, c, "t", "segment.bytes", "2097152")
	kept := map[string]config{"cleanup.policy": {"compact", fromTopic}, "retention.ms": {"1000", fromTopic}, "segment.bytes": {"2097152", fromTopic}}
	for key, want := range kept {
		assert.Equal(t, want, configsOf(t, c, "t")[key])
	}

	old := kmsg.NewPtrAlterConfigsRequest()
	old.Version = 2
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "t"
	one := kmsg.NewAlterConfigsRequestResourceConfig()
	one.Name, one.Value = "retention.ms", kmsg.StringPtr("2000")
	r.Configs = append(r.Configs, one)
	old.Resources = append(old.Resources, r)
	require.Zero(t, frames.Ask[*kmsg.AlterConfigsResponse](c, old).Resources[0].ErrorCode)
	after := map[string]config{"cleanup.policy": {"delete", fromDefault}, "retention.ms": {"2000", fromTopic}, "segment.bytes": {"1073741824", fromDefault}}
	for key, want := range after {
		assert.Equal(t, want, configsOf(t, c, "t")[key])
	}

	added := "delete"
	require.Zero(t, alter(c, changed("u", change{"cleanup.policy", opAppend, &added}))[0].ErrorCode)
	assert.EqualValues(t, 40, alter(c, changed("u", change{"retention.ms", opAppend, &added}))[0].ErrorCode, "it is no list")
	both := config{"compact,delete", fromTopic}
	assert.Equal(t, both, configsOf(t, c, "u")["cleanup.policy"])
	restart(t, node)
	c = frames.Dial(t, node.Address)
	assert.Equal(t, both, configsOf(t, c, "u")["cleanup.policy"])
	for key, want := range after {
		assert.Equal(t, want, configsOf(t, c, "t")[key], "after a restart")
	}
	all := "compact,delete"
	require.Zero(t, alter(c, changed("u", change{"cleanup.policy", opSubtract, &all}))[0].ErrorCode)
	assert.Equal(t, config{"", fromTopic}, configsOf(t, c, "u")["cleanup.policy"], "an empty list is legal")
	require.Zero(t, alter(c, changed("u", change{"cleanup.policy", opDelete, nil}))[0].ErrorCode)
	assert.Equal(t, config{"delete", fromDefault}, configsOf(t, c, "u")["cleanup.policy"])
}

// TestBadValuesAreAnsweredOneByOne is O-CF-2: an error for the resource with a
// text that helps, nothing of its change applied, the connection open.
func TestBadValuesAreAnsweredOneByOne(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t1", "t2")
	for _, bad := range []struct {
		key, value string
		null       bool
		code       int16
	}{
		{key: "cleanup.policy", value: "compactt", code: 40},
		{key: "compression.type", value: "SNAPPY", code: 40},
		{key: "min.insync.replicas", value: "0", code: 40},
		{key: "segment.ms", value: "", code: 40},
		{key: "segment.ms", value: " ", code: 40},
		{key: "segment.ms", value: "1e3", code: 40},
		{key: "segment.ms", value: "9223372036854775808", code: 40},
		{key: "retention.ms", value: "-2", code: 40},
		{key: "segment.ms", value: "NaN", code: 40},
		{key: "min.cleanable.dirty.ratio", value: "NaN", code: 40}, // Kafka takes it.
		{key: "segment.ms", value: strings.Repeat("9", 30_000), code: 40},
		{key: "segment.ms", null: true, code: 42},
		{key: "no.such.key", value: "1", code: 40},
	} {
		ch := setting(bad.key, bad.value)
		if bad.null {
			ch.value = nil
		}
		other := "5"
		if bad.key == "retention.ms" {
			other = "" // Not twice in one resource.
		}
		first := changed("t1", ch)
		if other != "" {
			first = changed("t1", ch, setting("retention.ms", other))
		}
		answers := alter(c, first, changed("t2", setting("retention.ms", "5")))
		require.Len(t, answers, 2)
		what := bad.key + "=" + bad.value[:min(len(bad.value), 20)]
		assert.Equal(t, bad.code, answers[0].ErrorCode, what)
		if assert.NotNil(t, answers[0].ErrorMessage, what) && bad.code == 40 {
			assert.Contains(t, *answers[0].ErrorMessage, bad.key, what)
		}
		assert.Zero(t, answers[1].ErrorCode, what)
		assert.Equal(t, config{"604800000", fromDefault}, configsOf(t, c, "t1")["retention.ms"], what)
		assert.Equal(t, config{"5", fromTopic}, configsOf(t, c, "t2")["retention.ms"], what)
		require.Zero(t, alter(c, changed("t2", change{"retention.ms", opDelete, nil}))[0].ErrorCode)
	}
	message := alter(c, changed("t1", setting("compression.type", "SNAPPY")))[0].ErrorMessage
	require.NotNil(t, message)
	for _, part := range []string{"compression.type", "SNAPPY", "snappy"} {
		assert.Contains(t, *message, part, "key, value and what is allowed")
	}
	for key, value := range map[string]string{"cleanup.policy": "", "segment.ms": "+5", "flush.ms": " 7 ", "preallocate": "TRUE"} {
		assert.Zero(t, alter(c, changed("t1", setting(key, value)))[0].ErrorCode, "Kafka takes %s=%q", key, value)
	}
}

// legalValues has one value that is not the default for every topic config.
var legalValues = map[string]string{
	"cleanup.policy": "compact", "compression.gzip.level": "3", "compression.lz4.level": "3", "compression.type": "lz4",
	"compression.zstd.level": "5", "delete.retention.ms": "1", "file.delete.delay.ms": "1", "flush.messages": "7", "flush.ms": "7",
	"follower.replication.throttled.replicas": "0:1", "index.interval.bytes": "1", "leader.replication.throttled.replicas": "*",
	"local.retention.bytes": "1", "local.retention.ms": "1", "max.compaction.lag.ms": "7", "max.message.bytes": "1000",
	"message.timestamp.after.max.ms": "9", "message.timestamp.before.max.ms": "9", "message.timestamp.type": "LogAppendTime",
	"min.cleanable.dirty.ratio": "0.25", "min.compaction.lag.ms": "1", "min.insync.replicas": "2", "preallocate": "true",
	"remote.log.copy.disable": "true", "remote.log.delete.on.disable": "true", "retention.bytes": "1000000", "retention.ms": "-1",
	"segment.bytes": "1048576", "segment.index.bytes": "100", "segment.jitter.ms": "1", "segment.ms": "60000",
	"unclean.leader.election.enable": "true",
}

// TestEveryTopicConfigOfKafkaIsKnown is O-CF-3: tools set well-known configs that
// a broker may have no use for.
func TestEveryTopicConfigOfKafkaIsKnown(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	for key, value := range legalValues {
		topic := "with-" + key
		c.CreateWith(1, map[string]string{key: value}, topic)
		assert.Equal(t, config{value, fromTopic}, configsOf(t, c, topic)[key], key)
	}
	described := configsOf(t, c, "with-flush.ms")
	for key := range described {
		_, legal := legalValues[key]
		assert.True(t, legal || key == "remote.storage.enable" || strings.HasPrefix(key, "mainstem."), "%s is not tried here", key)
	}
	for _, bad := range [][2]string{
		{"no.such.key", "1"}, {"flush.ms", "-5"}, {"segment.bytes", "1048575"}, {"remote.storage.enable", "true"},
		{"message.format.version", "3.0"}, {"message.downconversion.enable", "true"}, {"message.timestamp.difference.max.ms", "1"},
	} {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = 7, 30_000
		req.Topics = append(req.Topics, frames.NewTopic("refused", 1, 1, map[string]string{bad[0]: bad[1]}))
		got := frames.Ask[*kmsg.CreateTopicsResponse](c, req).Topics[0]
		assert.EqualValues(t, 40, got.ErrorCode, bad)
		require.NotNil(t, got.ErrorMessage, bad)
		assert.Contains(t, *got.ErrorMessage, bad[0])
	}
}
