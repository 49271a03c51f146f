package commitlog

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

// damagedLog is a log of some segments that was not stopped cleanly, with all places in it.
type damagedLog struct {
	fs     *vfs.Mem
	places []Place
	mark   LSN // the durable mark of the manifest.
}

func newDamagedLog(t *testing.T, frames int) *damagedLog {
	t.Helper()
	d := &damagedLog{fs: vfs.NewMem(1)}
	o := smallOptions(d.fs)
	l, _ := reopen(t, o)
	for i := range int64(frames) {
		p, err := appendBatch(l, PartitionID{Partition: int32(i % 3)}, i, 100+int(i%7)*90)
		require.NoError(t, err)
		d.places = append(d.places, p)
		for !keeperIdle(l) { // So that the mark in the manifest is an early one.
			runtime.Gosched()
		}
	}
	d.fs = d.fs.Crash(rand.New(rand.NewPCG(1, 1)))
	require.Error(t, l.Close())
	m, err := readManifest(d.fs, o.Dir)
	require.NoError(t, err)
	d.mark = m.durable
	return d
}

// keeperIdle reports whether the next segment is ready and filled ones are listed as sealed.
func keeperIdle(l *Log) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ready) > 0 && len(l.sealing) == 0
}

// flip changes one bit of a file.
func flip(t *testing.T, fs vfs.FS, name string, pos int64, bit int) {
	t.Helper()
	f, err := fs.OpenRW(name)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, pos)
	require.NoError(t, err)
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b, pos)
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
}

// TestABitThatFlippedAboveTheLastMarkCutsElsewhereItIsQuarantined flips a random bit of a random frame.
func TestABitThatFlippedAboveTheLastMarkCutsElsewhereItIsQuarantined(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range seeds(t, 150) {
		d := newDamagedLog(t, 60)
		victim := rng.IntN(len(d.places))
		if rng.IntN(4) == 0 {
			victim = len(d.places) - 1
		}
		at := d.places[victim]
		pos := at.Offset - frameHeader + rng.Int64N(frameHeader+int64(at.Size))
		flip(t, d.fs, "data/"+segmentName(at.Segment), pos, rng.IntN(8))
		var reported []*CorruptError
		o := smallOptions(d.fs)
		o.Events.Corrupt = func(e *CorruptError) { reported = append(reported, e) }
		l, frames := reopen(t, o)
		require.Len(t, frames, len(d.places)-1, "frame %d", victim)
		for i, f := range frames {
			if i >= victim {
				i++
			}
			require.Equal(t, d.places[i], f.Place)
		}
		_, err := read(l, at)
		if victim == len(d.places)-1 && d.mark <= at.LSN {
			require.Empty(t, reported)
			require.Error(t, err)
		} else {
			require.Len(t, reported, 1)
			require.ErrorIs(t, reported[0], ErrCorrupt)
			require.Equal(t, Span{at.Segment, at.Offset - frameHeader, alignUp(at.Offset+int64(at.Size), frameAlign)}, reported[0].Span)
			require.Equal(t, []Span{reported[0].Span}, l.Manifest().Quarantined)
			require.ErrorIs(t, err, ErrCorrupt)
		}
		p, err := appendBatch(l, PartitionID{}, 1000, 100)
		require.NoError(t, err)
		require.Greater(t, p.LSN, d.places[len(d.places)-1].End())
		require.NoError(t, l.Close())

		l, again := reopen(t, o) // What was quarantined stays so, and is not reported anew.
		require.Len(t, again, len(frames)+1)
		require.LessOrEqual(t, len(reported), 1)
		require.NoError(t, l.Close())
	}
}

func TestADamagedPayloadIsReportedWithItsHeader(t *testing.T) {
	d := newDamagedLog(t, 20)
	at := d.places[4]
	flip(t, d.fs, "data/"+segmentName(at.Segment), at.Offset+int64(at.Size)-1, 3)
	var reported []*CorruptError
	o := smallOptions(d.fs)
	o.Events.Corrupt = func(e *CorruptError) { reported = append(reported, e) }
	l, frames := reopen(t, o)
	require.Len(t, frames, 19)
	require.Len(t, reported, 1)
	require.Equal(t, int64(4), reported[0].Header.BaseOffset)
	require.Equal(t, at.LSN, reported[0].LSN)
	require.NoError(t, l.Close())
}

func TestDamageOfASealedSegmentIsFoundByTheReadThatMeetsIt(t *testing.T) {
	d := newDamagedLog(t, 300)
	var reported []*CorruptError
	o := smallOptions(d.fs)
	o.Events.Corrupt = func(e *CorruptError) { reported = append(reported, e) }
	l, _ := reopen(t, o)
	bad := 10
	flip(t, d.fs, "data/"+segmentName(d.places[bad].Segment), d.places[bad].Offset+50, 0)
	var p Pinned
	n, err := l.Pin(&p, d.places[:30])
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, bad, n)
	var size int
	for _, at := range d.places[:bad] {
		size += int(at.Size)
	}
	require.Equal(t, size, p.Size())
	p.Release()
	n, err = l.Pin(&p, d.places[bad+1:])
	require.NoError(t, err)
	require.Equal(t, len(d.places)-bad-1, n)
	p.Release()
	require.Len(t, reported, 1)
	_, err = l.ReadHead(d.places[bad], make([]byte, batchHead))
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = read(l, d.places[bad])
	require.ErrorIs(t, err, ErrCorrupt)
	require.Len(t, reported, 1, "once")
	require.NoError(t, l.Close())
}

// TestDamagedTailsStartUnattended damages the end in the ways that were seen in the field.
func TestDamagedTailsStartUnattended(t *testing.T) {
	damages := map[string]func(f vfs.File, end int64) error{
		"cut by 1":   func(f vfs.File, end int64) error { return f.Truncate(end - 1) },
		"cut by 7":   func(f vfs.File, end int64) error { return f.Truncate(end - 7) },
		"cut by 100": func(f vfs.File, end int64) error { return f.Truncate(end - 100) },
		"zeros behind": func(f vfs.File, end int64) error {
			_, err := f.WriteAt(make([]byte, 4096), end)
			return err
		},
		"ones behind": func(f vfs.File, end int64) error {
			b := make([]byte, 4096)
			for i := range b {
				b[i] = 0xff
			}
			_, err := f.WriteAt(b, end)
			return err
		},
		"a header of a huge length behind": func(f vfs.File, end int64) error {
			b := make([]byte, frameHeader)
			h := frameHead{Header: Header{Kind: Create}, lsn: firstBase + LSN(end), length: 1 << 30}
			h.encode(b, 0, nil)
			_, err := f.WriteAt(b, end)
			return err
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			d := newDamagedLog(t, 20)
			last := d.places[19]
			f, err := d.fs.OpenRW("data/" + segmentName(last.Segment))
			require.NoError(t, err)
			end := alignUp(last.Offset+int64(last.Size), frameAlign)
			require.NoError(t, errors.Join(damage(f, end), f.Sync(), f.Close()))
			l, frames := reopen(t, smallOptions(d.fs))
			require.GreaterOrEqual(t, len(frames), 19)
			p, err := appendBatch(l, PartitionID{}, 20, 100)
			require.NoError(t, err)
			got, err := read(l, p)
			require.NoError(t, err)
			require.Equal(t, string(testBatch(20, 3, 1, 100, 20)), got)
			require.NoError(t, l.Close())
		})
	}
}

func TestAMissingSegmentIsReportedAndTheRestIsServed(t *testing.T) {
	d := newDamagedLog(t, 300)
	require.NoError(t, d.fs.Remove("data/"+segmentName(d.places[0].Segment)))
	var reported []*CorruptError
	o := smallOptions(d.fs)
	o.Events.Corrupt = func(e *CorruptError) { reported = append(reported, e) }
	l, frames := reopen(t, o)
	require.Len(t, reported, 1)
	require.True(t, reported[0].Truncated)
	require.NotEmpty(t, frames)
	_, err := read(l, d.places[0])
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = read(l, d.places[299])
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestOnlyATornWriteIsReportedAsCut(t *testing.T) {
	cut := func(fs vfs.FS) (spans []Span) {
		o := smallOptions(fs)
		o.Events.Cut = func(s Span) { spans = append(spans, s) }
		l, _ := reopen(t, o)
		require.NoError(t, l.Close())
		return spans
	}
	d := newDamagedLog(t, 20)
	require.Empty(t, cut(d.fs), "the log simply ends")

	d = newDamagedLog(t, 20)
	last := d.places[19]
	name := "data/" + segmentName(last.Segment)
	end := alignUp(last.Offset+int64(last.Size), frameAlign)
	flip(t, d.fs, name, last.Offset+70, 1)
	require.Equal(t, []Span{{last.Segment, last.Offset - frameHeader, end}}, cut(d.fs), "a payload")

	d = newDamagedLog(t, 20)
	flip(t, d.fs, name, last.Offset-1, 1)
	require.Equal(t, []Span{{last.Segment, last.Offset - frameHeader, end}}, cut(d.fs), "a header")

	// Whole frames behind a torn one, none of which was acknowledged.
	fs := vfs.NewMem(1)
	l, _ := reopen(t, smallOptions(fs))
	var places []Place
	for i := range int64(5) {
		p, err := place(l, Header{Kind: Data}, Synced, nil, testBatch(i, 1, 1, 200, 0))
		require.NoError(t, err)
		places = append(places, p)
	}
	require.NoError(t, l.Commit(l.Next(), Synced))
	fs = fs.Crash(nil)
	require.Error(t, l.Close())
	flip(t, fs, "data/"+segmentName(places[1].Segment), places[1].Offset-frameHeader, 1)
	require.Equal(t, []Span{{places[1].Segment, places[1].Offset - frameHeader, places[4].Offset + 200}}, cut(fs))
	l, frames := reopen(t, smallOptions(fs))
	require.Len(t, frames, 1)
	require.NoError(t, l.Close())
}

// TestAMissingSegmentAfterACleanStopLosesItsFramesOnly removes the open segment, and the one that waits behind it.
func TestAMissingSegmentAfterACleanStopLosesItsFramesOnly(t *testing.T) {
	for name, c := range map[string]struct{ open, ready bool }{"open": {open: true}, "ready": {ready: true}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			o := smallOptions(vfs.NewMem(1))
			l, _ := reopen(t, o)
			var places []Place
			for i := range int64(60) {
				p, err := appendBatch(l, PartitionID{}, i, 900)
				require.NoError(t, err)
				places = append(places, p)
			}
			for !keeperIdle(l) {
				runtime.Gosched()
			}
			next := l.Next()
			require.NoError(t, l.Close())
			open := places[len(places)-1].Segment
			for _, s := range l.Manifest().Segments {
				if !s.Sealed && (s.ID == open && c.open || s.ID != open && c.ready) {
					require.NoError(t, o.FS.Remove("data/"+segmentName(s.ID)))
				}
			}
			var reported []*CorruptError
			var sealed []SegmentID
			o.Events.Corrupt = func(e *CorruptError) { reported = append(reported, e) }
			o.OnSeal = func(s SegmentInfo) { sealed = append(sealed, s.ID) }
			l, err := Open(o)
			require.NoError(t, err)
			require.NoError(t, l.Recover(func(Frame) error { t.Error("nothing is read after a clean stop"); return nil }))
			require.GreaterOrEqual(t, l.Next(), next)
			p, err := appendBatch(l, PartitionID{}, 60, 900)
			require.NoError(t, err)
			require.GreaterOrEqual(t, p.LSN, next, "no position is given twice")
			if c.open {
				require.Len(t, reported, 1)
				require.Equal(t, open, reported[0].Segment)
				require.Equal(t, []SegmentID{open}, sealed)
			} else {
				require.Empty(t, reported)
			}
			for i, at := range append(places, p) {
				got, err := read(l, at)
				if c.open && at.Segment == open {
					require.ErrorIs(t, err, ErrCorrupt)
					continue
				}
				require.NoError(t, err)
				require.Len(t, got, len(testBatch(int64(i), 3, 1, 900, uint64(i))))
			}
			require.NoError(t, l.Close())
			o.OnSeal = nil
			l, _ = reopen(t, o)
			require.NoError(t, l.Close())
		})
	}
}
