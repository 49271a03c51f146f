package admin

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func groups() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"FindGroupCoordinators":  findGroupCoordinators,
		"CommitOffsets":          commitOffsets,
		"CommitAllOffsets":       commitAllOffsets,
		"CommitOffsetsByID":      commitOffsetsByID,
		"CommitAllOffsetsByID":   commitAllOffsetsByID,
		"FetchOffsets":           fetchOffsets,
		"FetchOffsetsByID":       fetchOffsetsByID,
		"FetchOffsetsForTopics":  fetchOffsetsForTopics,
		"FetchManyOffsets":       fetchManyOffsets,
		"DeleteOffsets":          deleteOffsets,
		"ListGroups":             listGroups,
		"ListGroupsByType":       listGroupsByType,
		"DescribeGroups":         describeGroups,
		"DescribeConsumerGroups": describeConsumerGroups,
		"DeleteGroup":            deleteGroup,
		"DeleteGroups":           deleteGroups,
		"LeaveGroup":             leaveGroup,
		"Lag":                    lag,
	}
}

// brokerAssigns is what franz-go looks for in a context to have the broker assign
// partitions (KIP-848).
//
//nolint:revive // The client compares with a plain string.
const brokerAssigns = "opt_in_kafka_next_gen_balancer_beta"

// coordinated waits until the group is coordinated: its internal topic is there.
func (r *rig) coordinated(group string) {
	r.Helper()
	require.Eventually(r, func() bool {
		_, err := r.adm.FetchOffsets(r.ctx, group)
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
}

// committed commits offset 3 of partition 0 and 4 of partition 1 of a new topic, to
// the group that is named as the topic is.
func (r *rig) committed() (topic string) {
	r.Helper()
	topic = r.topic(2)
	r.write(topic, 2, 5)
	r.coordinated(topic)
	require.NoError(r, r.adm.CommitAllOffsets(r.ctx, topic, twoOffsets(topic)))
	return topic
}

func twoOffsets(topic string) kadm.Offsets {
	os := kadm.Offsets{}
	os.Add(kadm.Offset{Topic: topic, Partition: 0, At: 3, LeaderEpoch: -1, Metadata: "three"})
	os.Add(kadm.Offset{Topic: topic, Partition: 1, At: 4, LeaderEpoch: -1})
	return os
}

// holds requires the two offsets of committed.
func (r *rig) holds(group, topic string) {
	r.Helper()
	got, err := r.adm.FetchOffsets(r.ctx, group)
	require.NoError(r, err)
	o, ok := got.Lookup(topic, 0)
	require.True(r, ok)
	assert.EqualValues(r, 3, o.At)
	assert.Equal(r, "three", o.Metadata)
	o, ok = got.Lookup(topic, 1)
	require.True(r, ok)
	assert.EqualValues(r, 4, o.At)
}

// consume starts a consumer in a group and returns when it has partitions.
func (r *rig) consume(ctx context.Context, group, topic string, opts ...kgo.Opt) *kgo.Client {
	r.Helper()
	assigned := make(chan struct{}, 100)
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.node.Address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.WithContext(ctx), kgo.ClientID("consumer-of-" + group), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			if len(got) > 0 {
				assigned <- struct{}{}
			}
		})}, opts...)...)
	require.NoError(r, err)
	r.Cleanup(cl.Close)
	select {
	case <-assigned:
	case <-r.ctx.Done():
		require.Fail(r, "the consumer was assigned nothing")
	}
	return cl
}

func findGroupCoordinators(r *rig) {
	r.coordinated("found")
	got := r.adm.FindGroupCoordinators(r.ctx, "found", "")
	require.NoError(r, got["found"].Err)
	assert.EqualValues(r, 1, got["found"].NodeID)
	assert.Equal(r, "127.0.0.1", got["found"].Host)
}

func commitOffsets(r *rig) {
	topic := r.topic(2)
	r.coordinated("g-commit")
	os := twoOffsets(topic)
	os.AddOffset("not-there", 0, 1, -1)
	got, err := r.adm.CommitOffsets(r.ctx, "g-commit", os)
	require.NoError(r, err)
	assert.NoError(r, got[topic][0].Err)
	assert.ErrorIs(r, got["not-there"][0].Err, kerr.UnknownTopicOrPartition)
	r.holds("g-commit", topic)
}

func commitAllOffsets(r *rig) {
	topic := r.committed()
	r.holds(topic, topic)
}

// byID are the two offsets of a topic by its id.
func (r *rig) byID(topic string) kadm.OffsetsByID {
	r.Helper()
	listed, err := r.adm.ListTopics(r.ctx, topic)
	require.NoError(r, err)
	out := kadm.OffsetsByID{}
	twoOffsets(topic).Each(func(o kadm.Offset) {
		o.TopicID = listed[topic].ID
		out.Add(o)
	})
	return out
}

func commitOffsetsByID(r *rig) {
	topic := r.topic(2)
	r.coordinated("g-by-id")
	os, unknown := r.byID(topic), kadm.TopicID{1, 2, 3}
	os.Add(kadm.Offset{TopicID: unknown, At: 1, LeaderEpoch: -1})
	got, err := r.adm.CommitOffsetsByID(r.ctx, "g-by-id", os)
	require.NoError(r, err)
	o, ok := got.Lookup(unknown, 0)
	require.True(r, ok)
	assert.ErrorIs(r, o.Err, kerr.UnknownTopicID)
	r.holds("g-by-id", topic)
}

func commitAllOffsetsByID(r *rig) {
	topic := r.topic(2)
	r.coordinated("g-all-by-id")
	require.NoError(r, r.adm.CommitAllOffsetsByID(r.ctx, "g-all-by-id", r.byID(topic)))
	r.holds("g-all-by-id", topic)
}

func fetchOffsets(r *rig) {
	topic := r.committed()
	r.holds(topic, topic)
	got, err := r.adm.FetchOffsets(kadm.RequireStable(r.ctx), "group-without-offsets")
	require.NoError(r, err)
	assert.Empty(r, got)
}

func fetchOffsetsByID(r *rig) {
	topic := r.committed()
	got, err := r.adm.FetchOffsetsByID(r.ctx, topic)
	require.NoError(r, err)
	for id := range r.byID(topic) {
		o, ok := got.Lookup(id, 0)
		require.True(r, ok)
		assert.EqualValues(r, 3, o.At)
	}
}

func fetchOffsetsForTopics(r *rig) {
	topic := r.committed()
	other := "nothing-committed"
	_, err := r.adm.CreateTopic(r.ctx, 1, 1, nil, other)
	require.NoError(r, err)
	got, err := r.adm.FetchOffsetsForTopics(r.ctx, topic, topic, other)
	require.NoError(r, err)
	assert.EqualValues(r, 3, got[topic][0].At)
	assert.EqualValues(r, -1, got[other][0].At)
}

func fetchManyOffsets(r *rig) {
	topic := r.committed()
	got := r.adm.FetchManyOffsets(r.ctx, topic, "group-without-offsets")
	require.NoError(r, got[topic].Err)
	assert.EqualValues(r, 4, got[topic].Fetched[topic][1].At)
	require.NoError(r, got["group-without-offsets"].Err)
	assert.Empty(r, got["group-without-offsets"].Fetched)
}

func deleteOffsets(r *rig) {
	topic, set := r.committed(), kadm.TopicsSet{}
	set.Add(topic, 0)
	got, err := r.adm.DeleteOffsets(r.ctx, topic, set)
	require.NoError(r, err)
	require.NoError(r, got[topic][0])
	left, err := r.adm.FetchOffsets(r.ctx, topic)
	require.NoError(r, err)
	assert.Len(r, left[topic], 1)
	_, err = r.adm.DeleteOffsets(r.ctx, "no-such-group", set)
	assert.ErrorIs(r, err, kerr.GroupIDNotFound)
}

func listGroups(r *rig) {
	group := r.committed()
	got, err := r.adm.ListGroups(r.ctx)
	require.NoError(r, err)
	require.Contains(r, got, group)
	assert.Equal(r, "Empty", got[group].State)
	assert.EqualValues(r, 1, got[group].Coordinator)
	got, err = r.adm.ListGroups(r.ctx, "Stable")
	require.NoError(r, err)
	assert.NotContains(r, got, group)
}

func listGroupsByType(r *rig) {
	topic := r.committed()
	r.consume(context.WithValue(r.ctx, brokerAssigns, true), "of-type-consumer", topic)
	got, err := r.adm.ListGroupsByType(r.ctx, []string{"classic"})
	require.NoError(r, err)
	require.Contains(r, got, topic)
	assert.Equal(r, "classic", got[topic].GroupType)
	assert.NotContains(r, got, "of-type-consumer")
	got, err = r.adm.ListGroupsByType(r.ctx, []string{"consumer"}, "Stable", "Assigning", "Reconciling")
	require.NoError(r, err)
	assert.Contains(r, got, "of-type-consumer")
	assert.NotContains(r, got, topic)
}

func describeGroups(r *rig) {
	topic := r.topic(2)
	r.consume(r.ctx, "described", topic, kgo.Balancers(kgo.RangeBalancer()))
	require.Eventually(r, func() bool {
		got, err := r.adm.DescribeGroups(r.ctx, "described")
		return err == nil && got["described"].State == "Stable"
	}, 10*time.Second, 10*time.Millisecond)
	all, err := r.adm.DescribeGroups(kadm.WithAuthorizedOps(r.ctx), "described", "no-such-group")
	require.NoError(r, err)
	got := all["described"]
	require.NoError(r, got.Err)
	assert.Equal(r, "consumer", got.ProtocolType)
	assert.Equal(r, "range", got.Protocol)
	assert.NotEmpty(r, got.AuthorizedOperations)
	require.Len(r, got.Members, 1)
	assert.Equal(r, "consumer-of-described", got.Members[0].ClientID)
	assert.Equal(r, "/127.0.0.1", got.Members[0].ClientHost)
	assert.Len(r, got.AssignedPartitions()[topic], 2)
	assert.ErrorIs(r, all["no-such-group"].Err, kerr.GroupIDNotFound)
}

func describeConsumerGroups(r *rig) {
	topic := r.topic(2)
	r.consume(context.WithValue(r.ctx, brokerAssigns, true), "described-848", topic)
	require.Eventually(r, func() bool {
		got, err := r.adm.DescribeConsumerGroups(r.ctx, "described-848")
		return err == nil && got["described-848"].State == "Stable"
	}, 20*time.Second, 20*time.Millisecond)
	all, err := r.adm.DescribeConsumerGroups(r.ctx, "described-848", "no-such-group")
	require.NoError(r, err)
	got := all["described-848"]
	assert.Equal(r, got.Epoch, got.AssignmentEpoch)
	require.Len(r, got.Members, 1)
	assert.EqualValues(r, 1, got.Members[0].MemberType)
	assert.Equal(r, []string{topic}, got.Members[0].SubscribedTopics)
	assert.Len(r, got.AssignedPartitions()[topic], 2)
	assert.Len(r, got.TargetPartitions()[topic], 2)
	assert.ErrorIs(r, all["no-such-group"].Err, kerr.GroupIDNotFound)
}

func deleteGroup(r *rig) {
	group := r.committed()
	got, err := r.adm.DeleteGroup(r.ctx, group)
	require.NoError(r, err)
	require.NoError(r, got.Err)
	left, err := r.adm.FetchOffsets(r.ctx, group)
	require.NoError(r, err)
	assert.Empty(r, left)
}

func deleteGroups(r *rig) {
	group := r.committed()
	r.consume(r.ctx, "has-a-member", group)
	got, err := r.adm.DeleteGroups(r.ctx, group, "has-a-member", "no-such-group")
	require.NoError(r, err)
	assert.NoError(r, got[group].Err)
	assert.ErrorIs(r, got["has-a-member"].Err, kerr.NonEmptyGroup)
	assert.ErrorIs(r, got["no-such-group"].Err, kerr.GroupIDNotFound)
}

func leaveGroup(r *rig) {
	topic := r.topic(1)
	r.consume(r.ctx, "left", topic, kgo.InstanceID("one"))
	got, err := r.adm.LeaveGroup(r.ctx, kadm.LeaveGroup("left").InstanceIDs("one", "two").Reason("a test"))
	require.NoError(r, err)
	assert.NoError(r, got["one"].Err)
	assert.ErrorIs(r, got["two"].Err, kerr.UnknownMemberID)
}

func lag(r *rig) {
	topic := r.committed()
	all, err := r.adm.Lag(r.ctx, topic)
	require.NoError(r, err)
	of := all[topic]
	require.NoError(r, of.Error())
	assert.Equal(r, "Empty", of.State)
	assert.EqualValues(r, 2, of.Lag[topic][0].Lag)
	assert.EqualValues(r, 1, of.Lag[topic][1].Lag)
	assert.EqualValues(r, 3, of.Lag.Total())
}
