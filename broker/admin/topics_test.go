package admin

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/controller/meta"
)

type newTopicSpec struct {
	name       string
	partitions int32
	replicas   int16
	configs    map[string]string
}

func createRequest(specs ...newTopicSpec) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.name, s.partitions, s.replicas
		for k, v := range s.configs {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, &v
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// codes are the error codes of an answer by topic.
func (w *world) codes(req *kmsg.CreateTopicsRequest) map[string]int16 {
	w.t.Helper()
	m := map[string]int16{}
	for _, t := range w.ask(req).(*kmsg.CreateTopicsResponse).Topics {
		_, twice := m[t.Topic]
		require.False(w.t, twice, "one row a topic")
		m[t.Topic] = t.ErrorCode
		assert.Equal(w.t, t.ErrorCode == 0, t.ErrorMessage == nil, "an error comes with a text")
	}
	return m
}

func TestABadTopicDoesNotAffectTheOthers(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""), broker(3, ""))
	want := map[string]int16{"ok": 0, "rf5": 38, "zero": 37, "a/b": 17, "twice": 42, "rf2": 0, "x.y": 0, "x_y": 17, "cfg": 40}
	assert.Equal(t, want, w.codes(createRequest(
		newTopicSpec{"ok", 1, 1, nil}, newTopicSpec{"rf5", 1, 5, nil}, newTopicSpec{"zero", 0, 1, nil}, newTopicSpec{"a/b", 1, 1, nil},
		newTopicSpec{"twice", 1, 1, nil}, newTopicSpec{"twice", 1, 1, nil}, newTopicSpec{"rf2", 1, 2, nil},
		newTopicSpec{"x.y", 1, 1, nil}, newTopicSpec{"x_y", 1, 1, nil}, newTopicSpec{"cfg", 1, 1, map[string]string{"a": "b"}},
	)))
	for name, code := range want {
		assert.Equal(t, code == 0, w.store.Image().Topic(name) != nil, name)
	}
}

func TestARequestMayNotAskForTenThousandPartitions(t *testing.T) {
	w := newWorld(t, "num.partitions=9999")
	for partitions, code := range map[int32]int16{9999: 0, -1: 0, 10_000: 44, 100_000: 44} {
		req := createRequest(newTopicSpec{"big", partitions, 1, nil})
		req.ValidateOnly = true
		assert.Equal(t, code, w.codes(req)["big"], partitions)
	}
	assert.Equal(t, map[string]int16{"a": 44, "b": 44}, w.codes(createRequest(newTopicSpec{"a", 5000, 1, nil}, newTopicSpec{"b", 5000, 1, nil})))

	w.create(9999, "t")
	assert.Len(t, w.store.Image().Topic("t").Partitions, 9999)
	parts := kmsg.NewPtrCreatePartitionsRequest()
	parts.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 9999 + 10_000}}
	assert.Equal(t, int16(44), w.ask(parts).(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
}

func TestValidateOnlyChecksAndCreatesNothing(t *testing.T) {
	w := newWorld(t, "")
	w.create(1, "t")
	for spec, code := range map[*newTopicSpec]int16{
		{"t", 1, 1, nil}: 36, {"u", 1, 1, nil}: 0, {"v", 1, 99, nil}: 38,
		{"w", 1, 1, map[string]string{"cleanup.policy": "banana"}}: 40,
	} {
		req := createRequest(*spec)
		req.ValidateOnly = true
		assert.Equal(t, code, w.codes(req)[spec.name], spec.name)
	}
	assert.Equal(t, 1, w.store.Image().TopicCount())
}

func TestOneOfManyCreatesATopic(t *testing.T) {
	w := newWorld(t, "")
	var wg sync.WaitGroup
	got := make([]int16, 20)
	for i := range got {
		wg.Go(func() {
			api := w.apis[int16(kmsg.CreateTopics)]
			reply, err := api.Do(t.Context(), createRequest(newTopicSpec{"t", 1, 1, nil}), w.conn)
			assert.NoError(t, err)
			resp := reply.Msg.(*kmsg.CreateTopicsResponse)
			got[i] = resp.Topics[0].ErrorCode
		})
	}
	wg.Wait()
	count := map[int16]int{}
	for _, c := range got {
		count[c]++
	}
	assert.Equal(t, map[int16]int{0: 1, 36: 19}, count)
}

func TestEveryTopicConfigIsStoredAndShown(t *testing.T) {
	w := newWorld(t, "")
	other := map[string]string{
		"cleanup.policy": "compact,delete", "compression.type": "lz4", "message.timestamp.type": "LogAppendTime", "min.cleanable.dirty.ratio": "0.1",
		"follower.replication.throttled.replicas": "*", "leader.replication.throttled.replicas": "0:1",
		"segment.bytes": "2000000", "compression.gzip.level": "1", "compression.lz4.level": "1", "compression.zstd.level": "1",
		config.DurabilityName: "async",
	}
	for i, d := range config.TopicDefs() {
		v, ok := other[d.Name]
		switch {
		case ok:
		case d.Name == "remote.storage.enable":
			continue // There is no tiered storage.
		case d.Type == kmsg.ConfigTypeBoolean:
			v = "true"
		default:
			v = "7"
		}
		name := fmt.Sprintf("t%d", i)
		require.Zero(t, w.codes(createRequest(newTopicSpec{name, 1, 1, map[string]string{d.Name: v}}))[name], d.Name)
		got := w.configsOf(kmsg.ConfigResourceTypeTopic, name)[d.Name]
		assert.Equal(t, v, *got.Value, d.Name)
		assert.Equal(t, kmsg.ConfigSourceDynamicTopicConfig, got.Source, d.Name)
	}
	assert.Equal(t, int16(40), w.codes(createRequest(newTopicSpec{"no", 1, 1, map[string]string{"flush.ms": "-5"}}))["no"])
	assert.Equal(t, int16(40), w.codes(createRequest(newTopicSpec{"no", 1, 1, map[string]string{"remote.storage.enable": "true"}}))["no"])
}

func TestInternalConfigsAreShownWhereTheyAreSetOnly(t *testing.T) {
	w := newWorld(t, "")
	resp := w.ask(createRequest(newTopicSpec{"t", 1, 1, map[string]string{"internal.segment.bytes": "1000"}})).(*kmsg.CreateTopicsResponse)
	require.Zero(t, resp.Topics[0].ErrorCode)
	assert.True(t, slices.ContainsFunc(resp.Topics[0].Configs, func(c kmsg.CreateTopicsResponseTopicConfig) bool {
		return c.Name == "internal.segment.bytes" && *c.Value == "1000"
	}))
	assert.Equal(t, "1000", *w.configsOf(kmsg.ConfigResourceTypeTopic, "t")["internal.segment.bytes"].Value)
	require.Zero(t, w.codes(createRequest(newTopicSpec{"plain", 1, 1, nil}))["plain"])
	assert.NotContains(t, w.configsOf(kmsg.ConfigResourceTypeTopic, "plain"), "internal.segment.bytes")
	assert.Equal(t, 1000, w.live.Topic(w.store.Image().Topic("t").Configs).SegmentBytes)
}

func TestAnAssignmentMustBeWhole(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""), fenced(broker(3, "")))
	for text, want := range map[string]int16{
		"0:1,2 1:2,1": 0, "0:1,2 1:2": 39, "0:3": 39, "0:9": 39, "0:1,1": 39, "0: ": 39, "0:1 2:1": 39, "0:1 0:1": 39, "-1:1": 39,
	} {
		req := createRequest(newTopicSpec{"t", -1, -1, nil})
		req.ValidateOnly = true
		for _, part := range strings.Fields(text) {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			number, replicas, _ := strings.Cut(part, ":")
			_, err := fmt.Sscan(number, &a.Partition)
			require.NoError(t, err)
			for _, r := range strings.FieldsFunc(replicas, func(c rune) bool { return c == ',' }) {
				var id int32
				_, err := fmt.Sscan(r, &id)
				require.NoError(t, err)
				a.Replicas = append(a.Replicas, id)
			}
			req.Topics[0].ReplicaAssignment = append(req.Topics[0].ReplicaAssignment, a)
		}
		assert.Equal(t, want, w.codes(req)["t"], text)
	}
}

func TestDeletionMayBeForbidden(t *testing.T) {
	w := newWorld(t, "delete.topic.enable=false")
	w.create(1, "t")
	for version, code := range map[int16]int16{2: 42, 3: 73, 5: 73, 6: 73} {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version = version
		name := "t"
		req.TopicNames = []string{name}
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		if version < 6 {
			req.Topics = nil
		} else {
			req.TopicNames = nil
		}
		assert.Equal(t, code, w.ask(req).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode, version)
	}
	assert.NotNil(t, w.store.Image().Topic("t"))
}

func TestATopicMayNotBeDeletedByNameAndID(t *testing.T) {
	w := newWorld(t, "")
	w.create(1, "t", "u")
	name, id, other := "t", w.store.Image().Topic("t").ID, w.store.Image().Topic("u").ID
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version = 6
	req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: id}, {Topic: &name}, {TopicID: other}, {TopicID: meta.TopicID{1}}, {TopicID: meta.TopicID{1}}}
	got := w.ask(req).(*kmsg.DeleteTopicsResponse)
	var codes []int16
	for _, r := range got.Topics {
		codes = append(codes, r.ErrorCode)
	}
	assert.Equal(t, []int16{42, 0, 42}, codes)
	assert.NotNil(t, w.store.Image().Topic("t"))
	assert.Nil(t, w.store.Image().Topic("u"))
}

func TestATopicIsMadeAgainWithAnotherID(t *testing.T) {
	w := newWorld(t, "")
	seen := map[meta.TopicID]bool{}
	for range 100 {
		w.create(1, "t")
		id := w.store.Image().Topic("t").ID
		require.False(t, seen[id])
		seen[id] = true
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TopicNames = 5, []string{"t"}
		require.Zero(t, w.ask(req).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
	}
}

func TestPartitionsAreAddedWhereTheyBelong(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.assign("t", []int32{1, 2})
	add := func(count int32, assignment ...[]int32) int16 {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version = 3
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = "t", count
		for _, r := range assignment {
			topic.Assignment = append(topic.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: r})
		}
		req.Topics = append(req.Topics, topic)
		return w.ask(req).(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode
	}
	assert.Zero(t, add(2, []int32{2, 1}))
	assert.Equal(t, int16(39), add(3, []int32{2}), "as many replicas as the others have")
	assert.Zero(t, add(4))
	parts := w.store.Image().Topic("t").Partitions
	require.Len(t, parts, 4)
	assert.Equal(t, []int32{2, 1}, parts[1].Replicas)
	assert.Len(t, parts[3].Replicas, 2)
	w.store.reassign("t", 1, []int32{1}, nil)
	assert.Equal(t, int16(60), add(5))

	list := w.ask(kmsg.NewPtrListPartitionReassignmentsRequest()).(*kmsg.ListPartitionReassignmentsResponse)
	require.Len(t, list.Topics, 1)
	require.Len(t, list.Topics[0].Partitions, 1)
	assert.Equal(t, int32(1), list.Topics[0].Partitions[0].Partition)
	assert.Equal(t, []int32{1}, list.Topics[0].Partitions[0].AddingReplicas)
	some := kmsg.NewPtrListPartitionReassignmentsRequest()
	some.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	assert.Empty(t, w.ask(some).(*kmsg.ListPartitionReassignmentsResponse).Topics)
}

func TestAStoreThatDoesNotAnswerEndsInATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.store.hold = make(chan struct{})
		req := createRequest(newTopicSpec{"t", 1, 1, nil})
		req.TimeoutMillis = 5000
		assert.Equal(t, int16(7), w.codes(req)["t"])
	})
}

func TestWhatTheStoreRefusesReachesTheClient(t *testing.T) {
	w := newWorld(t, "")
	w.store.down = refuse(kerr.InvalidRequest, "no room")
	row := w.ask(createRequest(newTopicSpec{"t", 1, 1, nil})).(*kmsg.CreateTopicsResponse).Topics[0]
	assert.Equal(t, int16(42), row.ErrorCode)
	assert.Equal(t, "no room", *row.ErrorMessage)
}
