package log_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

func TestDumpAndCheckShowWhatAStoreHoldsAlsoBeforeItsRecovery(t *testing.T) {
	mem := vfs.NewMem(1)
	fs := errorfs.New(mem)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	ps := storetest.Create(t, s, 1, "orders", 2, log.Fsync)
	storetest.Append(t, s, ps[0], storetest.Batch(t, batch.Spec{Producer: &batch.Producer{ID: 77, Sequence: 3}}, 1_700_000_000_000, "first value"))
	roll(t, s)
	storetest.Append(t, s, ps[1], storetest.Batch(t, batch.Spec{}, 1_700_000_000_000, "last value"))
	fs.CutPower(0)
	_ = s.Close() // The power is out.
	mem = mem.Crash(nil)

	changes := errorfs.New(mem)
	for _, stopped := range []bool{false, true} {
		var out strings.Builder
		require.NoError(t, log.Dump(changes, storetest.Dir, &out, log.DumpOptions{Frames: true, Batches: true, Records: true, Partitions: true, Partition: -1}))
		for _, want := range []string{"cluster test node 1", "partition orders-0", "producer 77", "create", "epoch", `value "first value"`, `value "last value"`, "segment 0000000000000001"} {
			require.Contains(t, out.String(), want)
		}
		out.Reset()
		require.NoError(t, log.Dump(changes, storetest.Dir, &out, log.DumpOptions{Records: true, Topic: "orders", Partition: 1}))
		require.NotContains(t, out.String(), "first value")
		require.Contains(t, out.String(), "last value")
		r, err := log.Check(changes, storetest.Dir)
		require.NoError(t, err)
		require.Empty(t, r.Problems)
		require.Equal(t, stopped, r.Clean)
		require.Equal(t, 3, r.Partitions)
		require.Equal(t, r.Batches, r.Records)
		require.Positive(t, r.Batches)
		if !stopped {
			require.Zero(t, changes.Count(errorfs.Mutations), "looking changes nothing")
			s, err := log.Open(storetest.Small(mem))
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
	}
}

func TestCheckReportsALostSegment(t *testing.T) {
	fs := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	storetest.Append(t, s, p, batchOf(t, 100))
	roll(t, s)
	require.NoError(t, s.Close())
	require.NoError(t, fs.Remove(storetest.Dir+"/0000000000000001.segment"))
	r, err := log.Check(fs, storetest.Dir)
	require.NoError(t, err)
	require.NotEmpty(t, r.Problems)
	s, err = log.Open(storetest.Small(fs))
	require.NoError(t, err, "a lost file does not keep the others from being served")
	defer func() { require.NoError(t, s.Close()) }()
	p = s.Partition(p.ID())
	require.EqualValues(t, 1, p.End(), "offsets are not given again")
	_, err = p.Read(0, 1, 1000, true)
	var damaged *log.StorageError
	require.ErrorAs(t, err, &damaged)
}

func TestRetentionOfManyPartitionsReadsEachDirectoryOnce(t *testing.T) {
	mem := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(mem))
	require.NoError(t, err)
	const n = 100
	ps := storetest.Create(t, s, 1, "orders", n, log.Fsync)
	for i, p := range ps {
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, int64(1000*i), "v"))
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, 1_000_000, "w"))
	}
	roll(t, s)
	require.NoError(t, s.Close())

	fs := errorfs.New(mem)
	s = storetest.OpenOn(t, storetest.Small(fs))
	for p := range s.Partitions() {
		p.SetHighWatermark(p.End())
	}
	keep := func(ms int64) func(*log.Partition) log.Retention {
		return func(*log.Partition) log.Retention { return log.Retention{Delete: true, Ms: ms, Bytes: -1} }
	}
	before := fs.Count(errorfs.Read)
	require.NoError(t, s.Retain(time.UnixMilli(1_000_000), keep(1_000_000)))
	first := fs.Count(errorfs.Read) - before
	require.Less(t, first, 4*n)
	before = fs.Count(errorfs.Read)
	require.NoError(t, s.Retain(time.UnixMilli(1_000_000), keep(1_000_000)))
	require.LessOrEqual(t, fs.Count(errorfs.Read)-before, 30, "what is known of the heads is not read again")
	require.NoError(t, s.Retain(time.UnixMilli(1_000_000), keep(950_500)))
	for i := range ps {
		want := int64(0)
		if i < 50 {
			want = 1
		}
		require.Equal(t, want, s.Partition(ps[i].ID()).Start(), "partition %d", i)
	}
}
