package admin

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func cluster() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"ApiVersions":                apiVersions,
		"BrokerMetadata":             brokerMetadata,
		"ListBrokers":                listBrokers,
		"Metadata":                   metadata,
		"DescribeAllLogDirs":         describeAllLogDirs,
		"DescribeBrokerLogDirs":      describeBrokerLogDirs,
		"ListPartitionReassignments": listReassignments,
	}
}

func apiVersions(r *rig) {
	got, err := r.adm.ApiVersions(r.ctx)
	require.NoError(r, err)
	require.Len(r, got, 1)
	one := got[1]
	require.NoError(r, one.Err)
	lowest, highest, ok := one.KeyVersions(kmsg.Produce.Int16())
	assert.True(r, ok)
	assert.EqualValues(r, 0, lowest, "as librdkafka wants it")
	assert.EqualValues(r, 13, highest)
}

func brokerMetadata(r *rig) {
	m, err := r.adm.BrokerMetadata(r.ctx)
	require.NoError(r, err)
	assert.Len(r, m.Cluster, 22)
	assert.EqualValues(r, 1, m.Controller)
	assert.Equal(r, []int32{1}, m.Brokers.NodeIDs())
	assert.Empty(r, m.Topics)
}

func listBrokers(r *rig) {
	brokers, err := r.adm.ListBrokers(r.ctx)
	require.NoError(r, err)
	require.Len(r, brokers, 1)
	assert.EqualValues(r, 1, brokers[0].NodeID)
	assert.Equal(r, "127.0.0.1", brokers[0].Host)
}

func metadata(r *rig) {
	topic := r.topic(2)
	m, err := r.adm.Metadata(kadm.WithAuthorizedOps(r.ctx), topic, "not-there")
	require.NoError(r, err)
	require.NoError(r, m.Topics[topic].Err)
	assert.Len(r, m.Topics[topic].Partitions, 2)
	assert.EqualValues(r, 1, m.Topics[topic].Partitions[1].Leader)
	assert.NotZero(r, m.Topics[topic].ID)
	assert.NotEmpty(r, m.Topics[topic].AuthorizedOperations)
	assert.ErrorIs(r, m.Topics["not-there"].Err, kerr.UnknownTopicOrPartition)
}

func describeAllLogDirs(r *rig) {
	topic := r.topic(1)
	r.write(topic, 1, 3)
	all, err := r.adm.DescribeAllLogDirs(r.ctx, nil)
	require.NoError(r, err)
	p, ok := all[1].LookupPartition(topic, 0)
	require.True(r, ok)
	assert.Positive(r, p.Size)
	assert.Zero(r, p.OffsetLag)
	assert.False(r, p.IsFuture)
}

func describeBrokerLogDirs(r *rig) {
	topic, set := r.topic(2), kadm.TopicsSet{}
	set.Add(topic, 1)
	dirs, err := r.adm.DescribeBrokerLogDirs(r.ctx, 1, set)
	require.NoError(r, err)
	require.NoError(r, dirs.Error())
	_, ok := dirs.LookupPartition(topic, 1)
	assert.True(r, ok)
	_, ok = dirs.LookupPartition(topic, 0)
	assert.False(r, ok, "it was not asked for")
}

func listReassignments(r *rig) {
	topic, set := r.topic(1), kadm.TopicsSet{}
	set.Add(topic, 0)
	got, err := r.adm.ListPartitionReassignments(r.ctx, set)
	require.NoError(r, err)
	assert.Empty(r, got, "nothing is being reassigned")
}
