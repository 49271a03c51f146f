package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

func testMachine() *Machine {
	return New(&Options{Settings: func() Settings { return Settings{MaxSize: 100} }})
}

func TestOffsetsOfAllVersionsAreRead(t *testing.T) {
	for version := int16(0); version <= offsetValue; version++ {
		key := kmsg.OffsetCommitKey{Version: min(version, 1), Group: "g", Topic: "topic", Partition: 3}
		value := kmsg.OffsetCommitValue{
			Version: version, Offset: 77, LeaderEpoch: 5, Metadata: "m", CommitTimestamp: 1000, ExpireTimestamp: 2000, TopicID: TopicID{1, 2},
		}
		m := testMachine()
		require.NoError(t, m.Replay(coordinator.Record{Key: key.AppendTo(nil), Value: value.AppendTo(nil)}, coordinator.NoProducer))
		want := committed{offset: 77, at: 1000, expires: -1, metadata: "m", epoch: -1}
		if version == 1 {
			want.expires = 2000
		}
		if version >= 3 {
			want.epoch = 5
		}
		if version >= 4 {
			want.topicID = TopicID{1, 2}
		}
		got, ok := m.offsets["g"].get("topic", 3)
		require.True(t, ok)
		require.Equal(t, want, got, "version %d", version)
		require.True(t, m.groups["g"].empty())
	}
}

func TestOffsetsAreWrittenAsKafkaDoes(t *testing.T) {
	for _, c := range []committed{
		{offset: 1, at: 2, expires: -1, metadata: "some", epoch: -1},
		{offset: 1, at: 2, expires: -1, epoch: 9, topicID: TopicID{15: 1}},
		{offset: -1, at: 2, expires: 10, metadata: "some", epoch: -1},
	} {
		want := kmsg.OffsetCommitValue{
			Version: offsetValue, Offset: c.offset, LeaderEpoch: c.epoch, Metadata: c.metadata, CommitTimestamp: c.at, TopicID: c.topicID,
		}
		if c.expires >= 0 {
			want.Version, want.ExpireTimestamp = expiringValue, c.expires
		}
		require.Equal(t, want.AppendTo(nil), c.value())
		var back committed
		require.NoError(t, back.read(c.value()))
		require.Equal(t, c, back)
	}
	key := kmsg.OffsetCommitKey{Version: 1, Group: "grün", Topic: "t", Partition: 1 << 20}
	require.Equal(t, key.AppendTo(nil), offsetKey("grün", place{"t", 1 << 20}))
}

func TestGroupsOfAllVersionsAreRead(t *testing.T) {
	protocol, leader := "range", "m1"
	for version := int16(0); version <= 4; version++ {
		value := kmsg.NewGroupMetadataValue()
		value.Version, value.ProtocolType, value.Generation, value.Protocol, value.Leader = version, consumerType, 4, &protocol, &leader
		value.CurrentStateTimestamp = 5000
		member := kmsg.NewGroupMetadataValueMember()
		member.MemberID, member.SessionTimeoutMillis, member.RebalanceTimeoutMillis = leader, 10_000, 60_000
		member.Subscription, member.Assignment = subscription([]string{"t"}), []byte("a")
		value.Members = append(value.Members, member)
		m := testMachine()
		require.NoError(t, m.Replay(coordinator.Record{Key: groupKey("g"), Value: value.AppendTo(nil)}, coordinator.NoProducer))
		g := m.groups["g"].(*Classic)
		require.Equal(t, stateStable, g.st)
		require.Equal(t, int32(4), g.generation)
		require.True(t, g.reads("t"))
		x := g.members[leader]
		require.Equal(t, 10*time.Second, x.session)
		if version == 0 {
			require.Equal(t, x.session, x.rebalance)
		} else {
			require.Equal(t, time.Minute, x.rebalance)
		}
		require.Equal(t, version < 2, g.since.IsZero())
		require.NoError(t, m.Replay(coordinator.Record{Key: groupKey("g")}, coordinator.NoProducer))
		require.Empty(t, m.groups)
	}
}

func TestGarbageAsASubscriptionIsNoError(t *testing.T) {
	for _, garbage := range [][]byte{nil, {}, {0}, {0, 0, 0, 0, 0, 9, 0}, {255, 255, 0, 0, 0, 0}, {0, 1, 127, 255, 255, 255, 0, 0}, {0, 0, 0, 0, 0, 1, 0, 9, 'a'}} {
		require.False(t, addSubscription(map[string]struct{}{}, garbage), "%v", garbage)
	}
	topics := map[string]struct{}{}
	require.True(t, addSubscription(topics, subscription([]string{"a", "b"})))
	require.Len(t, topics, 2)
}

// FuzzReplay feeds records that no coordinator has written.
func FuzzReplay(f *testing.F) {
	f.Add(offsetKey("g", place{"t", 1}), (&committed{expires: -1, topicID: TopicID{1}}).value(), false)
	f.Add(groupKey("g"), []byte{0, 3}, false)
	f.Add([]byte{0, 3}, []byte{0}, true)
	f.Fuzz(func(t *testing.T, key, value []byte, inTxn bool) {
		m := testMachine()
		producer := coordinator.NoProducer
		if inTxn {
			producer = 1
		}
		_ = m.Replay(coordinator.Record{Key: key, Value: value}, producer)
		_ = m.Replay(coordinator.Record{Key: key, Value: value}, coordinator.NoProducer)
		require.NoError(t, m.ReplayEnd(coordinator.Marker{Producer: coordinator.Producer{ID: 1}, Commit: true}))
		_ = m.Replay(coordinator.Record{Key: key}, coordinator.NoProducer)
		require.Empty(t, m.txns)
	})
}

// BenchmarkReplay loads commits of 10,000 groups that read 100 partitions each.
func BenchmarkReplay(b *testing.B) {
	var keys, values [][]byte
	for g := range 10_000 {
		for p := range 10 {
			c := committed{offset: int64(g), at: 1, expires: -1, epoch: 3, topicID: TopicID{1}}
			keys = append(keys, offsetKey("group-number-"+string(rune('a'+g%26))+time.Duration(g).String(), place{"some-topic", int32(p)}))
			values = append(values, c.value())
		}
	}
	m := testMachine()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i % len(keys)
		if err := m.Replay(coordinator.Record{Key: keys[n], Value: values[n]}, coordinator.NoProducer); err != nil {
			b.Fatal(err)
		}
	}
}
