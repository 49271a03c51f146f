package commitlog

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

// benchLog opens a log on the real disk whose files have been written before, as recycled ones have.
func benchLog(b *testing.B, change func(*Options)) *Log {
	b.Helper()
	o := Options{FS: vfs.OS(), Dir: b.TempDir(), ClusterID: "bench", SegmentBytes: 64 << 20, MinFree: -1}
	if change != nil {
		change(&o)
	}
	l, err := Open(o)
	require.NoError(b, err)
	require.NoError(b, l.Recover(func(Frame) error { return nil }))
	payload := testBatch(0, 0, 1, 512<<10, 1)
	for written := int64(0); written < 5*o.SegmentBytes; written += int64(len(payload)) {
		_, err := place(l, Header{Kind: Data}, Written, nil, payload)
		require.NoError(b, err)
		l.Kick()
		dropOld(b, l)
	}
	require.NoError(b, l.Commit(l.Next(), Synced))
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return l
}

// dropOld frees sealed segments, so that their files are recycled.
func dropOld(b *testing.B, l *Log) {
	if l.Stats().Segments < 4 {
		return
	}
	var old []SegmentID
	for _, s := range l.Manifest().Segments {
		if s.Sealed {
			old = append(old, s.ID)
		}
	}
	require.NoError(b, l.Drop(old))
}

// BenchmarkCommitAlone is one caller that waits for the disk each time.
func BenchmarkCommitAlone(b *testing.B) {
	for _, d := range []Durability{Synced, Written} {
		for _, size := range []int{1 << 10, 16 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("durability=%d/size=%dK", d, size>>10), func(b *testing.B) {
				l := benchLog(b, nil)
				payload := testBatch(0, 0, 1, size, 1)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					p, err := place(l, Header{Kind: Data}, d, nil, payload)
					if err == nil {
						err = l.Commit(p.End(), d)
					}
					if err != nil {
						b.Fatal(err)
					}
					if i%64 == 0 {
						dropOld(b, l)
					}
				}
			})
		}
	}
}

// BenchmarkCommitMany is many callers that share syncs.
func BenchmarkCommitMany(b *testing.B) {
	for _, callers := range []int{4, 64} {
		for _, size := range []int{1 << 10, 16 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("callers=%d/size=%dK", callers, size>>10), func(b *testing.B) {
				l := benchLog(b, nil)
				var next atomic.Int64
				var wg sync.WaitGroup
				b.SetBytes(int64(size))
				b.ReportAllocs()
				before := l.Stats()
				b.ResetTimer()
				for range callers {
					wg.Go(func() {
						payload := testBatch(0, 0, 1, size, 1)
						for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
							p, err := place(l, Header{Kind: Data}, Synced, nil, payload)
							if err == nil {
								err = l.Commit(p.End(), Synced)
							}
							if err != nil {
								b.Error(err)
								return
							}
							if n%64 == 0 {
								dropOld(b, l)
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				after := l.Stats()
				b.ReportMetric(float64(b.N)/float64(after.Syncs-before.Syncs), "appends/sync")
			})
		}
	}
}

// BenchmarkPlace is the append without the disk.
func BenchmarkPlace(b *testing.B) {
	for _, size := range []int{100, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			l := benchLog(b, func(o *Options) { o.FS, o.Dir = nullFS{vfs.NewMem(1)}, "data" })
			payload := testBatch(0, 0, 1, size, 1)
			tag := &Tag{}
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				p, err := place(l, Header{Kind: Data}, Synced, tag, payload)
				if err == nil && i%8 == 0 {
					err = l.Commit(p.End(), Synced)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPin reads payloads of 16 KiB.
func BenchmarkPin(b *testing.B) {
	for _, from := range []string{"ring", "file"} {
		b.Run(from, func(b *testing.B) {
			l := benchLog(b, nil)
			payload := testBatch(0, 0, 1, 16<<10, 1)
			var places []Place
			for range 64 {
				p, err := place(l, Header{Kind: Data}, Synced, nil, payload)
				require.NoError(b, err)
				places = append(places, p)
			}
			require.NoError(b, l.Commit(l.Next(), Synced))
			if from == "file" {
				for range 2 * l.o.RingBytes / len(payload) {
					_, err := place(l, Header{Kind: Data}, Synced, nil, payload)
					require.NoError(b, err)
				}
				require.NoError(b, l.Commit(l.Next(), Synced))
			}
			var p Pinned
			b.SetBytes(int64(len(places) * len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Pin(&p, places); err != nil {
					b.Fatal(err)
				}
				p.Release()
			}
		})
	}
}

// nullFS takes writes to segments without keeping them.
type nullFS struct{ *vfs.Mem }

type nullFile struct{ vfs.File }

func (f nullFile) WritevAt(bufs [][]byte, _ int64) (n int, err error) {
	for _, b := range bufs {
		n += len(b)
	}
	return n, nil
}

func (f nullFile) SyncData() error { return nil }

func (fs nullFS) Create(name string) (vfs.File, error) {
	f, err := fs.Mem.Create(name)
	return nullFile{f}, err
}

func (fs nullFS) OpenRW(name string) (vfs.File, error) {
	f, err := fs.Mem.OpenRW(name)
	return nullFile{f}, err
}

// TestAppendsTakeNoMemory is about the steady state: room, a frame, a commit.
func TestAppendsTakeNoMemory(t *testing.T) {
	l, _ := reopen(t, Options{FS: nullFS{vfs.NewMem(1)}, Dir: "data", MinFree: -1})
	payload := testBatch(0, 0, 1, 5000, 1)
	tag := &Tag{}
	for _, need := range []Durability{Synced, Written} {
		step := func() {
			p, err := place(l, Header{Kind: Data, OffsetCount: 1}, need, tag, payload)
			if err == nil {
				err = l.Commit(p.End(), need)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * l.o.RingBytes / len(payload) {
			step()
		}
		require.Zero(t, int(testing.AllocsPerRun(1000, step)))
	}
	require.NoError(t, l.Close())
}

// BenchmarkRecover scans a full open segment of 128 MiB, as an open after a kill does.
func BenchmarkRecover(b *testing.B) {
	for _, size := range []int{300, 16 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			o := Options{FS: vfs.OS(), Dir: b.TempDir(), MinFree: -1}
			l, err := Open(o)
			require.NoError(b, err)
			require.NoError(b, l.Recover(func(Frame) error { return nil }))
			defer func() { require.NoError(b, l.Close()) }()
			payload := testBatch(0, 0, 1, size, 1)
			frames := 0
			for l.Next() < firstBase+LSN(120<<20) {
				_, err := place(l, Header{Kind: Data}, Written, nil, payload)
				require.NoError(b, err)
				if frames++; frames == 500<<10 {
					break
				}
				if frames%1000 == 0 {
					require.NoError(b, l.Commit(l.Next(), Written))
				}
			}
			require.NoError(b, l.Commit(l.Next(), Synced))
			o.ReadOnly = true
			b.ReportAllocs()
			for b.Loop() {
				again, err := Open(o)
				require.NoError(b, err)
				n := 0
				require.NoError(b, again.Recover(func(Frame) error { n++; return nil }))
				require.Equal(b, frames, n)
				require.NoError(b, again.Close())
			}
			b.ReportMetric(float64(frames), "frames")
		})
	}
}

// BenchmarkFloor is a bare write and sync of a file that was written before: what BenchmarkCommitAlone is to be compared with, in the
// same run.
func BenchmarkFloor(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%dK", size>>10), func(b *testing.B) {
			const fileBytes = 64 << 20
			f, err := vfs.OS().Create(b.TempDir() + "/floor")
			require.NoError(b, err)
			buf := make([]byte, max(size, 1<<20))
			for off := int64(0); off < fileBytes; off += int64(len(buf)) {
				_, err := f.WriteAt(buf, off)
				require.NoError(b, err)
			}
			require.NoError(b, f.Sync())
			buf = buf[:size]
			b.SetBytes(int64(size))
			b.ResetTimer()
			for i := range b.N {
				_, err := f.WriteAt(buf, int64(i*size)%(fileBytes-int64(size)))
				if err == nil {
					err = f.SyncData()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			require.NoError(b, f.Close())
		})
	}
}
