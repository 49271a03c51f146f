package admin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestPagesTogetherShowEveryPartitionOnce(t *testing.T) {
	w := newWorld(t, "max.request.partition.size.limit=50")
	var want []string
	for i := range 12 {
		name := fmt.Sprintf("t%02d", i)
		w.create(int32(1+i*3), name)
		for p := range 1 + i*3 {
			want = append(want, fmt.Sprintf("%s-%d", name, p))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, named := range []bool{false, true} {
		var got []string
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		for i := 11; named && i >= 0; i-- {
			req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: fmt.Sprintf("t%02d", i)})
		}
		for {
			req.ResponsePartitionLimit = rng.Int32N(60)
			resp := w.ask(req).(*kmsg.DescribeTopicPartitionsResponse)
			n := 0
			for _, topic := range resp.Topics {
				require.Zero(t, topic.ErrorCode)
				for _, p := range topic.Partitions {
					got = append(got, fmt.Sprintf("%s-%d", *topic.Topic, p.Partition))
					n++
				}
			}
			require.LessOrEqual(t, n, max(1, min(50, int(req.ResponsePartitionLimit))))
			if resp.NextCursor == nil {
				break
			}
			req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
		}
		assert.Equal(t, want, got)
	}
}

func TestACursorBeyondATopicGoesOnWithTheNext(t *testing.T) {
	w := newWorld(t, "")
	w.create(2, "a", "c")
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 10
	for _, c := range []struct {
		topic     string
		partition int32
		want      int
	}{{"b", 5, 2}, {"c", 1, 1}, {"c", 9, 0}, {"d", 0, 0}} {
		req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: c.topic, Partition: c.partition}
		n := 0
		for _, topic := range w.ask(req).(*kmsg.DescribeTopicPartitionsResponse).Topics {
			n += len(topic.Partitions)
		}
		assert.Equal(t, c.want, n, c.topic)
	}
}

func TestDirectoriesCountAPartitionsOwnBytes(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), broker(2, ""))
	w.assign("t", []int32{1}, []int32{2}, []int32{1})
	w.assign("u", []int32{2})
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Version = 5
	dir := w.ask(req).(*kmsg.DescribeLogDirsResponse).Dirs[0]
	assert.Equal(t, "/data", dir.Dir)
	assert.Equal(t, int64(100), dir.TotalBytes)
	assert.Equal(t, int64(40), dir.UsableBytes)
	require.Len(t, dir.Topics, 1, "what is on another broker is left out")
	require.Len(t, dir.Topics[0].Partitions, 2)
	assert.Equal(t, int64(102), dir.Topics[0].Partitions[1].Size)

	req.Topics = []kmsg.DescribeLogDirsRequestTopic{
		{Topic: "t", Partitions: []int32{2, 2, 99, -1}}, {Topic: "t", Partitions: []int32{2}}, {Topic: "nope", Partitions: []int32{0}},
	}
	dir = w.ask(req).(*kmsg.DescribeLogDirsResponse).Dirs[0]
	require.Len(t, dir.Topics, 1)
	assert.Len(t, dir.Topics[0].Partitions, 1)
}

func TestFencedBrokersAreShownWhenAsked(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), fenced(broker(2, "")))
	req := kmsg.NewPtrDescribeClusterRequest()
	req.Version = 2
	assert.Len(t, w.ask(req).(*kmsg.DescribeClusterResponse).Brokers, 1)
	req.IncludeFencedBrokers = true
	got := w.ask(req).(*kmsg.DescribeClusterResponse)
	require.Len(t, got.Brokers, 2)
	assert.True(t, got.Brokers[1].IsFenced)
}

func TestTheQuorumIsTheLivingBrokers(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), fenced(broker(2, "")), broker(3, ""))
	req := kmsg.NewPtrDescribeQuorumRequest()
	req.Version = 2
	req.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: clusterMetadata, Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: 0}}}}
	got := w.ask(req).(*kmsg.DescribeQuorumResponse)
	p := got.Topics[0].Partitions[0]
	assert.Zero(t, p.ErrorCode)
	assert.Equal(t, int32(1), p.LeaderID)
	assert.Len(t, p.CurrentVoters, 2)
	assert.Equal(t, w.store.Image().Revision(), p.HighWatermark)
	assert.Positive(t, p.CurrentVoters[0].LastFetchTimestamp)
	assert.Len(t, got.Nodes, 2)
	req.Version = 0
	assert.Equal(t, int64(-1), w.ask(req).(*kmsg.DescribeQuorumResponse).Topics[0].Partitions[0].CurrentVoters[0].LastFetchTimestamp)
}

func TestQuotaFiltersAreJudged(t *testing.T) {
	w := newWorld(t, "")
	name := "x"
	component := func(kind string, match kmsg.QuotasMatchType, value *string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: match, Match: value}
	}
	for _, c := range []struct {
		code   int16
		filter []kmsg.DescribeClientQuotasRequestComponent
	}{
		{0, nil},
		{0, []kmsg.DescribeClientQuotasRequestComponent{component("user", 0, &name), component("client-id", 2, nil)}},
		{42, []kmsg.DescribeClientQuotasRequestComponent{component("user", 0, nil)}},
		{42, []kmsg.DescribeClientQuotasRequestComponent{component("user", 1, &name)}},
		{42, []kmsg.DescribeClientQuotasRequestComponent{component("ip", 2, nil), component("user", 2, nil)}},
		{35, []kmsg.DescribeClientQuotasRequestComponent{component("banana", 2, nil)}},
	} {
		req := kmsg.NewPtrDescribeClientQuotasRequest()
		req.Version, req.Components = 1, c.filter
		got := w.ask(req).(*kmsg.DescribeClientQuotasResponse)
		assert.Equal(t, c.code, got.ErrorCode)
		assert.Equal(t, c.code == 0, got.Entries != nil, "null would be an error for clients")
	}
}

func someBrokers(racks ...string) []*meta.Broker {
	var list []*meta.Broker
	for i, rack := range racks {
		list = append(list, &meta.Broker{ID: int32(i + 1), Rack: rack})
	}
	return list
}

func TestReplicasAreSpreadEvenly(t *testing.T) {
	for _, racks := range [][]string{{""}, {"", "", ""}, {"a", "a", "b", "b", "c", "c"}, {"a", "a", "a", "b"}, {"a", "", "b", "", "c"}} {
		brokers := someBrokers(racks...)
		distinct := map[string]bool{}
		for _, r := range racks {
			distinct[r] = true
		}
		for replicas := 1; replicas <= len(brokers); replicas++ {
			for start := range 7 {
				n := len(brokers) * (len(brokers) - 1) * 2
				if n == 0 {
					n = 2
				}
				got, err := place(brokers, n, replicas, start)
				require.NoError(t, err)
				leaders := map[int32]int{}
				for _, ids := range got {
					require.Len(t, ids, replicas)
					leaders[ids[0]]++
					seen, seenRacks := map[int32]bool{}, map[string]bool{}
					for _, id := range ids {
						require.False(t, seen[id])
						seen[id] = true
						seenRacks[racks[id-1]] = true
					}
					if !distinct[""] {
						assert.Len(t, seenRacks, min(replicas, len(distinct)), "%v: other racks first", ids)
					}
				}
				for id, count := range leaders {
					assert.Equal(t, n/len(brokers), count, "leader %d", id)
				}
			}
		}
	}
	_, err := place(someBrokers("", ""), 1, 3, 0)
	assert.ErrorContains(t, err, "2 broker(s)")
	_, err = place(nil, 1, 1, 0)
	assert.ErrorContains(t, err, "All brokers are currently fenced")
}

func TestARefusedAssignmentSaysWhatItsBrokerIs(t *testing.T) {
	w := newWorld(t, "", broker(1, ""), fenced(broker(2, "")))
	image := w.store.Image()
	assert.ErrorContains(t, checkReplicas(image, []int32{1, 2}, 0), "broker 2, which is fenced")
	assert.ErrorContains(t, checkReplicas(image, []int32{1, 3}, 0), "broker 3, but no such broker is registered")
}

func TestFollowersOfOneLeaderDiffer(t *testing.T) {
	got, err := place(someBrokers("", "", "", ""), 24, 2, 0)
	require.NoError(t, err)
	followers := map[int32]map[int32]int{}
	for _, ids := range got {
		if followers[ids[0]] == nil {
			followers[ids[0]] = map[int32]int{}
		}
		followers[ids[0]][ids[1]]++
	}
	for leader, f := range followers {
		assert.Len(t, f, 3, "leader %d", leader)
	}
}
