package broker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/broker/groups"
	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newJournal(n *replicatest.Node) *journal {
	p := n.Partition(groups.OffsetsTopic, 0)
	_, epoch := p.Leader()
	return &journal{set: n.Set, part: p, live: n.Live, epoch: epoch, loads: make(chan struct{}, 1), names: journalSettings{
		timeout: "offsets.commit.timeout.ms", buffer: "offsets.load.buffer.size", codec: "offsets.topic.compression.codec",
	}}
}

// loaded is what a journal has handed out, a line each.
func loaded(t testing.TB, j *journal) (lines []string) {
	t.Helper()
	require.NoError(t, j.Load(coordinator.Replay{
		Record: func(r coordinator.Record, producer int64) {
			line := string(r.Key) + "=" + string(r.Value)
			if r.Value == nil {
				line = string(r.Key) + " gone"
			}
			if producer >= 0 {
				line += fmt.Sprintf(" of %d", producer)
			}
			lines = append(lines, line)
		},
		End: func(m coordinator.Marker) {
			lines = append(lines, fmt.Sprintf("end of %d %t epoch %d", m.Producer.ID, m.Commit, m.CoordinatorEpoch))
		},
	}, nil))
	return lines
}

func record(key, value string) coordinator.Record {
	return coordinator.Record{Key: []byte(key), Value: []byte(value)}
}

func TestJournalGivesBackWhatItWasGiven(t *testing.T) {
	for _, codec := range []string{"0", "1", "2", "3", "4"} {
		n := replicatest.Open(t, replicatest.Options{Overrides: []string{"offsets.topic.compression.codec=" + codec, "offsets.load.buffer.size=100"}})
		n.Create(replicatest.Topic{Name: groups.OffsetsTopic})
		j := newJournal(n)
		now := time.Now().UnixMilli()
		end, err := j.Append([]coordinator.Record{record("a", "1"), record("b", "2"), {Key: []byte("a")}}, nil, now)
		require.NoError(t, err)
		require.Equal(t, int64(3), end)
		producer := coordinator.Producer{ID: 5, Epoch: 1}
		for range 2 {
			_, err = j.Append([]coordinator.Record{record("c", "3")}, &producer, now)
			require.NoError(t, err)
			end, err = j.AppendMarker(coordinator.Marker{Producer: producer, Commit: true, CoordinatorEpoch: 9}, now)
			require.NoError(t, err)
		}
		require.NoError(t, j.Commit(end))
		want := []string{"a=1", "b=2", "a gone", "c=3 of 5", "end of 5 true epoch 9", "c=3 of 5", "end of 5 true epoch 9"}
		require.Equal(t, want, loaded(t, j))
		n.Restart()
		require.Equal(t, want, loaded(t, newJournal(n)))
	}
}

func TestJournalOfAnEpochThatIsOverTakesNothing(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: groups.OffsetsTopic})
	j := newJournal(n)
	require.NoError(t, j.Confirm())
	n.Raise(replicatest.NodeID, 1)
	_, err := j.Append([]coordinator.Record{record("a", "1")}, nil, 0)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	require.ErrorIs(t, j.Confirm(), kerr.NotLeaderForPartition)

	j = newJournal(n)
	end, err := j.Append([]coordinator.Record{record("a", "1")}, nil, 0)
	require.NoError(t, err)
	n.Fenced.Store(true)
	require.ErrorIs(t, j.Commit(end), kerr.NotLeaderForPartition, "who may have been replaced does not acknowledge")
	require.ErrorIs(t, j.Load(coordinator.Replay{}, nil), kerr.NotLeaderForPartition)
}

func TestJournalRefusesAFencedProducerOnly(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: groups.OffsetsTopic})
	j := newJournal(n)
	_, err := j.AppendMarker(coordinator.Marker{Producer: coordinator.Producer{ID: 5, Epoch: 3}, CoordinatorEpoch: 2}, 0)
	require.NoError(t, err)
	_, err = j.Append([]coordinator.Record{record("c", "3")}, &coordinator.Producer{ID: 5, Epoch: 2}, 0)
	require.ErrorIs(t, err, kerr.InvalidProducerEpoch)
	_, err = j.AppendMarker(coordinator.Marker{Producer: coordinator.Producer{ID: 5, Epoch: 3}, CoordinatorEpoch: 1}, 0)
	require.ErrorIs(t, err, kerr.TransactionCoordinatorFenced)
	_, err = j.Append([]coordinator.Record{record("c", "3")}, nil, 0)
	require.NoError(t, err)
}

func TestLoadEndsWhenItIsStopped(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{})
	n.Create(replicatest.Topic{Name: groups.OffsetsTopic})
	j := newJournal(n)
	_, err := j.Append([]coordinator.Record{record("a", "1")}, nil, 0)
	require.NoError(t, err)
	stop := make(chan struct{})
	close(stop)
	require.ErrorIs(t, j.Load(coordinator.Replay{}, stop), errLoadStopped)
}

func TestLoadPutsBatchesTogetherThatLieInSeveralPieces(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{Overrides: []string{"offsets.load.buffer.size=1000000"}})
	n.Create(replicatest.Topic{Name: groups.OffsetsTopic})
	j := newJournal(n)
	var want []string
	for i := range 200 { // More than the blocks of the log's ring hold.
		value := strings.Repeat(string(rune('a'+i%26)), 20_000+i)
		want = append(want, fmt.Sprint(i, "=", value))
		end, err := j.Append([]coordinator.Record{record(fmt.Sprint(i), value)}, nil, 0)
		require.NoError(t, err)
		require.NoError(t, j.Commit(end))
	}
	require.Equal(t, want, loaded(t, j))
}

func TestPiecesAreCutIntoBatchesWhereverTheyEnd(t *testing.T) {
	var all []byte
	var want []string
	for i := range 3 {
		b := batch.NewBuilder(batch.Spec{})
		b.Append(0, nil, bytes.Repeat([]byte{byte(i)}, 10*i))
		whole, err := b.Batch()
		require.NoError(t, err)
		all = append(all, whole...)
		want = append(want, string(whole))
	}
	for first := range all {
		for second := first; second < len(all); second++ {
			p := pieces{more: [][]byte{all[:first], all[first:second], all[second:]}}
			var got []string
			for b, _, err := p.next(); b != nil || err != nil; b, _, err = p.next() {
				require.NoError(t, err)
				got = append(got, string(b))
			}
			require.Equal(t, want, got, "cut at %d and %d", first, second)
		}
	}
	p := pieces{more: [][]byte{all[:len(all)-1]}}
	var err error
	for b := []byte{0}; b != nil && err == nil; {
		b, _, err = p.next()
	}
	require.ErrorIs(t, err, batch.ErrShort)
}

// commitRecords are offsets of 10,000 groups, ten partitions each.
func commitRecords(from, n int) []coordinator.Record {
	records := make([]coordinator.Record, n)
	for i := range records {
		c := (from + i) % 100_000
		k := kmsg.OffsetCommitKey{Version: 1, Group: fmt.Sprintf("group-%d", c/10), Topic: "orders", Partition: int32(c % 10)}
		v := kmsg.OffsetCommitValue{Version: 4, Offset: int64(from + i), LeaderEpoch: 1, CommitTimestamp: 1, TopicID: [16]byte{1}}
		records[i] = coordinator.Record{Key: k.AppendTo(nil), Value: v.AppendTo(nil)}
	}
	return records
}

// BenchmarkLoad loads a million commits of 10,000 groups from the log of a broker
// that was restarted: ten of a batch, as clients send them, or one.
func BenchmarkLoad(b *testing.B) {
	const commits = 1_000_000
	for _, size := range []int{10, 1} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			n := replicatest.Open(b, replicatest.Options{Log: func(o *log.Options) { o.SegmentBytes, o.RingBytes = 128<<20, 64<<20 }})
			n.Create(replicatest.Topic{Name: groups.OffsetsTopic, Configs: map[string]string{"cleanup.policy": "compact"}})
			j := newJournal(n)
			var end int64
			var err error
			for i := 0; i < commits; i += size {
				end, err = j.Append(commitRecords(i, size), nil, int64(i))
				require.NoError(b, err)
			}
			require.NoError(b, j.Commit(end))
			n.Restart()
			j = newJournal(n)
			b.ResetTimer()
			for b.Loop() {
				loadOnce(b, j, commits)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/load")
		})
	}
}

func loadOnce(b *testing.B, j *journal, want int) {
	m := group.New(&group.Options{Settings: func() group.Settings { return group.Settings{} }})
	n := 0
	require.NoError(b, j.Load(coordinator.Replay{
		Record: func(r coordinator.Record, producer int64) {
			if n++; m.Replay(r, producer) != nil {
				b.Fatal("unreadable")
			}
		},
	}, nil))
	require.Equal(b, want, n)
}
