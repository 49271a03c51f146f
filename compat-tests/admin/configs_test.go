package admin

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func configs() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"DescribeTopicConfigs":            describeTopicConfigs,
		"DescribeBrokerConfigs":           describeBrokerConfigs,
		"AlterTopicConfigs":               alterTopicConfigs,
		"AlterTopicConfigsState":          alterTopicConfigsState,
		"ValidateAlterTopicConfigs":       validateAlterTopicConfigs,
		"ValidateAlterTopicConfigsState":  validateAlterTopicConfigsState,
		"AlterBrokerConfigs":              alterBrokerConfigs,
		"AlterBrokerConfigsState":         alterBrokerConfigsState,
		"ValidateAlterBrokerConfigs":      validateAlterBrokerConfigs,
		"ValidateAlterBrokerConfigsState": validateAlterBrokerConfigsState,
		"ListConfigResources":             listConfigResources,
	}
}

// set is one setting to be made.
func set(name, value string) []kadm.AlterConfig {
	return []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}
}

// done requires that each resource was altered, or would be.
func (r *rig) done(got kadm.AlterConfigsResponses, err error) {
	r.Helper()
	require.NoError(r, err)
	require.Len(r, got, 1)
	require.NoError(r, got[0].Err)
}

// topicConfig is the value of a setting of a topic.
func (r *rig) topicConfig(topic, name string) (value string, source kmsg.ConfigSource) {
	r.Helper()
	all, err := r.adm.DescribeTopicConfigs(r.ctx, topic)
	require.NoError(r, err)
	return r.find(all, topic, name)
}

// brokerConfig is the value of a setting of the broker.
func (r *rig) brokerConfig(name string) (value string, source kmsg.ConfigSource) {
	r.Helper()
	all, err := r.adm.DescribeBrokerConfigs(r.ctx, 1)
	require.NoError(r, err)
	return r.find(all, "1", name)
}

func (r *rig) find(all kadm.ResourceConfigs, resource, name string) (string, kmsg.ConfigSource) {
	r.Helper()
	of, err := all.On(resource, nil)
	require.NoError(r, err)
	require.NoError(r, of.Err)
	for _, c := range of.Configs {
		if c.Key == name {
			return c.MaybeValue(), c.Source
		}
	}
	require.Fail(r, "no such setting", name)
	return "", 0
}

func describeTopicConfigs(r *rig) {
	value, source := r.topicConfig(r.topic(1), "cleanup.policy")
	assert.Equal(r, "delete", value)
	assert.Equal(r, kmsg.ConfigSourceDefaultConfig, source)
}

func describeBrokerConfigs(r *rig) {
	value, source := r.brokerConfig("offsets.topic.num.partitions")
	assert.Equal(r, "3", value)
	assert.Equal(r, kmsg.ConfigSourceStaticBrokerConfig, source)
}

func alterTopicConfigs(r *rig) {
	topic := r.topic(1)
	r.done(r.adm.AlterTopicConfigs(r.ctx, set("retention.ms", "12345"), topic))
	value, source := r.topicConfig(topic, "retention.ms")
	assert.Equal(r, "12345", value)
	assert.Equal(r, kmsg.ConfigSourceDynamicTopicConfig, source)
	r.done(r.adm.AlterTopicConfigs(r.ctx, []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "retention.ms"}}, topic))
	value, _ = r.topicConfig(topic, "retention.ms")
	assert.Equal(r, "604800000", value)
}

func alterTopicConfigsState(r *rig) {
	topic := r.topic(1)
	r.done(r.adm.AlterTopicConfigsState(r.ctx, set("retention.ms", "1"), topic))
	r.done(r.adm.AlterTopicConfigsState(r.ctx, set("retention.bytes", "2"), topic))
	value, _ := r.topicConfig(topic, "retention.ms")
	assert.Equal(r, "604800000", value, "the second state does not name it")
	value, _ = r.topicConfig(topic, "retention.bytes")
	assert.Equal(r, "2", value)
}

func validateAlterTopicConfigs(r *rig) {
	topic := r.topic(1)
	r.done(r.adm.ValidateAlterTopicConfigs(r.ctx, set("retention.ms", "1"), topic))
	value, _ := r.topicConfig(topic, "retention.ms")
	assert.Equal(r, "604800000", value)
	got, err := r.adm.ValidateAlterTopicConfigs(r.ctx, set("retention.ms", "soon"), topic)
	require.NoError(r, err)
	assert.ErrorIs(r, got[0].Err, kerr.InvalidConfig)
}

func validateAlterTopicConfigsState(r *rig) {
	topic := r.topic(1)
	r.done(r.adm.ValidateAlterTopicConfigsState(r.ctx, set("retention.ms", "1"), topic))
	value, _ := r.topicConfig(topic, "retention.ms")
	assert.Equal(r, "604800000", value)
}

func alterBrokerConfigs(r *rig) {
	r.done(r.adm.AlterBrokerConfigs(r.ctx, set("log.retention.ms", "604800001"), 1))
	value, source := r.brokerConfig("log.retention.ms")
	assert.Equal(r, "604800001", value)
	assert.Equal(r, kmsg.ConfigSourceDynamicBrokerConfig, source)
	r.done(r.adm.AlterBrokerConfigs(r.ctx, []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "log.retention.ms"}}, 1))
}

func alterBrokerConfigsState(r *rig) {
	r.done(r.adm.AlterBrokerConfigsState(r.ctx, set("message.max.bytes", "2000000"), 1))
	value, _ := r.brokerConfig("message.max.bytes")
	assert.Equal(r, "2000000", value)
	r.done(r.adm.AlterBrokerConfigsState(r.ctx, nil, 1))
	value, _ = r.brokerConfig("message.max.bytes")
	assert.Equal(r, "1048588", value)
}

func validateAlterBrokerConfigs(r *rig) {
	r.done(r.adm.ValidateAlterBrokerConfigs(r.ctx, set("message.max.bytes", "3000000"), 1))
	value, _ := r.brokerConfig("message.max.bytes")
	assert.Equal(r, "1048588", value)
}

func validateAlterBrokerConfigsState(r *rig) {
	r.done(r.adm.ValidateAlterBrokerConfigsState(r.ctx, set("message.max.bytes", "3000000"), 1))
	value, _ := r.brokerConfig("message.max.bytes")
	assert.Equal(r, "1048588", value)
}

func listConfigResources(r *rig) {
	topic := r.topic(1)
	got, err := r.adm.ListConfigResources(r.ctx, kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker)
	require.NoError(r, err)
	require.NoError(r, got.Err)
	assert.Contains(r, got.Resources, kadm.ConfigResource{Name: topic, Type: kmsg.ConfigResourceTypeTopic})
	assert.Contains(r, got.Resources, kadm.ConfigResource{Name: "1", Type: kmsg.ConfigResourceTypeBroker})
}
