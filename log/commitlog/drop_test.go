package commitlog

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

func TestADroppedSegmentGoesAfterItsLastReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := errorfs.New(vfs.NewMem(1))
		o := smallOptions(fs)
		freed := map[SegmentID]bool{}
		o.Events.Freed = func(id SegmentID, recycled bool) { freed[id] = recycled }
		l, _ := reopen(t, o)
		var places []Place
		for i := range int64(300) {
			p, err := appendBatch(l, PartitionID{}, i, 1000)
			require.NoError(t, err)
			places = append(places, p)
		}
		synctest.Wait()
		first := places[0].Segment
		name := "data/" + IndexName(first)
		require.NoError(t, vfs.WriteAtomic(fs, name, []byte("index")))
		require.NoError(t, l.AttachIndex(first, IndexName(first)))
		s, err := l.acquire(first) // A reader at work.
		require.NoError(t, err)
		require.NoError(t, l.Drop([]SegmentID{first, first, 12345}))
		synctest.Wait()
		require.Empty(t, freed)
		_, err = fs.Stat(name)
		require.Error(t, err, "the index goes at once")
		_, err = read(l, places[0])
		require.ErrorIs(t, err, ErrSegmentGone)
		require.ErrorIs(t, l.Scan(first, nil), ErrSegmentGone)
		require.ErrorIs(t, l.AttachIndex(first, "x"), ErrSegmentGone)
		l.release(s)
		synctest.Wait()
		require.Equal(t, map[SegmentID]bool{first: true}, freed)

		// At most two wait; the next segments are made of them without taking space.
		require.NoError(t, l.Drop([]SegmentID{2, 3, 4, 5}))
		synctest.Wait()
		require.Len(t, l.recyclable, 2)
		allocated := fs.Count(errorfs.Create)
		for i := range int64(60) {
			_, err := appendBatch(l, PartitionID{}, 300+i, 1000)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Empty(t, l.recyclable)
		creates := 0
		fs.Watch(func(op errorfs.Op) {
			if op.Kind == errorfs.Create && strings.HasSuffix(op.Path, segmentSuffix) {
				creates++
			}
		})
		require.NoError(t, l.Drop([]SegmentID{6, 7}))
		for i := range int64(50) {
			_, err := appendBatch(l, PartitionID{}, 400+i, 1000)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Zero(t, creates)
		require.Positive(t, allocated)
		fs.Watch(nil)
		require.ErrorIs(t, func() error { _, err := read(l, places[40]); return err }(), ErrSegmentGone)
		require.NoError(t, l.Close())
	})
}

func TestTheOpenSegmentIsNotDropped(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	p, err := appendBatch(l, PartitionID{}, 0, 100)
	require.NoError(t, err)
	require.NoError(t, l.Drop([]SegmentID{p.Segment}))
	_, err = read(l, p)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestSealClosesTheOpenSegmentAndGivesItsSpaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem(1)
		o := smallOptions(fs)
		var sealed []SegmentInfo
		o.OnSeal = func(s SegmentInfo) { sealed = append(sealed, s) }
		l, _ := reopen(t, o)
		require.NoError(t, l.Seal())
		require.Empty(t, sealed, "there is nothing in it")
		p, err := appendBatch(l, PartitionID{}, 0, 5000)
		require.NoError(t, err)
		require.NoError(t, l.Seal())
		require.Len(t, sealed, 1)
		require.Equal(t, p.Segment, sealed[0].ID)
		require.Equal(t, 1, sealed[0].Frames)
		require.Greater(t, sealed[0].End, p.End())
		require.NoError(t, l.Seal())
		require.Len(t, sealed, 1)
		l.wakeKeeper()
		synctest.Wait()
		info, err := fs.Stat("data/" + segmentName(p.Segment))
		require.NoError(t, err)
		require.Equal(t, alignUp(sealed[0].EndOffset, pageSize), info.Size)
		q, err := appendBatch(l, PartitionID{}, 1, 5000)
		require.NoError(t, err)
		require.NotEqual(t, p.Segment, q.Segment)
		got, err := read(l, p)
		require.NoError(t, err)
		require.Len(t, got, 5000)
		require.NoError(t, l.Close())
		l, frames := reopen(t, o)
		require.Len(t, frames, 2)
		require.NoError(t, l.Close())
	})
}

// TestReadersNeverSeeOtherBytes reads at random while the log is appended to, its memory is overtaken and its files are recycled.
func TestReadersNeverSeeOtherBytes(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	var mu sync.Mutex
	var known []found
	done := make(chan struct{})
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 5))
			var held Pinned
			defer held.Release()
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				n := len(known)
				if n == 0 {
					mu.Unlock()
					continue
				}
				first := max(n-1-rng.IntN(min(n, 100)), 0)
				some := append([]found(nil), known[first:min(first+5, n)]...)
				mu.Unlock()
				held.Release() // Until now it was held.
				var places []Place
				var want string
				for _, f := range some {
					places = append(places, f.Place)
				}
				got, err := l.Pin(&held, places)
				for _, f := range some[:got] {
					want += f.payload
				}
				var have []byte
				for _, b := range held.Buffers() {
					have = append(have, b...)
				}
				if want != string(have) || held.Size() != len(have) {
					t.Error("other bytes")
					return
				}
				if err != nil && !isGone(err) {
					t.Error(err)
					return
				}
				head := make([]byte, batchHead)
				if _, err := l.ReadHead(places[0], head); err == nil && string(head) != some[0].payload[:batchHead] {
					t.Error("another head")
				}
			}
		})
	}
	for i := range int64(3000) {
		p, err := appendBatch(l, PartitionID{}, i, 100+int(i*31%3000))
		require.NoError(t, err)
		mu.Lock()
		known = append(known, found{Place: p, payload: string(testBatch(i, 3, 1, 100+int(i*31%3000), uint64(i)))})
		mu.Unlock()
		if i%50 == 0 {
			m := l.Manifest()
			for _, s := range m.Segments[:max(len(m.Segments)-6, 0)] {
				require.NoError(t, l.Drop([]SegmentID{s.ID}))
			}
		}
	}
	close(done)
	wg.Wait()
	require.Zero(t, l.ring.held.Load())
	require.LessOrEqual(t, len(l.ring.spare), len(l.ring.slots))
	stats := l.Stats()
	require.Positive(t, stats.RingHits)
	require.NoError(t, l.Close())
}

func isGone(err error) bool {
	return err != nil && strings.Contains(err.Error(), ErrSegmentGone.Error())
}

func TestReadersHoldABoundedPartOfTheMemory(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	var pins []*Pinned
	var places []Place
	for i := range int64(200) {
		p, err := appendBatch(l, PartitionID{}, i, 5000)
		require.NoError(t, err)
		places = append(places, p)
		pin := &Pinned{}
		_, err = l.Pin(pin, []Place{p})
		require.NoError(t, err)
		pins = append(pins, pin)
		require.LessOrEqual(t, l.ring.held.Load(), l.ring.holdLimit)
	}
	for i, pin := range pins {
		var got []byte
		for _, b := range pin.Buffers() {
			got = append(got, b...)
		}
		require.Equal(t, string(testBatch(int64(i), 3, 1, 5000, uint64(i))), string(got))
		pin.Release()
	}
	require.Zero(t, l.ring.held.Load())
	_, err := read(l, places[0])
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestSmallPayloadsAreHandedOutInOnePiece(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	var places []Place
	var want []byte
	for i := range int64(100) {
		size := 100 + int(i)
		if i%10 == 5 {
			size = 5000 // From the ring: in several pieces, each of its own.
		}
		p, err := appendBatch(l, PartitionID{}, i, size)
		require.NoError(t, err)
		places = append(places, p)
		want = append(want, testBatch(i, 3, 1, size, uint64(i))...)
	}
	var p Pinned
	for range 2 {
		n, err := l.Pin(&p, places)
		require.NoError(t, err)
		require.Equal(t, 100, n)
		require.Equal(t, len(want), p.Size())
		require.Less(t, len(p.Buffers()), 100)
		require.Equal(t, want, slices.Concat(p.Buffers()...))
		p.Release()
		require.Zero(t, p.Size())
	}
	n, err := l.Pin(&p, places[96:])
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Len(t, p.Buffers(), 1)
	p.Release()
	require.NoError(t, l.Close())
}

func TestWhatIsNotWrittenYetIsReadFromMemory(t *testing.T) {
	l, _ := reopen(t, smallOptions(vfs.NewMem(1)))
	p, err := place(l, Header{Kind: Data}, Synced, nil, testBatch(0, 1, 1, 3000, 0))
	require.NoError(t, err)
	require.Less(t, l.Written(), p.End())
	got, err := read(l, p)
	require.NoError(t, err)
	require.Equal(t, string(testBatch(0, 1, 1, 3000, 0)), got)
	require.NoError(t, l.Scan(p.Segment, func(Frame) error { t.Error("it is not in the file"); return nil }))
	require.NoError(t, l.Close())
}

// countedFS counts the segment files that are open.
type countedFS struct {
	vfs.FS
	open, most atomic.Int32
}

type countedFile struct {
	vfs.File
	fs *countedFS
}

func (c *countedFS) count(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, segmentSuffix) {
		return f, err
	}
	n := c.open.Add(1)
	for m := c.most.Load(); n > m && !c.most.CompareAndSwap(m, n); m = c.most.Load() {
	}
	return countedFile{f, c}, nil
}

func (c *countedFS) Create(name string) (vfs.File, error) {
	f, err := c.FS.Create(name)
	return c.count(name, f, err)
}

func (c *countedFS) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	return c.count(name, f, err)
}

func (c *countedFS) OpenRW(name string) (vfs.File, error) {
	f, err := c.FS.OpenRW(name)
	return c.count(name, f, err)
}

func (f countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// TestFewFilesOfManySegmentsAreOpen writes many segments and reads all of them, several readers at a time, while files are closed.
func TestFewFilesOfManySegmentsAreOpen(t *testing.T) {
	fs := &countedFS{FS: vfs.NewMem(1)}
	o := smallOptions(fs)
	o.SegmentBytes = 16 << 10
	l, _ := reopen(t, o)
	var places []Place
	for i := int64(0); len(l.Manifest().Segments) < 3*maxOpenSealed; i++ {
		p, err := appendBatch(l, PartitionID{}, i, 6000)
		require.NoError(t, err)
		places = append(places, p)
	}
	const slack = 8 // the current one and those that are made ready, sealed and trimmed meanwhile.
	require.LessOrEqual(t, fs.most.Load(), int32(maxOpenSealed+slack))
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := range places {
				k := (i*7 + r*len(places)/4) % len(places)
				got, err := read(l, places[k])
				if !assert.NoError(t, err) || !assert.Equal(t, string(testBatch(int64(k), 3, 1, 6000, uint64(k))), got) {
					return
				}
			}
		})
	}
	readers.Wait()
	require.LessOrEqual(t, fs.most.Load(), int32(maxOpenSealed+slack+4))
	require.NoError(t, l.Close())
	require.Zero(t, fs.open.Load())
}
