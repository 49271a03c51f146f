package log_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// open opens a store with real sizes in a directory of the disk.
func openDisk(tb testing.TB, dir string) *log.Store {
	tb.Helper()
	s, err := log.Open(log.Options{FS: vfs.OS(), Dir: dir, ClusterID: "bench", NodeID: 1})
	require.NoError(tb, err)
	return s
}

// batchOf builds a batch of so many bytes of values.
func batchOf(tb testing.TB, size int) []byte {
	return storetest.Batch(tb, batch.Spec{}, 1_700_000_000_000, string(bytes.Repeat([]byte{'v'}, size)))
}

func BenchmarkAppend(b *testing.B) {
	for _, partitions := range []int32{1, 100} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			s := openDisk(b, b.TempDir())
			ps := storetest.Create(b, s, 1, "bench", partitions, log.Async)
			records := batchOf(b, 1024)
			b.SetBytes(int64(len(records)))
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				a, err := ps[i%len(ps)].Append(log.Append{Records: records, LeaderEpoch: 1})
				if err != nil {
					b.Fatal(err)
				}
				if i%256 == 255 {
					if err := s.Commit(a.Ticket); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.StopTimer()
			require.NoError(b, s.Close())
		})
	}
}

func BenchmarkAppendAndSync(b *testing.B) {
	s := openDisk(b, b.TempDir())
	ps := storetest.Create(b, s, 1, "bench", 100, log.Fsync)
	records := batchOf(b, 1024)
	b.SetBytes(int64(len(records)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		a, err := ps[i%len(ps)].Append(log.Append{Records: records, LeaderEpoch: 1})
		if err == nil {
			err = s.Commit(a.Ticket)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, s.Close())
}

func BenchmarkRead(b *testing.B) {
	s := openDisk(b, b.TempDir())
	ps := storetest.Create(b, s, 1, "bench", 10, log.Async)
	const batches = 40_000 // 400 MB: the first ones are in sealed segments.
	for i := range batches {
		a, err := ps[i%len(ps)].Append(log.Append{Records: batchOf(b, 10_000), LeaderEpoch: 1})
		require.NoError(b, err)
		if i%64 == 63 {
			require.NoError(b, s.Commit(a.Ticket))
		}
	}
	for name, from := range map[string]int64{"cold": 0, "hot": batches/10 - 100} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			at, p := from, ps[3]
			for b.Loop() {
				r, err := p.Read(at, p.End(), 512<<10, true)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(r.Size()))
				if at = r.NextOffset(); at > from+90 {
					at = from
				}
				r.Release()
			}
		})
	}
	require.NoError(b, s.Close())
}

func TestAppendAllocatesNothingPerBatch(t *testing.T) {
	s := storetest.Open(t, func(o *log.Options) { o.SegmentBytes, o.RingBytes = 64<<20, 32<<20 })
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	records := batchOf(t, 100)
	allocs := testing.AllocsPerRun(150, func() {
		a, err := p.Append(log.Append{Records: records, LeaderEpoch: 1})
		if err == nil {
			err = s.Commit(a.Ticket)
		}
		require.NoError(t, err)
	})
	require.LessOrEqual(t, allocs, 3.0) // What a filesystem in memory needs for a write; entries double now and then.
}

// TestManyPartitions reports what many partitions cost; MAINSTEM_PARTITIONS
// says how many, 100,000 is the design point.
func TestManyPartitions(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("MAINSTEM_PARTITIONS"))
	if err != nil {
		n = 2000
	}
	const segments = 10
	dir := t.TempDir()
	open := func() *log.Store {
		s, err := log.Open(log.Options{FS: vfs.OS(), Dir: dir, ClusterID: "bench", NodeID: 1, SegmentBytes: 128 << 20, SegmentEntries: n + n/2})
		require.NoError(t, err)
		return s
	}
	before := heap()
	s := open()
	specs := make([]log.CreateSpec, n)
	for i := range specs {
		specs[i] = log.CreateSpec{ID: storetest.ID(uint64(i/50+1), int32(i%50)), Name: fmt.Sprintf("topic-%d", i/50), LeaderEpoch: 1}
	}
	begin := time.Now()
	require.NoError(t, s.Create(specs))
	t.Logf("%d partitions created in %v", n, time.Since(begin))
	begin = time.Now()
	fill(t, s, specs, segments)
	t.Logf("%d batches appended in %v", n*segments, time.Since(begin))
	st := s.Stats()
	t.Logf("heap: %d bytes a partition with %d entries in memory; indexes: %d bytes a partition and segment", (heap()-before)/int64(n), st.EntriesInMemory, st.IndexBytes/int64(max(st.Segments-1, 1)*n))
	for what, stop := range map[string]func(){"clean stop": func() { require.NoError(t, s.Close()) }} {
		stop()
		begin = time.Now()
		s = open()
		t.Logf("opened after a %s in %v, heap: %d bytes a partition", what, time.Since(begin), (heap()-before)/int64(n))
		require.Equal(t, n, s.Stats().Partitions)
	}
	begin = time.Now()
	ids := make([]log.PartitionID, n)
	for i := range ids {
		ids[i] = specs[i].ID
	}
	require.NoError(t, s.Delete(ids))
	t.Logf("deleted in %v", time.Since(begin))
	require.NoError(t, s.Close())
}

// fill appends a batch of an idempotent producer to each partition, once a segment.
func fill(t *testing.T, s *log.Store, specs []log.CreateSpec, segments int) {
	for round := range segments {
		var ticket log.Ticket
		for i := range specs {
			p := s.Partition(specs[i].ID)
			records := storetest.Batch(t, batch.Spec{Producer: &batch.Producer{ID: int64(i), Sequence: int32(round)}}, 1_700_000_000_000, "value")
			a, err := p.Append(log.Append{Records: records, LeaderEpoch: 1})
			require.NoError(t, err)
			ticket = ticket.Max(a.Ticket)
			if i%1000 == 999 {
				require.NoError(t, s.Commit(ticket))
			}
		}
		require.NoError(t, s.Commit(ticket))
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
