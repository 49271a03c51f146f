package commitlog

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

func TestADirectoryOfAnotherClusterOrNodeIsRefused(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	require.NoError(t, l.Close())
	o := smallOptions(fs)
	o.ClusterID = "other"
	_, err := Open(o)
	require.ErrorIs(t, err, ErrIdentity)
	require.ErrorContains(t, err, `belongs to cluster "cluster", not to "other"`)
	o = smallOptions(fs)
	o.NodeID = 2
	_, err = Open(o)
	var identity *IdentityError
	require.ErrorAs(t, err, &identity)
	require.Equal(t, int32(1), identity.HaveNodeID)
	require.ErrorContains(t, err, "belongs to node 1, not to 2")
	l, _ = reopen(t, smallOptions(fs)) // The lock was given back.
	require.Equal(t, "cluster", l.Manifest().ClusterID)
	require.NoError(t, l.Close())
}

func TestADirectoryInUseIsRefused(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	_, err := Open(smallOptions(fs))
	require.ErrorIs(t, err, vfs.ErrLocked)
	o := smallOptions(fs)
	o.ReadOnly = true
	ro, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, ro.Close())
	require.NoError(t, l.Close())
}

func TestADirectoryWithSegmentsAndNoManifestIsRefused(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	require.NoError(t, l.Close())
	require.NoError(t, fs.Remove("data/"+manifestName))
	_, err := Open(smallOptions(fs))
	require.ErrorIs(t, err, ErrCorrupt)
	names, err := fs.List("data")
	require.NoError(t, err)
	require.Contains(t, names, segmentName(1))
}

func TestADamagedManifestIsRefusedAndNothingIsRemoved(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	_, err := appendBatch(l, PartitionID{}, 0, 100)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	before, err := fs.List("data")
	require.NoError(t, err)
	flip(t, fs, "data/"+manifestName, 30, 1)
	_, err = Open(smallOptions(fs))
	require.ErrorIs(t, err, ErrCorrupt)
	after, err := fs.List("data")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestOnlyFilesOfOursThatNothingNamesAreRemoved(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	for i := range int64(60) {
		_, err := appendBatch(l, PartitionID{}, i, 1000)
		require.NoError(t, err)
	}
	require.NoError(t, vfs.WriteAtomic(fs, "data/"+CheckpointName(77), nil))
	require.NoError(t, l.SetCheckpoint(CheckpointName(77), 77))
	require.NoError(t, vfs.WriteAtomic(fs, "data/"+CheckpointName(78), nil))
	require.NoError(t, l.SetCheckpoint(CheckpointName(78), 78))
	require.NoError(t, l.Close())
	named, err := fs.List("data")
	require.NoError(t, err)
	require.NotContains(t, named, CheckpointName(77), "replaced")

	foreign := []string{"README", "etcd", "0000.segment", "00000000000000zz.index", "x.tmp", "manifest.old"}
	ours := []string{"manifest.tmp", segmentName(900), IndexName(900), CheckpointName(5), IndexName(7) + ".tmp"}
	for _, name := range slices.Concat(foreign, ours) {
		require.NoError(t, vfs.WriteAtomic(fs, "data/"+name, []byte("x")))
	}
	var removed []string
	o := smallOptions(fs)
	o.Events.Removed = func(name string) { removed = append(removed, name) }
	l, err = Open(o)
	require.NoError(t, err)
	slices.Sort(ours)
	require.Equal(t, ours, removed)
	after, err := fs.List("data")
	require.NoError(t, err)
	want := slices.Concat(named, foreign)
	slices.Sort(want)
	require.Equal(t, want, after)
	require.NoError(t, l.Close())
}

func TestAReadOnlyOpenChangesNothing(t *testing.T) {
	d := newDamagedLog(t, 100)
	flip(t, d.fs, "data/"+segmentName(d.places[3].Segment), d.places[3].Offset+40, 1)
	names, err := d.fs.List("data")
	require.NoError(t, err)
	var contents []string
	for _, name := range names {
		b, err := readFile(d.fs, "data/"+name)
		require.NoError(t, err)
		contents = append(contents, string(b))
	}
	o := smallOptions(d.fs)
	o.ReadOnly, o.ClusterID = true, ""
	reported := 0
	o.Events.Corrupt = func(*CorruptError) { reported++ }
	l, frames := reopen(t, o)
	require.Len(t, frames, 99)
	require.Equal(t, 1, reported)
	for _, f := range frames {
		got, err := read(l, f.Place)
		require.NoError(t, err)
		require.Equal(t, f.payload, got)
	}
	_, err = read(l, d.places[3])
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = l.Reserve(Budget{Bytes: 1})
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, l.Drop([]SegmentID{1}), ErrUsage)
	require.NoError(t, l.Close())
	for i, name := range names {
		b, err := readFile(d.fs, "data/"+name)
		require.NoError(t, err)
		require.True(t, contents[i] == string(b), name)
	}
	after, err := d.fs.List("data")
	require.NoError(t, err)
	require.Equal(t, names, after)
}

func TestADamagedSegmentHeaderIsReportedAndItsFramesAreRead(t *testing.T) {
	d := newDamagedLog(t, 300)
	flip(t, d.fs, "data/"+segmentName(1), 30, 1)
	var reported []*CorruptError
	o := smallOptions(d.fs)
	o.Events.Corrupt = func(e *CorruptError) { reported = append(reported, e) }
	l, frames := reopen(t, o)
	require.Len(t, frames, 300)
	require.Len(t, reported, 1)
	require.Equal(t, Span{Segment: 1, To: segmentHeader}, reported[0].Span)
	require.NoError(t, l.Close())
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no filesystem":    func(o *Options) { o.FS = nil },
		"no directory":     func(o *Options) { o.Dir = "" },
		"tiny segments":    func(o *Options) { o.SegmentBytes = 1 },
		"huge segments":    func(o *Options) { o.SegmentBytes = 1 << 33 },
		"crooked blocks":   func(o *Options) { o.BlockBytes = 1001 },
		"no memory at all": func(o *Options) { o.RingBytes = o.BlockBytes },
	} {
		o := smallOptions(vfs.NewMem(1))
		change(&o)
		_, err := Open(o)
		require.ErrorIs(t, err, ErrUsage, name)
	}
	require.True(t, strings.HasPrefix(Kind(99).String(), "kind"))
}

func TestAnIdleNewLogTakesOneSegmentAndTheReserve(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, Options{FS: fs, Dir: "data"})
	_, err := appendBatch(l, PartitionID{}, 0, 100)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	free, total, err := fs.Space("data")
	require.NoError(t, err)
	require.Less(t, total-free, uint64(280e6), "a segment in use, a spare one, and the reserve")
}
