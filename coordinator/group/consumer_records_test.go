package group

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// kafkaRecords are records of consumer groups that Kafka has written.
func kafkaRecords(tb testing.TB) map[string]coordinator.Record {
	text, err := os.ReadFile("testdata/consumer_records.hex")
	require.NoError(tb, err)
	records := map[string]coordinator.Record{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		key, err := hex.DecodeString(words[1])
		require.NoError(tb, err)
		value, err := hex.DecodeString(words[2])
		require.NoError(tb, err)
		records[words[0]] = coordinator.Record{Key: key, Value: value}
	}
	return records
}

// Topics of the records.
var (
	lowTopic  = TopicID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	highTopic = TopicID{0x71, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

const assignedAt = 1796042805000

// consumerMachine is a machine without topics.
func consumerMachine() *Machine {
	settings := scriptedConsumers()
	return New(&Options{
		Settings: func() Settings { return Settings{MaxSize: 100, OffsetRetentionCheck: time.Hour} },
		Consumer: func(string) *ConsumerSettings { return settings },
		Cluster:  newWorld(),
	})
}

func TestRecordsOfConsumerGroupsAreKafkas(t *testing.T) {
	want := kafkaRecords(t)
	// written has what fn writes about a member m of a group g.
	written := func(fn func(g *Consumer, x *consumerMember, t *coordinator.Turn)) coordinator.Record {
		var got coordinator.Record
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			defer s.runtime.Close()
			done := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[bool]) {
				g := m.newConsumer("g")
				x := g.newMember("m")
				x.clientID, x.host, x.rebalance = "c", "/h", 5*time.Millisecond
				fn(g, x, t)
				coordinator.Deliver(t, p, true)
			})
			_, err := done.Wait(t.Context(), nil)
			require.NoError(t, err)
			entries := s.log.Entries(0)
			require.Len(t, entries, 1)
			got = entries[0].Records[0]
		})
		return got
	}
	str := func(s string) *string { return &s }
	low := func(p ...int32) assign.Set { return assign.Set{{Topic: lowTopic, Partitions: p}} }
	high := func(p ...int32) assign.Set { return assign.Set{{Topic: highTopic, Partitions: p}} }

	require.Equal(t, want["epoch"], written(func(g *Consumer, _ *consumerMember, t *coordinator.Turn) {
		g.epoch, g.hash = 7, 0x1122334455667788
		g.writeEpoch(t)
	}))
	require.Equal(t, want["epoch-without-topics"], written(func(g *Consumer, _ *consumerMember, t *coordinator.Turn) { g.writeEpoch(t) }))
	require.Equal(t, want["member"], written(func(g *Consumer, x *consumerMember, t *coordinator.Turn) {
		x.instance, x.rack, x.host, x.names = str("i"), str("r"), "/127.0.0.1", []string{"t", "u"}
		x.regex, x.rebalance, x.assignor = str("x.*"), 30*time.Second, str("range")
		g.writeMember(t, x)
	}))
	require.Equal(t, want["bare-member"], written(func(g *Consumer, x *consumerMember, t *coordinator.Turn) { g.writeMember(t, x) }))
	require.Equal(t, want["classic-member"], written(func(g *Consumer, x *consumerMember, t *coordinator.Turn) {
		x.names = []string{"t"}
		x.classic = &classicPart{10 * time.Second, []memberProtocol{{"range", subscription([]string{"t"})}}}
		g.writeMember(t, x)
	}))
	require.Equal(t, want["target-epoch"], written(func(g *Consumer, _ *consumerMember, t *coordinator.Turn) {
		g.targetEpoch, g.assignedAt = 7, assignedAt
		g.writeTargetEpoch(t)
	}))
	require.Equal(t, want["target"], written(func(g *Consumer, x *consumerMember, t *coordinator.Turn) {
		x.target = low(0, 1).Or(high(300))
		g.writeTarget(t, x)
	}))
	require.Equal(t, want["current"], written(func(g *Consumer, x *consumerMember, t *coordinator.Turn) {
		x.epoch, x.assigned = 2, low(0)
		g.own(x)
		x.epoch, x.revoking = 5, high(3)
		g.own(x)
		x.epoch, x.previous, x.state, x.assigned = 7, 6, memberUnrevoked, low(0, 1)
		g.own(x)
		g.writeCurrent(t, x)
	}))
	require.Equal(t, want["expression"], written(func(g *Consumer, _ *consumerMember, t *coordinator.Turn) {
		g.writePattern(t, "x.*", &pattern{topics: []string{"xa", "xb"}, version: 12, at: assignedAt})
	}))
}

func TestRecordsOfKafkaAreRead(t *testing.T) {
	m, records := consumerMachine(), kafkaRecords(t)
	for _, name := range []string{"old-topics", "epoch", "member", "target-epoch", "target", "current", "expression"} {
		require.NoError(t, m.Replay(records[name], coordinator.NoProducer), name)
	}
	g := m.groups["g"].(*Consumer)
	require.Equal(t, int32(7), g.epoch)
	require.Equal(t, int64(0x1122334455667788), g.hash)
	require.Equal(t, int32(7), g.targetEpoch)
	require.Equal(t, int64(assignedAt), g.assignedAt)
	require.True(t, g.oldRecords)
	require.Equal(t, []string{"xa", "xb"}, g.patterns["x.*"].topics)
	x := g.members["m"]
	require.Equal(t, "i r c /127.0.0.1 [t u] range", strings.Join([]string{
		*x.instance, *x.rack, x.clientID, x.host, "[" + strings.Join(x.names, " ") + "]", *x.assignor,
	}, " "))
	require.Same(t, x, g.static["i"])
	require.Equal(t, 30*time.Second, x.rebalance)
	require.Equal(t, []int32{300}, x.target.Of(highTopic))
	require.Equal(t, memberUnrevoked, x.state)
	require.Equal(t, ownership{x, 2}, g.owners[partitionID{lowTopic, 0}])
	require.Equal(t, ownership{x, 7}, g.owners[partitionID{lowTopic, 1}])
	require.Equal(t, ownership{x, 5}, g.owners[partitionID{highTopic, 3}])
	require.True(t, g.reads("xa"))

	// Records of before there were epochs for each partition.
	require.NoError(t, m.Replay(records["current-without-epochs"], coordinator.NoProducer))
	require.Equal(t, map[partitionID]ownership{{lowTopic, 0}: {x, 2}}, g.owners)
	require.NoError(t, m.Replay(records["classic-member"], coordinator.NoProducer))
	require.Equal(t, 1, g.votes["range"])
	require.Equal(t, 10*time.Second, x.classic.session)
	require.Empty(t, g.static)

	// Tombstones, in any order.
	for _, name := range []string{"expression", "member", "target", "current", "target-epoch", "old-topics"} {
		require.NoError(t, m.Replay(coordinator.Record{Key: records[name].Key}, coordinator.NoProducer))
	}
	require.Empty(t, g.members)
	require.Empty(t, g.owners)
	require.Empty(t, g.patterns)
	require.False(t, g.oldRecords)
	require.NoError(t, m.Replay(coordinator.Record{Key: records["epoch"].Key}, coordinator.NoProducer))
	require.Empty(t, m.groups)
}

func TestUnknownStatesBeginWithGivingBack(t *testing.T) {
	m, r := consumerMachine(), kafkaRecords(t)["current"]
	value := append([]byte{}, r.Value...)
	value[10] = 9
	require.NoError(t, m.Replay(coordinator.Record{Key: r.Key, Value: value}, coordinator.NoProducer))
	x := m.groups["g"].(*Consumer).members["m"]
	require.Equal(t, memberUnrevoked, x.state)
	require.Empty(t, x.assigned)
	require.Equal(t, 3, x.revoking.Len())
}

func TestRecordsOfOtherVersionsAreRefused(t *testing.T) {
	for name, r := range kafkaRecords(t) {
		value := append([]byte{0, 1}, r.Value[2:]...)
		err := consumerMachine().Replay(coordinator.Record{Key: r.Key, Value: value}, coordinator.NoProducer)
		require.ErrorIs(t, err, errMalformed, name)
	}
}

// FuzzConsumerRecords: whatever stands in the log, a machine does not break, and
// takes no more memory than the log has.
func FuzzConsumerRecords(f *testing.F) {
	for _, r := range kafkaRecords(f) {
		f.Add(r.Key, r.Value, []byte{})
		f.Add(r.Key, r.Value[:len(r.Value)/2], r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value, then []byte) {
		m := consumerMachine()
		for _, v := range [][]byte{value, then, nil} {
			_ = m.Replay(coordinator.Record{Key: key, Value: v}, coordinator.NoProducer)
		}
		for _, g := range m.groups {
			c, ok := g.(*Consumer)
			if !ok {
				continue
			}
			for at, o := range c.owners {
				require.Same(t, o.by, c.members[*o.by.id])
				require.True(t, o.by.assigned.Has(at.topic, at.partition) || o.by.revoking.Has(at.topic, at.partition))
			}
		}
	})
}
