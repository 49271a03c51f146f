package log_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// emptied is a stopped store with a partition of which nothing but the checkpoint
// tells: its records were deleted, and the segments that held a trace are freed.
func emptied(t *testing.T) (o log.Options, id log.PartitionID, end int64) {
	t.Helper()
	o = storetest.Small(vfs.NewMem(1))
	s, err := log.Open(o)
	require.NoError(t, err)
	empty := storetest.Create(t, s, 1, "emptied", 1, log.Fsync)[0]
	other := storetest.Create(t, s, 2, "other", 1, log.Fsync)[0]
	fill := func(p *log.Partition, batches int, keep int64) {
		for range batches {
			storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, 1000, strings.Repeat("x", 500)))
		}
		p.SetHighWatermark(p.End())
		_, err := s.MoveStarts(map[*log.Partition]int64{p: p.End() - keep})
		require.NoError(t, err)
	}
	fill(empty, 300, 0)
	fill(other, 600, 0)
	fill(other, 600, 10)
	// Segments may have been freed before this pass, and the last ones only by the next.
	require.Eventually(t, func() bool {
		require.NoError(t, s.Retain(time.Now(), func(*log.Partition) log.Retention { return log.Retention{} }))
		return s.Stats().Segments <= 2
	}, 30*time.Second, 10*time.Millisecond)
	id, end = empty.ID(), empty.End()
	require.NoError(t, s.Close())
	return o, id, end
}

// remove removes the files whose names end so.
func remove(t *testing.T, o log.Options, suffix string) {
	t.Helper()
	names, err := o.FS.List(o.Dir)
	require.NoError(t, err)
	found := false
	for _, n := range names {
		if strings.HasSuffix(n, suffix) {
			found = true
			require.NoError(t, o.FS.Remove(o.Dir+"/"+n))
		}
	}
	require.True(t, found, "a file *%s", suffix)
}

func TestALostCheckpointIsMadeUpForByItsCopy(t *testing.T) {
	o, id, end := emptied(t)
	for _, lost := range []string{".checkpoint", commitlog.CopyName(".checkpoint"), ".checkpoint"} {
		remove(t, o, lost)
		s := storetest.OpenOn(t, o)
		p := s.Partition(id)
		require.NotNil(t, p)
		require.Equal(t, "emptied", p.Topic())
		require.Equal(t, end, p.End())
		require.Equal(t, end, p.Start())
		require.NoError(t, s.Close())
	}
}

func TestOffsetsDoNotBeginAnewWhenNoCheckpointIsLeft(t *testing.T) {
	o, _, _ := emptied(t)
	remove(t, o, ".checkpoint")
	remove(t, o, commitlog.CopyName(".checkpoint"))
	for range 2 {
		_, err := log.Open(o)
		require.ErrorContains(t, err, "the checkpoint and its copy are damaged")
	}
	r, err := log.Check(o.FS, o.Dir)
	require.NoError(t, err)
	require.NotEmpty(t, r.Problems)
}
