package replica_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// small gives a store small segments, so that a test rolls and seals many.
func small(o *log.Options) {
	s := storetest.Small(o.FS)
	o.SegmentBytes, o.SegmentEntries, o.RingBytes, o.BlockBytes = s.SegmentBytes, s.SegmentEntries, s.RingBytes, s.BlockBytes
	o.ReserveBytes, o.MinFree, o.CacheRows = s.ReserveBytes, s.MinFree, s.CacheRows
}

// visible reads all that a consumer may see of a partition.
func visible(p *replica.Partition) (all []byte, end int64, err error) {
	v, err := p.View(at(p.Log().Start()))
	if err != nil {
		return nil, 0, err
	}
	for next := v.Start; next < v.Upto; {
		b, err := p.Read(next, v.Upto, 1<<20, true)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, bytes.Join(b.Buffers(), nil)...)
		next = b.NextOffset()
		b.Release()
	}
	return all, v.Upto, nil
}

// powerLoss runs a random history on a disk, cuts the power, and reports whether
// readers find again what they had been shown.
func powerLoss(t *testing.T, seed uint64, lie bool) (kept bool) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	disk := vfs.NewMem(seed)
	fs := errorfs.New(disk)
	if lie {
		fs.StubSyncs(errorfs.Sync | errorfs.SyncData)
	}
	const partitions = 3
	n := replicatest.Open(t, replicatest.Options{FS: fs, Dir: storetest.Dir, Log: small})
	n.Create(replicatest.Topic{Name: "a", Partitions: partitions})
	var shown [partitions][]byte
	var ends [partitions]int64
	for range 20 + rnd.IntN(40) {
		i := rnd.IntN(partitions)
		p := n.Partition("a", int32(i))
		epoch, err := p.Writable(true)
		require.NoError(t, err)
		a, err := p.Append(records(t, 1+rnd.IntN(40)), epoch, log.Client)
		require.NoError(t, err)
		switch rnd.IntN(3) {
		case 0:
			require.NoError(t, n.Set.Commit(a.Ticket))
			require.Equal(t, a.LastOffset+1, p.HighWatermark())
		case 1:
			n.Set.Kick()
		}
		shown[i], ends[i], err = visible(p)
		require.NoError(t, err)
	}
	crashed := disk.Crash(rnd)
	require.Error(t, n.Store.Close(), "there is no power")
	n.Options.FS = crashed
	if !n.TryReopen() {
		return false
	}
	for i := range partitions {
		p := n.Partition("a", int32(i))
		if p.HighWatermark() < ends[i] {
			return false
		}
		if got, _, err := visible(p); err != nil || !bytes.HasPrefix(got, shown[i]) {
			return false
		}
		before := p.Log().End()
		require.Equal(t, before, produce(t, n, p, 1).BaseOffset)
	}
	return true
}

func TestWhatReadersHaveSeenSurvivesPowerLoss(t *testing.T) {
	for seed := range uint64(40) {
		require.True(t, powerLoss(t, seed, false), "seed %d", seed)
	}
}

// TestLyingDiskIsNoticed shows that the test above can fail: on a disk that does not
// do what a sync asks for, readers lose what they have seen.
func TestLyingDiskIsNoticed(t *testing.T) {
	lost := 0
	for seed := range uint64(20) {
		if !powerLoss(t, seed, true) {
			lost++
		}
	}
	require.Positive(t, lost)
}

func TestFullDiskRefusesUntilThereIsRoom(t *testing.T) {
	disk := vfs.NewMem(1)
	fs := errorfs.New(disk)
	n := replicatest.Open(t, replicatest.Options{FS: fs, Dir: storetest.Dir, Log: small})
	n.Create(replicatest.Topic{Name: "a"})
	p := n.Partition("a", 0)
	disk.SetCapacity(1)
	var err error
	for range 10000 {
		var epoch int32
		epoch, err = p.Writable(true)
		require.NoError(t, err)
		var a log.Appended
		if a, err = p.Append(records(t, 50), epoch, log.Client); err != nil {
			break
		}
		require.NoError(t, n.Set.Commit(a.Ticket))
	}
	require.ErrorIs(t, err, kerr.KafkaStorageError, "a full disk refuses with an error that clients try again")
	shown, end, err := visible(p)
	require.NoError(t, err)
	require.NotEmpty(t, shown, "reads go on")
	require.Equal(t, p.Log().End(), end)

	disk.SetCapacity(0)
	require.Eventually(t, func() bool {
		epoch, err := p.Writable(true)
		require.NoError(t, err)
		a, err := p.Append(records(t, 1), epoch, log.Client)
		return err == nil && n.Set.Commit(a.Ticket) == nil
	}, 10*time.Second, time.Millisecond, "writes heal when there is room")
}

func TestTopicThatFindsNoRoomIsMadeLater(t *testing.T) {
	disk := vfs.NewMem(1)
	n := replicatest.Open(t, replicatest.Options{FS: disk, Dir: storetest.Dir, Log: small})
	disk.SetCapacity(1)
	var name string
	var err error
	for i := 0; err == nil && i < 5000; i++ {
		name = fmt.Sprintf("topic-%d", i)
		_, err = n.TryCreate(replicatest.Topic{Name: name, Partitions: 100, ID: [16]byte{1, 14: byte(i >> 8), 15: byte(i)}})
	}
	require.ErrorIs(t, err, log.ErrDiskFull)
	topic := n.Set.Topic(name)
	require.NotNil(t, topic)
	_, err = replica.Find(topic, 99)
	require.ErrorIs(t, err, kerr.KafkaStorageError, "clients try again")

	disk.SetCapacity(0)
	require.Eventually(t, func() bool { return n.Set.Settle() == nil }, 10*time.Second, time.Millisecond)
	for i := range int32(100) {
		p, err := replica.Find(topic, i)
		require.NoError(t, err)
		require.True(t, p.Leads())
	}
	produce(t, n, n.Partition(name, 99), 1)
}

func TestABatchThatTheLogCannotTakeIsTooLarge(t *testing.T) {
	n := replicatest.Open(t, replicatest.Options{Log: small})
	n.Create(replicatest.Topic{Name: "a", Configs: map[string]string{"max.message.bytes": "100000000"}})
	p := n.Partition("a", 0)
	epoch, err := p.Writable(true)
	require.NoError(t, err)
	b := batch.NewBuilder(batch.Spec{})
	b.Append(1000, nil, make([]byte, 1<<20))
	whole, err := b.Batch()
	require.NoError(t, err)
	_, err = p.Append(whole, epoch, log.Client)
	require.ErrorIs(t, err, kerr.MessageTooLarge)
	require.EqualValues(t, 0, produce(t, n, p, 1).BaseOffset)
}
