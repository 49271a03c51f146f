package admin

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
)

// show asks for topics by name.
func (w *world) show(version int16, allowCreate bool, names ...string) *kmsg.MetadataResponse {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = version, allowCreate
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		req.Topics = append(req.Topics, t)
	}
	return w.ask(req).(*kmsg.MetadataResponse)
}

func fenced(b meta.Broker) meta.Broker { b.Fenced = true; return b }

func plainOnly(b meta.Broker) meta.Broker { b.Listeners = b.Listeners[:1]; return b }

func TestClientsGetTheAddressesOfTheirListener(t *testing.T) {
	w := newWorld(t, "", broker(1, "a"), broker(2, ""), plainOnly(broker(3, "")))
	w.conn.Listener = "EXTERNAL"
	got := w.show(12, false)
	require.Len(t, got.Brokers, 2, "a broker without the listener is left out")
	assert.Equal(t, "public.example", got.Brokers[0].Host)
	assert.Equal(t, int32(9001), got.Brokers[0].Port)
	assert.Equal(t, "a", *got.Brokers[0].Rack)
	assert.Nil(t, got.Brokers[1].Rack)
	cluster := kmsg.NewPtrDescribeClusterRequest()
	cluster.Version = 2
	assert.Equal(t, "public.example", w.ask(cluster).(*kmsg.DescribeClusterResponse).Brokers[0].Host)
}

func TestTheControllerIsAnyLivingBroker(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), fenced(broker(2, "")), broker(3, ""))
	seen := map[int32]bool{}
	for range 100 {
		seen[w.show(12, false).ControllerID] = true
	}
	assert.Equal(t, map[int32]bool{1: true, 3: true}, seen)
}

func TestPartitionsOfDeadBrokersAreShownOffline(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""), plainOnly(broker(3, "")))
	w.assign("t", []int32{2, 1}, []int32{1, 2}, []int32{3, 1})
	b := broker(2, "")
	w.store.write([]meta.Change{w.store.put(w.store.keys.Broker(2), meta.EncodeBroker(&b)), {Key: w.store.keys.Live(2), Deleted: true}})

	p := w.show(12, false, "t").Topics[0].Partitions
	assert.Equal(t, []int32{2, 1}, p[0].Replicas, "the replicas stay as they are")
	assert.Equal(t, []int32{2}, p[0].OfflineReplicas)
	assert.Equal(t, int32(-1), p[0].Leader, "never the dead one")
	assert.Equal(t, int16(5), p[0].ErrorCode)
	assert.Equal(t, int32(1), p[1].Leader)
	assert.Zero(t, p[1].ErrorCode)

	old := w.show(0, true, "t")
	assert.Len(t, old.Brokers, 2)
	assert.Equal(t, []int32{1}, old.Topics[0].Partitions[1].Replicas, "the oldest clients see living replicas only")
	assert.Equal(t, int16(9), old.Topics[0].Partitions[1].ErrorCode)

	w.conn.Listener = "EXTERNAL"
	for version, code := range map[int16]int16{5: 5, 6: 72, 12: 72} {
		p := w.show(version, false, "t").Topics[0].Partitions[2]
		assert.Equal(t, code, p.ErrorCode, "v%d: the leader lacks the listener", version)
		assert.Equal(t, int32(-1), p.Leader)
	}
}

// assign makes a topic with the given replicas.
func (w *world) assign(name string, replicas ...[]int32) {
	w.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
	for i, r := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), r
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
	}
	req.Topics = append(req.Topics, topic)
	require.Zero(w.t, w.ask(req).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
}

func TestTopicsAreCreatedOnlyWhenAllAllowIt(t *testing.T) {
	for _, c := range []struct {
		properties string
		version    int16
		flag       bool
		name       string
		code       int16
		created    bool
	}{
		{"", 4, true, "a", 3, true},
		{"", 1, false, "a", 3, true}, // Older requests have no flag.
		{"", 4, false, "a", 3, false},
		{"", 13, true, "a", 3, true},
		{"auto.create.topics.enable=false", 4, true, "a", 3, false},
		{"auto.create.topics.enable=false", 1, true, "a", 3, false},
		{"", 12, true, "a b", 17, false},
		{"", 12, true, "..", 17, false},
		{"", 12, true, "", 17, false},
		{"", 12, true, "ex_ists", 3, false},
		{"default.replication.factor=2", 12, true, "a", 3, false},
	} {
		t.Run(fmt.Sprintf("%q v%d flag %v %s", c.name, c.version, c.flag, c.properties), func(t *testing.T) {
			w := newWorld(t, c.properties)
			w.assign("ex.ists", []int32{1})
			got := w.show(c.version, c.flag, c.name)
			require.Len(t, got.Topics, 1)
			assert.Equal(t, c.code, got.Topics[0].ErrorCode)
			w.creator.wg.Wait()
			assert.Equal(t, c.created, w.store.Image().Topic(c.name) != nil)
		})
	}
}

func TestAutomaticTopicsHaveTheBrokersSettings(t *testing.T) {
	w := newWorld(t, "num.partitions=3\ndefault.replication.factor=2\noffsets.topic.num.partitions=4\noffsets.topic.replication.factor=1\n",
		broker(1, ""), broker(2, ""))
	w.show(12, true, "a", "__consumer_offsets")
	w.creator.wg.Wait()
	topic := w.store.Image().Topic("a")
	require.NotNil(t, topic)
	assert.Len(t, topic.Partitions, 3)
	assert.Len(t, topic.Partitions[0].Replicas, 2)
	assert.False(t, topic.Internal)
	offsets := w.store.Image().Topic("__consumer_offsets")
	require.NotNil(t, offsets)
	assert.True(t, offsets.Internal)
	assert.Len(t, offsets.Partitions, 4)
	assert.Equal(t, map[string]string{"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}, offsets.Configs)
	assert.True(t, w.show(12, false, "__consumer_offsets").Topics[0].IsInternal)
}

func TestInternalTopicsAreMadeAsKafkaMakesThem(t *testing.T) {
	w := newWorld(t, "transaction.state.log.min.isr=1\nshare.coordinator.state.topic.min.isr=1")
	for name, want := range map[string]map[string]string{
		"__transaction_state": {
			"cleanup.policy": "compact", "compression.type": "uncompressed", "segment.bytes": "104857600",
			"min.insync.replicas": "1", "unclean.leader.election.enable": "false",
		},
		"__share_group_state": {
			"cleanup.policy": "delete", "retention.ms": "-1", "compression.type": "producer", "segment.bytes": "104857600", "min.insync.replicas": "1",
		},
	} {
		got := w.internalConfigs(name, internalSettings(name))
		assert.Equal(t, want, got, name)
		assert.NoError(t, w.live.ValidateTopic(got))
	}
}

func TestATopicAskedForByManyIsCreatedOnce(t *testing.T) {
	w := newWorld(t, "")
	w.store.mu.Lock()
	w.store.hold = make(chan struct{})
	w.store.mu.Unlock()
	for range 20 {
		assert.Equal(t, int16(3), w.show(12, true, "a").Topics[0].ErrorCode, "nobody waits")
	}
	close(w.store.hold)
	w.creator.wg.Wait()
	assert.NotNil(t, w.store.Image().Topic("a"))
	assert.Equal(t, 1, w.store.changes)
}

func TestTopicsAskedForTogetherAreMadeByOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "", broker(1, ""), broker(2, ""))
		for i := range 20 {
			assert.Equal(t, int16(3), w.show(12, true, fmt.Sprintf("t%d", i)).Topics[0].ErrorCode)
		}
		time.Sleep(collectFor - 1)
		synctest.Wait()
		assert.Equal(t, int16(3), w.show(12, true, "t0").Topics[0].ErrorCode, "a client that asks again too soon")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, 20, w.store.Image().TopicCount())
		assert.Equal(t, 1, w.store.changes)
		leaders := map[int32]int{}
		for topic := range w.store.Image().Topics() {
			leaders[topic.Partitions[0].Leader]++
		}
		assert.Equal(t, map[int32]int{1: 10, 2: 10}, leaders, "they are spread over the brokers")

		w.show(12, true, "later")
		time.Sleep(collectFor)
		synctest.Wait()
		assert.NotNil(t, w.store.Image().Topic("later"), "what comes afterwards is made too")
	})
}

func TestInternalTopicsAreMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "transaction.state.log.replication.factor=1\noffsets.topic.replication.factor=1")
		asked := time.Now()
		w.CreateInternal(transactionState)
		synctest.Wait()
		assert.NotNil(t, w.store.Image().Topic(transactionState))
		w.show(12, true, consumerOffsets, "t")
		w.CreateInternal(consumerOffsets)
		synctest.Wait()
		assert.NotNil(t, w.store.Image().Topic(consumerOffsets), "though a client asked before in the ordinary way")
		assert.Zero(t, time.Since(asked))
	})
}

func TestClosingGivesUpAutomaticCreation(t *testing.T) {
	w := newWorld(t, "")
	w.store.mu.Lock()
	w.store.hold = make(chan struct{}) // The metadata store does not answer.
	w.store.mu.Unlock()
	w.show(12, true, "a")
	w.Close()
	w.show(12, true, "b")
	w.creator.wg.Wait()
	assert.Nil(t, w.store.Image().Topic("b"))
}

func TestTopicsByIDAndTwice(t *testing.T) {
	w := newWorld(t, "")
	w.create(1, "a", "b")
	a := w.store.Image().Topic("a").ID
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	for _, id := range []meta.TopicID{a, a, {1}, {1}} {
		topic := kmsg.NewMetadataRequestTopic()
		topic.TopicID = id
		req.Topics = append(req.Topics, topic)
	}
	name := "a"
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	got := w.ask(req).(*kmsg.MetadataResponse)
	require.Len(t, got.Topics, 2, "a topic gets one row")
	assert.Equal(t, "a", *got.Topics[0].Topic)
	assert.Equal(t, int16(100), got.Topics[1].ErrorCode)
	assert.Nil(t, got.Topics[1].Topic)
}
