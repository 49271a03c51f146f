package admin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// leaders are the methods about who leads, who holds what and what is agreed on.
func leaders() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"ElectLeaders":              electLeaders,
		"AlterPartitionAssignments": alterAssignments,
		"AlterAllReplicaLogDirs":    alterAllLogDirs,
		"AlterBrokerReplicaLogDirs": alterBrokerLogDirs,
		"UpdateFeatures":            updateFeatures,
	}
}

func electLeaders(r *rig) {
	topic, set := r.topic(2), kadm.TopicsSet{}
	set.Add(topic, 0, 1, 2)
	set.Add("not-there", 0)
	for _, how := range []kadm.ElectLeadersHow{kadm.ElectPreferredReplica, kadm.ElectLiveReplica} {
		got, err := r.adm.ElectLeaders(r.ctx, how, set)
		require.NoError(r, err)
		assert.ErrorIs(r, got[topic][0].Err, kerr.ElectionNotNeeded)
		assert.ErrorIs(r, got[topic][1].Err, kerr.ElectionNotNeeded)
		assert.ErrorIs(r, got[topic][2].Err, kerr.UnknownTopicOrPartition)
		assert.ErrorIs(r, got["not-there"][0].Err, kerr.UnknownTopicOrPartition)
		all, err := r.adm.ElectLeaders(r.ctx, how, nil)
		require.NoError(r, err)
		assert.Empty(r, all[topic], "what needs no election is left out")
	}
}

func alterAssignments(r *rig) {
	topic := r.topic(3)
	r.write(topic, 1, 3)
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign(topic, 0, []int32{1})
	req.Assign(topic, 1, []int32{1, 77})
	req.CancelAssign(topic, 2)
	got, err := r.adm.AlterPartitionAssignments(r.ctx, req)
	require.NoError(r, err)
	assert.NoError(r, got[topic][0].Err)
	assert.ErrorIs(r, got[topic][1].Err, kerr.InvalidReplicaAssignment)
	assert.ErrorIs(r, got[topic][2].Err, kerr.NoReassignmentInProgress)
	moving, err := r.adm.ListPartitionReassignments(r.ctx, nil)
	require.NoError(r, err)
	assert.Empty(r, moving)
	ends, err := r.adm.ListEndOffsets(r.ctx, topic)
	require.NoError(r, err)
	end, _ := ends.Lookup(topic, 0)
	assert.EqualValues(r, 3, end.Offset)
}

// moveAll asks for the first partition of a topic to be in the broker's directory
// and for the second to be elsewhere.
func moveAll(r *rig, topic string) kadm.AlterReplicaLogDirsReq {
	r.Helper()
	dirs, err := r.adm.DescribeBrokerLogDirs(r.ctx, 1, nil)
	require.NoError(r, err)
	here, there := kadm.TopicsSet{}, kadm.TopicsSet{}
	here.Add(topic, 0)
	there.Add(topic, 1)
	var req kadm.AlterReplicaLogDirsReq
	req.Add(dirs.Sorted()[0].Dir, here)
	req.Add("/elsewhere", there)
	return req
}

func alterAllLogDirs(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.AlterAllReplicaLogDirs(r.ctx, moveAll(r, topic))
	require.NoError(r, err)
	assert.NoError(r, got[1][topic][0].Err)
	assert.ErrorIs(r, got[1][topic][1].Err, kerr.LogDirNotFound)
}

func alterBrokerLogDirs(r *rig) {
	topic := r.topic(2)
	got, err := r.adm.AlterBrokerReplicaLogDirs(r.ctx, 1, moveAll(r, topic))
	require.NoError(r, err)
	assert.NoError(r, got[topic][0].Err)
	assert.ErrorIs(r, got[topic][1].Err, kerr.LogDirNotFound)
}

// heartbeat tries to join a group of the consumer protocol.
func (r *rig) heartbeat(group string) int16 {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.SubscribedTopicNames = group, "AAAAAAAAAAAAAAAAAAAAAQ", []string{"t"}
	req.RebalanceTimeoutMillis, req.Topics = 60_000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	resp, err := req.RequestWith(r.ctx, r.cl)
	require.NoError(r, err)
	return resp.ErrorCode
}

// finalized are the features' levels as clients see them.
func (r *rig) finalized() map[string]int16 {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(r.ctx, r.cl)
	require.NoError(r, err)
	levels := map[string]int16{}
	for _, f := range resp.FinalizedFeatures {
		levels[f.Name] = f.MaxVersionLevel
	}
	return levels
}

func updateFeatures(r *rig) {
	set := func(validateOnly bool, name string, level int16, kind int8) error {
		got, err := r.adm.UpdateFeatures(r.ctx, validateOnly, kadm.FeatureUpdate{Feature: name, MaxVersionLevel: level, UpgradeType: kind})
		require.NoError(r, err)
		return got.Error()
	}
	before := r.finalized()
	assert.EqualValues(r, 1, before["group.version"])
	assert.ErrorIs(r, set(true, "metadata.version", 1, 1), kerr.InvalidUpdateVersion)
	assert.ErrorIs(r, set(false, "no.such", 1, 1), kerr.InvalidUpdateVersion)
	require.NoError(r, set(true, "group.version", 0, 2))
	assert.Equal(r, before, r.finalized(), "it was only to be judged")

	require.NoError(r, set(false, "group.version", 0, 2))
	assert.NotContains(r, r.finalized(), "group.version")
	assert.Equal(r, kerr.UnsupportedVersion.Code, r.heartbeat(r.Name()))
	require.NoError(r, set(false, "group.version", 1, 1))
	assert.Equal(r, before, r.finalized())
	assert.NotEqual(r, kerr.UnsupportedVersion.Code, r.heartbeat(r.Name()))
}

// TestFeaturesSurviveARestart: what a cluster agreed on stays agreed.
func TestFeaturesSurviveARestart(t *testing.T) {
	node := harness.Start(t)
	r := newRig(t, node)
	got, err := r.adm.UpdateFeatures(r.ctx, false, kadm.FeatureUpdate{Feature: "transaction.version", MaxVersionLevel: 1, UpgradeType: 2})
	require.NoError(t, err)
	require.NoError(t, got.Error())
	node.Kill()
	require.NoError(t, node.Start())
	assert.EqualValues(t, 1, newRig(t, node).finalized()["transaction.version"])
}

// TestTheLivingBrokerIsNotUnregistered: on Kafka it is, and nobody is served any more.
func TestTheLivingBrokerIsNotUnregistered(t *testing.T) {
	r := newRig(t, harness.Start(t))
	for id, want := range map[int32]*kerr.Error{1: kerr.InvalidRequest, 2: kerr.BrokerIDNotRegistered, -1: kerr.BrokerIDNotRegistered} {
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = id
		resp, err := req.RequestWith(r.ctx, r.cl)
		require.NoError(t, err)
		assert.Equal(t, want.Code, resp.ErrorCode, id)
	}
	brokers, err := r.adm.ListBrokers(r.ctx)
	require.NoError(t, err)
	assert.Len(t, brokers, 1)
}
