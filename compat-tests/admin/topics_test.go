package admin

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func topics() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"CreateTopic":              createTopic,
		"CreateTopics":             createTopics,
		"ValidateCreateTopics":     validateCreateTopics,
		"ListTopics":               listTopics,
		"ListTopicsWithInternal":   listTopicsWithInternal,
		"CreatePartitions":         createPartitions,
		"UpdatePartitions":         updatePartitions,
		"ValidateCreatePartitions": validateCreatePartitions,
		"ValidateUpdatePartitions": validateUpdatePartitions,
		"DeleteTopic":              deleteTopic,
		"DeleteTopics":             deleteTopics,
		"DeleteRecords":            deleteRecords,
	}
}

// partitions is how many partitions a topic has; -1 when there is no such topic.
func (r *rig) partitions(topic string) int {
	r.Helper()
	listed, err := r.adm.ListTopics(r.ctx)
	require.NoError(r, err)
	if !listed.Has(topic) {
		return -1
	}
	return len(listed[topic].Partitions)
}

func createTopic(r *rig) {
	got, err := r.adm.CreateTopic(r.ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("1000")}, "created")
	require.NoError(r, err)
	assert.NotZero(r, got.ID)
	assert.EqualValues(r, 3, got.NumPartitions)
	assert.EqualValues(r, 1, got.ReplicationFactor)
	assert.Equal(r, "1000", *got.Configs["retention.ms"].Value)
	_, err = r.adm.CreateTopic(r.ctx, 3, 1, nil, "created")
	assert.ErrorIs(r, err, kerr.TopicAlreadyExists)
}

func createTopics(r *rig) {
	got, err := r.adm.CreateTopics(r.ctx, -1, -1, nil, "many-1", "many-2", "not/a/name")
	require.NoError(r, err)
	assert.NoError(r, got["many-1"].Err)
	assert.NoError(r, got["many-2"].Err)
	assert.ErrorIs(r, got["not/a/name"].Err, kerr.InvalidTopicException)
	assert.Equal(r, 1, r.partitions("many-2"))
}

func validateCreateTopics(r *rig) {
	got, err := r.adm.ValidateCreateTopics(r.ctx, 1, 1, nil, "never")
	require.NoError(r, err)
	assert.NoError(r, got["never"].Err)
	assert.Equal(r, -1, r.partitions("never"))
	got, err = r.adm.ValidateCreateTopics(r.ctx, 1, 3, nil, "never")
	require.NoError(r, err)
	assert.ErrorIs(r, got["never"].Err, kerr.InvalidReplicationFactor)
}

func listTopics(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.ListTopics(r.ctx)
	require.NoError(r, err)
	assert.Len(r, got[topic].Partitions, 2)
	assert.Equal(r, []int32{1}, got[topic].Partitions[0].ISR)
	assert.False(r, got.Has("__consumer_offsets"))
}

func listTopicsWithInternal(r *rig) {
	r.coordinated("group-for-internal-topics")
	got, err := r.adm.ListTopicsWithInternal(r.ctx)
	require.NoError(r, err)
	assert.True(r, got["__consumer_offsets"].IsInternal)
	assert.Len(r, got["__consumer_offsets"].Partitions, 3)
}

func createPartitions(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.CreatePartitions(r.ctx, 3, topic)
	require.NoError(r, err)
	require.NoError(r, got[topic].Err)
	assert.Equal(r, 5, r.partitions(topic))
}

func updatePartitions(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.UpdatePartitions(r.ctx, 4, topic)
	require.NoError(r, err)
	require.NoError(r, got[topic].Err)
	assert.Equal(r, 4, r.partitions(topic))
	got, err = r.adm.UpdatePartitions(r.ctx, 1, topic)
	require.NoError(r, err)
	assert.ErrorIs(r, got[topic].Err, kerr.InvalidPartitions)
}

func validateCreatePartitions(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.ValidateCreatePartitions(r.ctx, 1, topic)
	require.NoError(r, err)
	require.NoError(r, got[topic].Err)
	assert.Equal(r, 2, r.partitions(topic))
}

func validateUpdatePartitions(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.ValidateUpdatePartitions(r.ctx, 3, topic)
	require.NoError(r, err)
	require.NoError(r, got[topic].Err)
	assert.Equal(r, 2, r.partitions(topic))
}

func deleteTopic(r *rig) {
	topic := r.topic(1)
	got, err := r.adm.DeleteTopic(r.ctx, topic)
	require.NoError(r, err)
	require.NoError(r, got.Err)
	assert.Equal(r, -1, r.partitions(topic))
}

func deleteTopics(r *rig) {
	topic := r.topic(1)
	got, err := r.adm.DeleteTopics(r.ctx, topic, "not-there")
	require.NoError(r, err)
	assert.NoError(r, got[topic].Err)
	assert.ErrorIs(r, got["not-there"].Err, kerr.UnknownTopicOrPartition)
}

func deleteRecords(r *rig) {
	topic := r.topic(2)
	r.write(topic, 2, 5)
	upTo := kadm.Offsets{}
	upTo.AddOffset(topic, 0, 3, -1)
	upTo.AddOffset(topic, 1, 6, -1)
	got, err := r.adm.DeleteRecords(r.ctx, upTo)
	require.NoError(r, err)
	assert.NoError(r, got[topic][0].Err)
	assert.EqualValues(r, 3, got[topic][0].LowWatermark)
	assert.ErrorIs(r, got[topic][1].Err, kerr.OffsetOutOfRange)
}
