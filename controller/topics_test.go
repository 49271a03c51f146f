package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestTopicOf9999PartitionsIsCreatedInOneStep(t *testing.T) {
	c := register(t, external(t))
	var seen []int
	c.Subscribe(func(_ *meta.Image, d meta.Delta) {
		for _, topic := range slices.Concat(d.TopicsCreated, d.TopicsChanged) {
			seen = append(seen, len(topic.Partitions))
		}
	})
	topics := create(t, c, 9999, "big")
	require.Equal(t, []int{9999}, seen)
	for _, p := range c.Image().TopicByID(topics[0].ID).Partitions {
		require.EqualValues(t, 1, p.Leader)
	}
	resp, err := raw(t).Get(t.Context(), c.opts.Prefix+"1/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	revisions := map[int64]int{}
	for _, kv := range resp.Kvs {
		if strings.Contains(string(kv.Key), "/topics/") || strings.Contains(string(kv.Key), "/parts/") {
			revisions[kv.ModRevision]++
		}
	}
	require.Len(t, revisions, 1)
}

func TestTopicTooBigForOneTransactionIsRefused(t *testing.T) {
	c := register(t, external(t))
	replicas := make([]int32, 300)
	for i := range replicas {
		replicas[i] = int32(i) + 1_000_000
	}
	wide := NewTopic{Name: "wide"}
	for i := range int32(2000) {
		wide.Assignments = append(wide.Assignments, append([]int32{i}, replicas...))
	}
	errs := c.CreateTopics(t.Context(), []NewTopic{wide, {Name: "long", Assignments: onNode1(20_000)}, {Name: "fits", Assignments: onNode1(1)}})
	require.ErrorIs(t, errs[0], kerr.PolicyViolation)
	require.ErrorIs(t, errs[1], kerr.PolicyViolation)
	require.NoError(t, errs[2])
}

func TestManyTopicsInOneRequest(t *testing.T) {
	c := register(t, external(t))
	topics := make([]NewTopic, 700)
	for i := range topics {
		topics[i] = NewTopic{Name: fmt.Sprintf("t.%d", i), Assignments: onNode1(1 + i%200), Configs: map[string]string{"n": fmt.Sprint(i)}}
	}
	before := c.Image().Revision()
	for _, err := range c.CreateTopics(t.Context(), topics) {
		require.NoError(t, err)
	}
	require.Less(t, c.Image().Revision()-before, int64(40), "transactions")
	require.Equal(t, 700, c.Image().TopicCount())
	for i, topic := range topics {
		got := c.Image().Topic(topic.Name)
		require.Equal(t, topic.ID, got.ID)
		require.Len(t, got.Partitions, 1+i%200)
		require.Equal(t, topic.Configs, got.Configs)
	}
}

func TestOneOfTwentyConcurrentCreatesSucceeds(t *testing.T) {
	o := external(t)
	clients := []*Client{register(t, o)}
	for n := range int32(3) {
		other := o
		other.NodeID, other.Dir = n+2, t.TempDir()
		clients = append(clients, open(t, other))
	}
	for round := range 5 {
		name := fmt.Sprintf("t%d", round)
		errs := make([]error, 20)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				c := clients[i%len(clients)]
				errs[i] = c.CreateTopics(t.Context(), []NewTopic{{Name: name, Assignments: onNode1(3)}})[0]
				if c.Image().Topic(name) == nil {
					t.Errorf("answered, but the image does not show it: %v", errs[i])
				}
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, kerr.TopicAlreadyExists)
			require.EqualError(t, err, "Topic '"+name+"' already exists.")
		}
		require.Equal(t, 1, won)
	}
}

func TestCollidingNamesAreRefusedAtomically(t *testing.T) {
	c := register(t, external(t))
	names := []string{"a.b_c", "a_b.c", "a.b.c", "a_b_c"}
	errs := make([]error, 20)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = c.CreateTopics(t.Context(), []NewTopic{{Name: names[i%4], Assignments: onNode1(1)}})[0]
		})
	}
	wg.Wait()
	require.Equal(t, 1, c.Image().TopicCount())
	var winner string
	for topic := range c.Image().Topics() {
		winner = topic.Name
	}
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
		case names[i%4] == winner:
			require.ErrorIs(t, err, kerr.TopicAlreadyExists)
		default:
			require.ErrorIs(t, err, kerr.InvalidTopicException)
			require.EqualError(t, err, fmt.Sprintf("Topic '%s' collides with existing topic: %s", names[i%4], winner))
		}
	}
	require.Equal(t, 1, won)
}

func TestOneBadTopicDoesNotHarmTheOthers(t *testing.T) {
	c := register(t, external(t))
	create(t, c, 1, "exists")
	topics := []NewTopic{
		{Name: "ok", Assignments: onNode1(1), Internal: true},
		{Name: "exists", Assignments: onNode1(1)},
		{Name: "a/b", Assignments: onNode1(1)},
		{Name: "twice", Assignments: onNode1(1)},
		{Name: "twice", Assignments: onNode1(1)},
		{Name: "none"},
		{Name: "empty", Assignments: [][]int32{{}}},
		{Name: "ok2", Assignments: onNode1(1)},
	}
	errs := c.CreateTopics(t.Context(), topics)
	for i, want := range []error{nil, kerr.TopicAlreadyExists, kerr.InvalidTopicException, nil, kerr.TopicAlreadyExists, kerr.InvalidPartitions, kerr.InvalidReplicaAssignment, nil} {
		require.ErrorIs(t, errs[i], want, topics[i].Name)
	}
	require.True(t, c.Image().Topic("ok").Internal)
	require.False(t, c.Image().Topic("ok2").Internal)
}

func TestDeletedAndRecreatedTopicHasAnotherID(t *testing.T) {
	c := register(t, external(t))
	ids := map[meta.TopicID]bool{}
	for round := range 100 {
		topic := create(t, c, 2, "t")[0]
		require.False(t, ids[topic.ID])
		ids[topic.ID] = true
		if round == 0 {
			require.NoError(t, c.AlterConfigs(t.Context(), meta.Resource{Type: meta.ResourceTopic, Name: "t"}, set("a", "b")))
		} else {
			require.Nil(t, c.Image().Topic("t").Configs)
		}
		require.NoError(t, c.DeleteTopics(t.Context(), []meta.TopicID{topic.ID})[0])
		require.Nil(t, c.Image().Topic("t"))
		require.True(t, c.Image().Deleted(topic.ID))
	}
}

func TestDeletingManyAndUnknownTopics(t *testing.T) {
	c := register(t, external(t))
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	topics := create(t, c, 3, names...)
	var ids []meta.TopicID
	for _, topic := range topics {
		ids = append(ids, topic.ID)
	}
	ids = append(ids, meta.TopicID{1}, ids[0])
	errs := c.DeleteTopics(t.Context(), ids)
	for _, err := range errs[:100] {
		require.NoError(t, err)
	}
	require.ErrorIs(t, errs[100], kerr.UnknownTopicID)
	require.ErrorIs(t, errs[101], kerr.InvalidRequest)
	require.Zero(t, c.Image().TopicCount())
	require.Zero(t, c.Image().PartitionCount())
	require.ErrorIs(t, c.DeleteTopics(t.Context(), ids[:1])[0], kerr.UnknownTopicID)
}

func TestOneOfManyConcurrentDeletesSucceeds(t *testing.T) {
	c := register(t, external(t))
	id := create(t, c, 2, "t")[0].ID
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = c.DeleteTopics(context.Background(), []meta.TopicID{id})[0] })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, kerr.UnknownTopicID)
		}
	}
	require.Equal(t, 1, won)
}

func TestTombstoneStaysUntilEveryHolderHasAcknowledged(t *testing.T) {
	o := external(t)
	one := register(t, o)
	o.NodeID, o.Dir = 2, t.TempDir()
	two := register(t, o)
	topic := []NewTopic{{Name: "t", Assignments: [][]int32{{1, 2}, {2}}}}
	require.NoError(t, one.CreateTopics(t.Context(), topic)[0])
	require.NoError(t, two.DeleteTopics(t.Context(), []meta.TopicID{topic[0].ID})[0])
	for stone := range two.Image().Tombstones() {
		require.Equal(t, meta.Tombstone{ID: topic[0].ID, Name: "t", Holders: []int32{1, 2}}, stone)
	}
	require.NoError(t, one.AckDeleted(t.Context(), []meta.TopicID{topic[0].ID, {9}}))
	require.NoError(t, one.catchUp(t.Context()))
	require.True(t, one.Image().Deleted(topic[0].ID))
	require.NoError(t, two.AckDeleted(t.Context(), []meta.TopicID{topic[0].ID, topic[0].ID}))
	require.NoError(t, one.catchUp(t.Context()))
	require.False(t, one.Image().Deleted(topic[0].ID))
}

func TestPartitionsAreAdded(t *testing.T) {
	c := register(t, external(t))
	topic := create(t, c, 1, "t")[0]
	require.NoError(t, c.RaiseEpochs(t.Context(), 3))
	have := 1
	for _, n := range []int{126, 1, 1, 128, 300, 4000} {
		require.NoError(t, c.CreatePartitions(t.Context(), topic.ID, have, onNode1(n)))
		have += n
		parts := c.Image().Topic("t").Partitions
		require.Len(t, parts, have)
		for i, p := range parts {
			require.EqualValues(t, 1, p.Leader, "partition %d", i)
			require.Equal(t, i == 0, p.LeaderEpoch == 3, "partition %d", i)
		}
	}
	require.ErrorIs(t, c.CreatePartitions(t.Context(), topic.ID, 5, onNode1(1)), kerr.InvalidPartitions)
	require.ErrorIs(t, c.CreatePartitions(t.Context(), topic.ID, have, onNode1(20_000)), kerr.PolicyViolation)
	require.ErrorIs(t, c.CreatePartitions(t.Context(), topic.ID, have, nil), kerr.InvalidPartitions)
	require.ErrorIs(t, c.CreatePartitions(t.Context(), meta.TopicID{1}, 0, onNode1(1)), kerr.UnknownTopicID)
}

func TestOneOfManyConcurrentCreatePartitionsSucceeds(t *testing.T) {
	c := register(t, external(t))
	id := create(t, c, 100, "t")[0].ID
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = c.CreatePartitions(context.Background(), id, 100, onNode1(50)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, kerr.InvalidPartitions)
		}
	}
	require.Equal(t, 1, won)
	require.Len(t, c.Image().Topic("t").Partitions, 150)
}

func TestLeaderOfANewPartitionIsAlive(t *testing.T) {
	o := external(t)
	c := register(t, o)
	topic := []NewTopic{{Name: "t", Assignments: [][]int32{{9, 1}, {9}}}}
	require.NoError(t, c.CreateTopics(t.Context(), topic)[0])
	parts := c.Image().Topic("t").Partitions
	require.EqualValues(t, 1, parts[0].Leader)
	require.Equal(t, []int32{1}, parts[0].ISR)
	require.Equal(t, []int32{9, 1}, parts[0].Replicas)
	require.EqualValues(t, 9, parts[1].Leader)
}
