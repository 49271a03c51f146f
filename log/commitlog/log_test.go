package commitlog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

func TestWhatIsCommittedIsReadBackAfterACleanStop(t *testing.T) {
	fs := vfs.NewMem(1)
	l, frames := reopen(t, smallOptions(fs))
	require.Empty(t, frames)
	require.True(t, l.Manifest().New)
	id := PartitionID{Topic: [16]byte{7}, Partition: 2}
	var want []found
	for i := range int64(200) {
		p, err := appendBatch(l, id, i, 61+int(i*37%3000))
		require.NoError(t, err)
		got, err := read(l, p)
		require.NoError(t, err)
		want = append(want, found{Header{Data, id, 3, i, 1, 1000 + i}, p, got})
		require.Equal(t, string(testBatch(i, 3, 1, 61+int(i*37%3000), uint64(i))), got)
	}
	require.Equal(t, want[len(want)-1].End(), l.Durable())
	for _, w := range want { // Most have left the memory.
		got, err := read(l, w.Place)
		require.NoError(t, err)
		require.Equal(t, w.payload, got)
	}
	last := want[len(want)-1].Segment
	require.NoError(t, l.Close())

	l, frames = reopen(t, smallOptions(fs))
	require.True(t, l.Manifest().Clean)
	require.Equal(t, want, frames)
	p, err := appendBatch(l, id, 200, 100)
	require.NoError(t, err)
	require.Equal(t, last, p.Segment, "the open segment goes on")
	require.Greater(t, p.LSN, want[199].LSN)
	require.NoError(t, l.Close())
}

func TestUncleanStopKeepsWhatWasCommitted(t *testing.T) {
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	id := PartitionID{Topic: [16]byte{7}, Partition: 2}
	var want []Place
	for i := range int64(100) {
		p, err := appendBatch(l, id, i, 500)
		require.NoError(t, err)
		want = append(want, p)
	}
	after := fs.Crash(nil)
	require.ErrorIs(t, l.Close(), vfs.ErrCrashed)
	l, frames := reopen(t, smallOptions(after))
	require.False(t, l.Manifest().Clean)
	require.Len(t, frames, len(want))
	for i, f := range frames {
		require.Equal(t, want[i], f.Place)
	}
	require.NoError(t, l.Close())
}
