package replica_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol/batch"
)

const self = replicatest.NodeID

// records builds a batch of n records.
func records(t testing.TB, n int) []byte {
	t.Helper()
	b := batch.NewBuilder(batch.Spec{})
	for i := range n {
		b.Append(int64(1000+i), []byte("key"), []byte("value"))
	}
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

// produce appends a batch of n records and waits until it is durable.
func produce(t testing.TB, n *replicatest.Node, p *replica.Partition, count int) log.Appended {
	t.Helper()
	epoch, err := p.Writable(true)
	require.NoError(t, err)
	a, err := p.Append(records(t, count), epoch, log.Client)
	require.NoError(t, err)
	require.NoError(t, n.Set.Commit(a.Ticket))
	require.NoError(t, p.Confirm(epoch))
	return a
}

func at(offset int64) replica.Position {
	return replica.Position{Offset: offset, CurrentEpoch: replica.NoEpoch, LastEpoch: replica.NoEpoch}
}

func TestPartitionIsFoundByNameAndID(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	id := n.Create(replicatest.Topic{Name: "a", Partitions: 3})
	topic := n.Set.Topic("a")
	require.NotNil(t, topic)
	require.Same(t, topic, n.Set.TopicByID(id))
	require.Equal(t, 3, topic.Partitions())
	for i := range int32(3) {
		p, err := replica.Find(topic, i)
		require.NoError(t, err)
		require.Equal(t, i, p.Index())
		require.True(t, p.Leads())
	}
	for _, i := range []int32{-1, 3, 99} {
		_, err := replica.Find(topic, i)
		require.ErrorIs(t, err, kerr.UnknownTopicOrPartition)
	}
	_, err := replica.Find(n.Set.Topic("b"), 0)
	require.ErrorIs(t, err, kerr.UnknownTopicOrPartition)
}

func TestPartitionElsewhereIsKnownButNotServed(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a", Replicas: []int32{7}})
	n.Raise(7, 4)
	topic := n.Set.Topic("a")
	_, err := replica.Find(topic, 0)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	leader, epoch := topic.Leader(0)
	require.EqualValues(t, 7, leader)
	require.EqualValues(t, 4, epoch)
	for range n.Store.Partitions() {
		t.Fatal("nothing is made for partitions that are elsewhere")
	}
}

func TestNothingIsReadBeforeItIsDurable(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	epoch, err := p.Writable(false)
	require.NoError(t, err)
	a, err := p.Append(records(t, 5), epoch, log.Client)
	require.NoError(t, err)
	v, err := p.View(at(0))
	require.NoError(t, err)
	require.LessOrEqual(t, v.Upto, v.HighWatermark)

	require.NoError(t, n.Set.Commit(a.Ticket))
	v, err = p.View(at(0))
	require.NoError(t, err)
	require.EqualValues(t, 5, v.HighWatermark)
	require.EqualValues(t, 5, v.LastStable)
	require.Positive(t, p.Available(0, v.Upto, 1000))
	b, err := p.Read(0, v.Upto, 1, true)
	require.NoError(t, err)
	require.EqualValues(t, 5, b.NextOffset())
	b.Release()
}

func TestViewRefusesWhatDoesNotFit(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	produce(t, n, p, 3)
	n.Raise(self, 3)
	produce(t, n, p, 7)
	for name, c := range map[string]struct {
		at   replica.Position
		want error
	}{
		"beyond the end":           {at(11), kerr.OffsetOutOfRange},
		"negative":                 {at(-1), kerr.OffsetOutOfRange},
		"older epoch":              {replica.Position{CurrentEpoch: 2, LastEpoch: -1}, kerr.FencedLeaderEpoch},
		"newer epoch":              {replica.Position{CurrentEpoch: 4, LastEpoch: -1}, kerr.UnknownLeaderEpoch},
		"the end":                  {at(10), nil},
		"the right epoch":          {replica.Position{CurrentEpoch: 3, LastEpoch: 3, Offset: 10}, nil},
		"last epoch that is newer": {replica.Position{CurrentEpoch: -1, LastEpoch: 9}, kerr.OffsetOutOfRange},
	} {
		_, err := p.View(c.at)
		require.ErrorIs(t, err, c.want, name)
	}
	// What was never written in an epoch diverges where that epoch ends.
	v, err := p.View(replica.Position{Offset: 4, CurrentEpoch: -1, LastEpoch: 2})
	require.NoError(t, err)
	require.True(t, v.Diverging)
	require.EqualValues(t, 0, v.Epoch)
	require.EqualValues(t, 3, v.End)
}

func TestEpochIsNotUsedAgainAfterReopening(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	produce(t, n, n.Partition("a", 0), 4)
	require.NoError(t, n.Store.Close())

	before := n.Image
	n.Reopen()
	p := n.Partition("a", 0)
	require.True(t, p.Leads())
	_, epoch := p.Leader()
	require.EqualValues(t, 1, epoch)
	require.EqualValues(t, 4, p.HighWatermark(), "all that was recovered is committed")
	require.EqualValues(t, 4, produce(t, n, p, 1).BaseOffset)
	found, end, err := p.EpochEnd(replica.NoEpoch, 0)
	require.NoError(t, err)
	require.EqualValues(t, 0, found)
	require.EqualValues(t, 4, end)

	// With metadata from before, the broker must not lead.
	require.NoError(t, n.Store.Close())
	n.Image = before
	n.ReopenAsIs()
	p = n.Partition("a", 0)
	require.False(t, p.Leads())
	_, err = p.Writable(false)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	require.EqualValues(t, 2, replica.EpochLag(n.Store, n.Image, self))
}

func TestDeletedTopicGoesAndMissingOneStays(t *testing.T) {
	var deleted []meta.TopicID
	var unclaimed []string
	n := replicatest.Open(t, replicatest.Options{Events: replica.Events{
		Deleted:   func(ids []meta.TopicID) { deleted = append(deleted, ids...) },
		Unclaimed: func(topic string, _ meta.TopicID, partitions int) { unclaimed = append(unclaimed, topic) },
	}})
	gone := n.Create(replicatest.Topic{Name: "gone", Partitions: 2})
	n.Create(replicatest.Topic{Name: "lost", Partitions: 2})
	away := n.Create(replicatest.Topic{Name: "away", Partitions: 2})
	old := n.Partition("gone", 0)
	produce(t, n, n.Partition("lost", 1), 3)

	var x replica.Watch
	w := replica.NewWaiter()
	x.Hang(w, old)
	n.Delete("gone")
	require.NotNil(t, w.Take(), "a deletion wakes who waits")
	require.Equal(t, []meta.TopicID{gone}, deleted)
	require.Nil(t, n.Set.Topic("gone"))
	require.Nil(t, n.Store.Partition(log.PartitionID{Topic: gone}))
	_, err := old.View(at(0))
	require.ErrorIs(t, err, kerr.UnknownTopicOrPartition)
	_, err = old.Writable(false)
	require.ErrorIs(t, err, kerr.UnknownTopicOrPartition)
	require.ErrorIs(t, old.Confirm(0), kerr.UnknownTopicOrPartition)

	lost := n.Partition("lost", 1)
	n.Lose("lost")
	require.Nil(t, n.Set.Topic("lost"))
	require.EqualValues(t, 3, lost.Log().End())

	n.DeleteWhileAway("away")
	n.Restart()
	require.Contains(t, deleted, away)
	require.Nil(t, n.Store.Partition(log.PartitionID{Topic: away}))
	require.Equal(t, []string{"lost"}, unclaimed)
	require.EqualValues(t, 3, n.Store.Partition(lost.Log().ID()).End(), "what the metadata has lost is kept")
}

func TestLostTopicIsServedAgainOnceItIsBack(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	id := n.Create(replicatest.Topic{Name: "a", Partitions: 2})
	produce(t, n, n.Partition("a", 1), 3)
	n.Lose("a")
	require.Nil(t, n.Set.Topic("a"))
	n.Create(replicatest.Topic{Name: "a", Partitions: 2, ID: id})
	require.EqualValues(t, 3, produce(t, n, n.Partition("a", 1), 1).BaseOffset)

	// The same goes for a replica that was taken away for a while.
	n.Elect("a", func(p *meta.Partition) { p.Replicas, p.ISR, p.Leader = []int32{2}, []int32{2}, 2 })
	_, err := replica.Find(n.Set.Topic("a"), 1)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	n.Elect("a", func(p *meta.Partition) { p.Replicas, p.ISR, p.Leader = []int32{self}, []int32{self}, self })
	require.EqualValues(t, 4, produce(t, n, n.Partition("a", 1), 1).BaseOffset)
}

func TestTopicMadeAgainIsAnother(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	first := n.Create(replicatest.Topic{Name: "a"})
	produce(t, n, n.Partition("a", 0), 3)
	n.Delete("a")
	second := n.Create(replicatest.Topic{Name: "a"})
	require.NotEqual(t, first, second)
	require.Nil(t, n.Set.TopicByID(first))
	require.EqualValues(t, 0, produce(t, n, n.Partition("a", 0), 1).BaseOffset)
}

func TestTopicGrows(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	produce(t, n, p, 2)
	n.Grow("a", 300)
	require.Same(t, p, n.Partition("a", 0))
	require.EqualValues(t, 0, produce(t, n, n.Partition("a", 299), 1).BaseOffset)
	count := 0
	for range n.Set.Partitions() {
		count++
	}
	require.Equal(t, 300, count)
}

func TestFencedBrokerDoesNotAcknowledge(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	epoch, err := p.Writable(true)
	require.NoError(t, err)
	a, err := p.Append(records(t, 1), epoch, log.Client)
	require.NoError(t, err)
	require.NoError(t, n.Set.Commit(a.Ticket))
	n.Fenced.Store(true)
	require.ErrorIs(t, p.Confirm(epoch), kerr.NotLeaderForPartition)
	_, err = p.Writable(false)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	_, err = p.View(at(0))
	require.NoError(t, err, "what is committed stays readable")
	n.Fenced.Store(false)
	require.NoError(t, p.Confirm(epoch))
}

func TestAppendOfAFormerEpochIsNotAcknowledged(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	epoch, err := p.Writable(true)
	require.NoError(t, err)
	n.Raise(self, 1)
	require.ErrorIs(t, p.Confirm(epoch), kerr.NotLeaderForPartition)
	_, err = p.Append(records(t, 1), epoch, log.Client)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	produce(t, n, p, 1)
}

func TestMinISRIsNeverMoreThanTheReplicas(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a", Configs: map[string]string{"min.insync.replicas": "2"}})
	produce(t, n, n.Partition("a", 0), 1)
}

func TestTooFewInSyncReplicas(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{
		Name: "a", Replicas: []int32{self, 2}, ISR: []int32{self}, Configs: map[string]string{"min.insync.replicas": "2"},
	})
	p := n.Partition("a", 0)
	_, err := p.Writable(true)
	require.ErrorIs(t, err, kerr.NotEnoughReplicas)
	epoch, err := p.Writable(false)
	require.NoError(t, err, "acks=1 asks for nobody else")
	a, err := p.Append(records(t, 1), epoch, log.Client)
	require.NoError(t, err)
	require.NoError(t, n.Set.Commit(a.Ticket))
	require.Zero(t, p.HighWatermark(), "the watermark waits for enough replicas")

	n.Configure("a", map[string]string{"min.insync.replicas": "1"})
	require.EqualValues(t, 1, p.HighWatermark())
}

func TestAcksAllWaitsForTheOtherReplicas(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a", Replicas: []int32{self, 2}})
	p := n.Partition("a", 0)
	epoch, err := p.Writable(true)
	require.NoError(t, err)
	a, err := p.Append(records(t, 1), epoch, log.Client)
	require.NoError(t, err)
	require.NoError(t, n.Set.Commit(a.Ticket))
	appends := []replica.Pending{{Partition: p, Epoch: epoch, End: 1}}
	replica.AwaitReplicated(appends, time.Millisecond, nil)
	require.ErrorIs(t, appends[0].Err, kerr.RequestTimedOut)

	stop := make(chan struct{})
	close(stop)
	appends[0].Err = nil
	replica.AwaitReplicated(appends, time.Hour, stop)
	require.ErrorIs(t, appends[0].Err, kerr.RequestTimedOut, "a server that shuts down does not wait")

	// The other replica leaves the in-sync set while the produce waits.
	done := make(chan error)
	go func() {
		appends := []replica.Pending{{Partition: p, Epoch: epoch, End: 1}}
		replica.AwaitReplicated(appends, time.Hour, nil)
		done <- appends[0].Err
	}()
	n.Elect("a", func(m *meta.Partition) { m.ISR = []int32{self} })
	require.NoError(t, <-done)

	// Or another broker becomes the leader.
	n.Elect("a", func(m *meta.Partition) { m.ISR = []int32{self, 2} })
	go func() {
		appends := []replica.Pending{{Partition: p, Epoch: epoch, End: 9}}
		replica.AwaitReplicated(appends, time.Hour, nil)
		done <- appends[0].Err
	}()
	n.Elect("a", func(m *meta.Partition) { m.Leader = 2 })
	require.ErrorIs(t, <-done, kerr.NotLeaderForPartition)
}

func TestSettingsReachTheLog(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"},
		replicatest.Topic{Name: "b", Configs: map[string]string{"mainstem.durability": "fsync"}},
		replicatest.Topic{Name: "__consumer_offsets"})
	durability := func(topic string) log.Durability { return n.Partition(topic, 0).Log().Durability() }
	require.Equal(t, log.Fsync, durability("a"))

	n.Configure("a", map[string]string{"mainstem.durability": "async", "max.message.bytes": "77"})
	require.Equal(t, log.Async, durability("a"))
	require.Equal(t, 77, n.Set.Topic("a").Config().MaxMessageBytes)
	n.Configure("a", nil)
	require.Equal(t, log.Fsync, durability("a"))

	require.NoError(t, n.Live.Apply(map[string]string{"message.max.bytes": "99", "mainstem.durability": "async"}, nil))
	require.NoError(t, n.Set.Settle())
	require.Equal(t, 99, n.Set.Topic("a").Config().MaxMessageBytes)
	require.Equal(t, log.Async, durability("a"))
	require.Equal(t, log.Fsync, durability("b"), "the topic's own setting is stronger")
	require.Equal(t, log.Fsync, durability("__consumer_offsets"), "the broker's own topics are always synced")
}

func TestMovedStartWakesReaders(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	produce(t, n, p, 10)
	var x replica.Watch
	w := replica.NewWaiter()
	x.Hang(w, p)
	start, err := p.StartFor(-1)
	require.NoError(t, err)
	require.EqualValues(t, 10, start)
	for _, bad := range []int64{-2, 11} {
		_, err := p.StartFor(bad)
		require.ErrorIs(t, err, kerr.OffsetOutOfRange)
	}
	ticket, err := n.Set.MoveStarts(map[*replica.Partition]int64{p: 7})
	require.NoError(t, err)
	require.NotNil(t, w.Take())
	require.NoError(t, n.Set.Commit(ticket))
	require.EqualValues(t, 7, p.Log().Start())
	_, err = p.View(at(6))
	require.ErrorIs(t, err, kerr.OffsetOutOfRange)
}

func TestRetentionFollowsTheTopicsPolicy(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: "short", Configs: map[string]string{"retention.ms": "1000"}},
		replicatest.Topic{Name: "compact", Configs: map[string]string{"retention.ms": "1000", "cleanup.policy": "compact"}},
		replicatest.Topic{Name: "lost", Configs: map[string]string{"retention.ms": "1000"}})
	var x replica.Watch
	w := replica.NewWaiter()
	for _, topic := range []string{"short", "compact", "lost"} {
		produce(t, n, n.Partition(topic, 0), 10)
	}
	lost := n.Partition("lost", 0)
	n.Lose("lost")
	x.Hang(w, n.Partition("short", 0))
	require.NoError(t, n.Set.Retain(time.Now()))
	require.EqualValues(t, 10, n.Partition("short", 0).Log().Start())
	require.NotNil(t, w.Take())
	require.Zero(t, n.Partition("compact", 0).Log().Start())
	require.Zero(t, lost.Log().Start())
}
