package log_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// roll fills segments until what a test appended lies in sealed, indexed ones.
func roll(t *testing.T, s *log.Store) {
	t.Helper()
	filler := s.Partition(storetest.ID(1000, 0))
	if filler == nil {
		filler = storetest.Create(t, s, 1000, "filler", 1, log.Fsync)[0]
	}
	for sealed := s.Stats().Segments + 3; s.Stats().Segments < sealed || s.Stats().UnindexedSegments > 0; {
		storetest.Append(t, s, filler, batchOf(t, 3000))
	}
}

func TestReadsReturnWholeBatchesFromTheOneThatContainsTheOffset(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	var sizes []int
	for i := range 5 {
		b := storetest.Batch(t, batch.Spec{}, 1000, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"), strings.Repeat("x", 100*i))
		sizes = append(sizes, len(b))
		storetest.Append(t, s, p, b)
	}
	for _, where := range []string{"memory", "indexes"} {
		t.Run(where, func(t *testing.T) {
			read := func(offset, upto int64, maxBytes int, atLeastOne bool) (size int, next int64) {
				b, err := p.Read(offset, upto, maxBytes, atLeastOne)
				require.NoError(t, err)
				defer b.Release()
				storetest.Split(t, b)
				return b.Size(), b.NextOffset()
			}
			size, next := read(4, 15, 1<<20, false)
			require.Equal(t, sizes[1]+sizes[2]+sizes[3]+sizes[4], size)
			require.EqualValues(t, 15, next)
			size, next = read(4, 11, 1<<20, false)
			require.Equal(t, sizes[1]+sizes[2], size, "the batch that reaches beyond the bound is left out")
			require.EqualValues(t, 9, next)
			size, next = read(6, 15, sizes[2]+sizes[3], false)
			require.Equal(t, sizes[2]+sizes[3], size)
			require.EqualValues(t, 12, next)
			size, next = read(6, 15, 1, true)
			require.Equal(t, sizes[2], size)
			require.EqualValues(t, 9, next)
			size, next = read(6, 15, 1, false)
			require.Zero(t, size)
			require.EqualValues(t, 6, next)
			size, next = read(15, 15, 100, true)
			require.Zero(t, size)
			require.EqualValues(t, 15, next)
			for _, offset := range []int64{-1, 16} {
				_, err := p.Read(offset, 20, 100, true)
				require.ErrorIs(t, err, log.ErrOffsetOutOfRange)
				require.Equal(t, 7, p.Available(offset, 20, 7))
			}
			require.Zero(t, p.Available(15, 15, 100))
			require.Equal(t, 10, p.Available(0, 15, 10))
			if where == "memory" {
				require.Equal(t, sizes[3]+sizes[4], p.Available(10, 15, 1<<20))
				require.Equal(t, sizes[3], p.Available(10, 14, 1<<20))
			}
		})
		roll(t, s)
	}
}

func TestTimeIsLookedUpByRecordAlsoInCompressedBatches(t *testing.T) {
	for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			s := storetest.Open(t)
			p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
			for _, times := range [][]int64{{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}} {
				b := batch.NewBuilder(batch.Spec{Codec: codec})
				for _, at := range times {
					b.Append(at, nil, []byte("v"))
				}
				records, err := b.Batch()
				require.NoError(t, err)
				storetest.Append(t, s, p, records)
			}
			for range 2 {
				for ts, want := range map[int64]int64{0: 0, 1: 0, 5: 4, 6: 5, 7: 6, 12: 11, 13: -1} {
					offset, timestamp, epoch, ok, err := p.OffsetForTime(ts, p.End())
					require.NoError(t, err)
					require.Equal(t, want, offset, "time %d", ts)
					require.Equal(t, want >= 0, ok)
					if ok {
						require.Equal(t, max(ts, 1), timestamp)
						require.EqualValues(t, 1, epoch)
					}
				}
				_, _, _, ok, err := p.OffsetForTime(8, 7)
				require.NoError(t, err)
				require.False(t, ok, "beyond the bound")
				offset, timestamp, _, ok, err := p.MaxTimestamp(p.End())
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, [2]int64{11, 12}, [2]int64{offset, timestamp})
				roll(t, s)
			}
			ticket, err := s.MoveStarts(map[*log.Partition]int64{p: 3})
			require.NoError(t, err)
			require.NoError(t, s.Commit(ticket))
			offset, timestamp, _, _, err := p.OffsetForTime(1, p.End())
			require.NoError(t, err)
			require.Equal(t, [2]int64{3, 4}, [2]int64{offset, timestamp})
		})
	}
}

func TestWithLogAppendTimeABatchHasOneTime(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	for _, at := range []int64{500, 900} {
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{LogAppendTime: at}, 3, "a", "b"))
	}
	offset, timestamp, _, ok, err := p.OffsetForTime(501, p.End())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, [2]int64{2, 900}, [2]int64{offset, timestamp})
	_, _, _, ok, err = p.OffsetForTime(901, p.End())
	require.NoError(t, err)
	require.False(t, ok)
	offset, timestamp, _, _, err = p.MaxTimestamp(p.End())
	require.NoError(t, err)
	require.Equal(t, [2]int64{2, 900}, [2]int64{offset, timestamp})
}

func TestTheLargestTimestampIsFoundAmongBatchesWithoutOne(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	_, _, _, ok, err := p.MaxTimestamp(0)
	require.NoError(t, err)
	require.False(t, ok, "an empty log has none")
	for _, at := range []int64{-1, 70, 50, -1} {
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, at, "v"))
	}
	offset, timestamp, _, ok, err := p.MaxTimestamp(p.End())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, [2]int64{1, 70}, [2]int64{offset, timestamp})
}

func TestRetentionGoesBatchByBatchBelowTheHighWatermark(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	size := int64(0)
	for _, at := range []int64{1000, 5000, 2000, 9000} {
		b := storetest.Batch(t, batch.Spec{}, at, "v")
		size = int64(len(b))
		storetest.Append(t, s, p, b)
	}
	retain := func(now, ms, bytes int64, del bool) int64 {
		require.NoError(t, s.Retain(time.UnixMilli(now), func(*log.Partition) log.Retention { return log.Retention{Delete: del, Ms: ms, Bytes: bytes} }))
		return p.Start()
	}
	require.Zero(t, retain(1e6, 1, -1, true), "nothing is below the high watermark")
	p.SetHighWatermark(3)
	require.Zero(t, retain(1e6, 1, -1, false), "the policy does not delete")
	require.Zero(t, retain(1e6, -1, -1, true), "no limits")
	require.EqualValues(t, 1, retain(7000, 3000, -1, true), "it stops at the first batch that is young enough")
	require.EqualValues(t, 1, retain(8000, 3000, -1, true))
	require.EqualValues(t, 1, retain(0, -1, 3*size, true))
	require.EqualValues(t, 2, retain(0, -1, 2*size-1, true), "the smallest rest that has the limit")
	require.Equal(t, 2*size, p.Bytes())
	require.EqualValues(t, 3, retain(1e6, 3000, -1, true), "up to the high watermark")
	p.SetHighWatermark(4)
	require.EqualValues(t, 4, retain(1e6, 3000, -1, true), "an expired idle partition empties")
	require.Zero(t, p.Bytes())
	b, err := p.Read(4, 4, 100, true)
	require.NoError(t, err)
	require.Zero(t, b.Size())
	b.Release()
	_, err = p.Read(3, 4, 100, true)
	require.ErrorIs(t, err, log.ErrOffsetOutOfRange)
}

func TestDeadSegmentsAreFreedAlsoFromTheMiddle(t *testing.T) {
	freed := make(chan []string, 100)
	s := storetest.Open(t, func(o *log.Options) { o.Events.Freed = func(files []string) { freed <- files } })
	ps := storetest.Create(t, s, 1, "orders", 3, log.Fsync)
	storetest.Append(t, s, ps[0], storetest.Batch(t, batch.Spec{}, 1000, "stays")) // In the first segment.
	for s.Stats().Segments < 5 {
		storetest.Append(t, s, ps[1], batchOf(t, 5000))
	}
	storetest.Append(t, s, ps[2], storetest.Batch(t, batch.Spec{}, 1000, "stays too"))
	roll(t, s)
	before := s.Stats().Segments
	require.NoError(t, s.Delete([]log.PartitionID{ps[1].ID()}))
	files := <-freed
	require.NotEmpty(t, files)
	require.NotContains(t, files, "0000000000000001.log")
	require.Less(t, s.Stats().Segments, before)
	require.Equal(t, []string{"stays"}, storetest.Values(t, ps[0], 0))
	require.Equal(t, []string{"stays too"}, storetest.Values(t, ps[2], 0))
}

func TestTruncationRewindsProducersAndTransactions(t *testing.T) {
	fs := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	txn := func(id int64, seq int32, values ...string) {
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{Transactional: true, Producer: &batch.Producer{ID: id, Sequence: seq}}, 1000, values...))
	}
	mark := func(id int64, kind batch.MarkerType) {
		a, err := p.Append(log.Append{Records: batch.Marker{Type: kind, ProducerID: id, CoordinatorEpoch: 2, Timestamp: 1000}.Batch(), LeaderEpoch: 1, Origin: log.Coordinator})
		require.NoError(t, err)
		require.NoError(t, s.Commit(a.Ticket))
	}
	txn(1, 0, "a", "b") // 0, 1
	txn(2, 0, "c")      // 2
	mark(1, batch.Abort)
	txn(2, 1, "d") // 4
	mark(2, batch.Abort)
	txn(1, 2, "e") // 6
	p.SetHighWatermark(3)
	require.Len(t, p.Aborted(0, 7), 2)
	first, ok := p.FirstUnstable()
	require.True(t, ok)
	require.Zero(t, first, "the marker at 3 is not below the high watermark")

	require.NoError(t, p.Truncate(5, 1))
	check := func() {
		require.Equal(t, []log.AbortedTxn{{ProducerID: 1, First: 0, Last: 3, LastStable: 2}}, p.Aborted(0, 5))
		p.SetHighWatermark(5)
		first, ok = p.FirstUnstable()
		require.True(t, ok)
		require.EqualValues(t, 2, first)
		states := p.Producers()
		require.Len(t, states, 2)
		require.Equal(t, [3]int64{1, 1, -1}, [3]int64{states[0].ProducerID, int64(states[0].LastSequence), states[0].CurrentTxnStart})
		require.Equal(t, [3]int64{2, 1, 2}, [3]int64{states[1].ProducerID, int64(states[1].LastSequence), states[1].CurrentTxnStart})
	}
	check()
	require.NoError(t, s.Close())
	s = storetest.OpenOn(t, storetest.Small(fs))
	p = s.Partition(p.ID())
	check()
	require.NoError(t, s.BeginEpochs([]log.EpochStart{{ID: p.ID(), Epoch: 2}}))
	_, err = p.Append(log.Append{Records: storetest.Batch(t, batch.Spec{Producer: &batch.Producer{ID: 2, Sequence: 2}}, 1000, "x"), LeaderEpoch: 2})
	require.ErrorIs(t, err, log.ErrTxnState)
	for what, m := range map[error]batch.Marker{
		log.ErrCoordinatorEpoch: {ProducerID: 1, CoordinatorEpoch: 1},
		log.ErrProducerEpoch:    {ProducerID: 1, ProducerEpoch: -1, CoordinatorEpoch: 3},
	} {
		_, err = p.Append(log.Append{Records: m.Batch(), LeaderEpoch: 2, Origin: log.Coordinator})
		require.ErrorIs(t, err, what)
	}
}

func TestADamagedBatchCostsItsOffsetsOnly(t *testing.T) {
	fs := vfs.NewMem(1)
	var spans []log.CorruptSpan
	o := storetest.Small(fs)
	o.Events.Corrupt = func(c log.CorruptSpan) { spans = append(spans, c) }
	s, err := log.Open(o)
	require.NoError(t, err)
	ps := storetest.Create(t, s, 1, "orders", 2, log.Fsync)
	for i := range 10 {
		for _, p := range ps {
			storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, 1000, fmt.Sprintf("needle-%d-%d", p.ID().Partition, i), "second"))
		}
	}
	roll(t, s)
	require.NoError(t, s.Close())
	flip(t, fs, "needle-0-4")

	r, err := log.Check(fs, storetest.Dir)
	require.NoError(t, err)
	require.NotEmpty(t, r.Problems)
	s, err = log.Open(o)
	require.NoError(t, err)
	p := s.Partition(ps[0].ID())
	b, err := p.Read(0, p.End(), 1<<20, true)
	require.NoError(t, err)
	require.EqualValues(t, 8, b.NextOffset(), "up to the damage")
	b.Release()
	for _, offset := range []int64{8, 9} {
		_, err = p.Read(offset, p.End(), 1<<20, true)
		var damaged *log.StorageError
		require.ErrorAs(t, err, &damaged)
		require.Equal(t, [2]int64{8, 9}, [2]int64{damaged.First, damaged.Last})
	}
	require.Equal(t, 5, p.Available(8, p.End(), 5), "nobody waits at a damaged offset")
	require.Len(t, storetest.Values(t, p, 10), 10)
	require.Len(t, storetest.Values(t, s.Partition(ps[1].ID()), 0), 20)
	require.True(t, slices.ContainsFunc(spans, func(c log.CorruptSpan) bool { return c.Topic == "orders" && c.First == 8 && c.Last == 9 }), "%+v", spans)
	offset, _, _, ok, err := p.OffsetForTime(0, p.End())
	require.NoError(t, err)
	require.True(t, ok)
	require.Zero(t, offset)
	require.NoError(t, s.Close())
	r, err = log.Check(fs, storetest.Dir)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(r.Problems, func(s string) bool {
		return strings.Contains(s, "set aside: partition orders-0, offsets 8 to 9")
	}), "it is told for as long as it is there: %q", r.Problems)
}

// flip damages one bit of the first file that holds the text.
func flip(t *testing.T, fs vfs.FS, text string) {
	t.Helper()
	names, err := fs.List(storetest.Dir)
	require.NoError(t, err)
	for _, name := range names {
		f, err := fs.OpenRW(storetest.Dir + "/" + name)
		require.NoError(t, err)
		size, err := f.Size()
		require.NoError(t, err)
		b := make([]byte, size)
		_, err = f.ReadAt(b, 0)
		if err == nil || size == 0 {
			if at := strings.Index(string(b), text); at >= 0 {
				_, err = f.WriteAt([]byte{b[at] ^ 1}, int64(at))
				require.NoError(t, err)
				require.NoError(t, f.Sync())
				require.NoError(t, f.Close())
				return
			}
		}
		require.NoError(t, f.Close())
	}
	t.Fatalf("no file holds %q", text)
}

func TestDamageThatHidesItsHeaderIsReportedWithItsOffsets(t *testing.T) {
	o := storetest.Small(vfs.NewMem(1))
	s, err := log.Open(o)
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "a", 1, log.Fsync)[0]
	for range 500 {
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, 1000, strings.Repeat("x", 500)))
	}
	require.NoError(t, s.Close())
	f, err := o.FS.OpenRW(o.Dir + "/0000000000000001.segment")
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 64<<10), 4096)
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))

	var told []log.CorruptSpan
	o.Events.Corrupt = func(c log.CorruptSpan) { told = append(told, c) }
	s, err = log.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p = s.Partition(p.ID())
	for range 2 {
		var damaged *log.StorageError
		_, err = p.Read(0, p.End(), 1<<20, true)
		require.ErrorAs(t, err, &damaged)
	}
	i := slices.IndexFunc(told, func(c log.CorruptSpan) bool { return c.Topic == "a" })
	require.GreaterOrEqual(t, i, 0, "%+v", told)
	require.Equal(t, p.ID(), told[i].ID)
	require.Zero(t, told[i].First)
	require.Zero(t, told[i].Last)
	require.Equal(t, "0000000000000001.segment", told[i].File)
}
