package queue

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

const rewriteFlag = "rewrite"

func TestMain(m *testing.M) {
	flag.Bool(rewriteFlag, false, "write the golden files anew")
	flag.Parse()
	os.Exit(m.Run())
}

func id(topic byte, partition int32) commitlog.PartitionID {
	return commitlog.PartitionID{Topic: [16]byte{topic, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Partition: partition}
}

// sampleState is a state in which every field says something.
func sampleState() *State {
	q := New()
	data := func(lsn commitlog.LSN, base int64, h batch.Header, marker *batch.Marker) {
		h.BaseOffset, h.MaxTimestamp = base, 1000+base
		q.Data(7, Entry{Base: base, LSN: lsn, MaxTimestamp: 1000 + base, Pos: uint32(lsn), Size: 100, Count: h.LastOffsetDelta + 1, Epoch: 3}, &h, marker, 5000)
	}
	idempotent := batch.Header{ProducerID: 11, ProducerEpoch: 2, BaseSequence: 40, LastOffsetDelta: 1}
	data(100, 0, idempotent, nil)
	txn := batch.Header{ProducerID: 12, BaseSequence: 0, Attributes: 1 << 4}
	data(200, 2, txn, nil)
	data(300, 3, batch.Header{ProducerID: 12, Attributes: 3 << 4, BaseSequence: -1}, &batch.Marker{Type: batch.Abort, ProducerID: 12, CoordinatorEpoch: 4, Timestamp: 1003})
	open := batch.Header{ProducerID: 13, ProducerEpoch: 1, BaseSequence: 5, Attributes: 1 << 4}
	data(400, 4, open, nil)
	q.BeginEpoch(500, 9, 5)
	data(600, 7, batch.Header{ProducerID: -1}, nil) // A hole at 5 and 6.
	q.Truncate(700, 6, 100, q.Producers)
	q.MoveStart(800, 1, 0)
	return &State{Topic: "orders", Async: true, HighWatermark: 3, Queue: q}
}

// sampleParts are partitions of an index: many entries, one, and none.
func sampleParts() []IndexPart {
	var many []Entry
	e := Entry{LSN: 4096, Pos: 4176, Size: 90, Count: 1, Epoch: 1, MaxTimestamp: 1_700_000_000_000}
	for i := range 100 {
		many = append(many, e)
		e.Base, e.LSN, e.Pos = e.Next(), e.LSN+commitlog.LSN(e.Size)+80, e.Pos+uint32(e.Size)+80
		e.Size, e.Count, e.MaxTimestamp = int32(90+i), int32(1+i%3), e.MaxTimestamp+int64(i%7)-3
		if i == 50 {
			e.Epoch, e.Base = 4, e.Base+10
		}
	}
	state := sampleState().Append(nil)
	return []IndexPart{
		{ID: id(1, 0), Entries: many, State: state},
		{ID: id(1, 3), State: Tombstone(900).Append(nil)},
		{ID: id(2, 7), Entries: []Entry{{Base: 5, LSN: 9000, Pos: 77, Size: 61, Count: 1, Epoch: 0, MaxTimestamp: -1}}},
	}
}

var sampleInfo = IndexInfo{Segment: 7, First: 4096, End: 1 << 20}

// golden compares a file with the one in testdata, byte by byte.
func golden(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	got := contents(t, fs, name)
	path := filepath.Join("testdata", name)
	if flag.Lookup(rewriteFlag).Value.String() == "true" {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func contents(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open("/d/" + name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	require.NoError(t, readFull(f, b, 0))
	return b
}

func newDir(t testing.TB) vfs.FS {
	fs := vfs.NewMem(1)
	require.NoError(t, fs.MkdirAll("/d"))
	return fs
}

func put(t testing.TB, fs vfs.FS, name string, b []byte) {
	f, err := fs.Create("/d/" + name)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestTheIndexFormatStays(t *testing.T) {
	fs := newDir(t)
	parts := sampleParts()
	_, err := WriteIndex(fs, "/d", "index-1.golden", sampleInfo, parts)
	require.NoError(t, err)
	golden(t, fs, "index-1.golden")
	x, err := OpenIndex(fs, "/d", "index-1.golden")
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	require.Equal(t, sampleInfo, x.Info())
	n := 0
	require.NoError(t, x.Rows(func(at commitlog.PartitionID, r Row) bool {
		require.Equal(t, parts[n].ID, at)
		var es []Entry
		require.NoError(t, x.Scan(&r, 0, -1<<62, func(e *Entry) bool {
			es = append(es, *e)
			return true
		}))
		require.Equal(t, parts[n].Entries, es)
		st, err := x.State(&r)
		require.NoError(t, err)
		if parts[n].State != nil {
			require.Equal(t, parts[n].State, st.Append(nil))
		} else {
			require.Nil(t, st)
		}
		n++
		return true
	}))
	require.Equal(t, 3, n)
	blocks := x.states - indexHeaderLen
	require.LessOrEqual(t, blocks/x.Entries(), int64(16), "bytes an entry")
}

func TestTheCheckpointFormatStays(t *testing.T) {
	fs := newDir(t)
	c := Checkpoint{Upto: 5000, Complete: true, Live: []LiveBytes{{Segment: 7, Bytes: 1234}}}
	parts := []CheckpointPart{
		{ID: id(1, 0), State: sampleState().Append(nil), Runs: []Run{{Segment: 8, Entries: sampleParts()[0].Entries[:40]}}},
		{ID: id(2, 7), State: sampleState().Append(nil)},
	}
	_, err := WriteCheckpoint(fs, "/d", "checkpoint-1.golden", c, parts)
	require.NoError(t, err)
	golden(t, fs, "checkpoint-1.golden")
	var states int
	var loaded []Run
	got, err := ReadCheckpoint(fs, "/d", "checkpoint-1.golden", func(at commitlog.PartitionID, s *State) error {
		require.Equal(t, parts[states].ID, at)
		require.Equal(t, parts[states].State, s.Append(nil))
		states++
		return nil
	}, func(at commitlog.PartitionID, r Run) error {
		require.Equal(t, id(1, 0), at)
		loaded = append(loaded, r)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, states)
	require.Equal(t, parts[0].Runs, loaded)
	require.Equal(t, [3]any{c.Upto, true, c.Live}, [3]any{got.Upto, got.Complete, got.Live})
}

func TestANewerVersionIsToldFromDamage(t *testing.T) {
	fs := newDir(t)
	_, err := WriteIndex(fs, "/d", "i", sampleInfo, sampleParts())
	require.NoError(t, err)
	_, err = WriteCheckpoint(fs, "/d", "c", Checkpoint{}, nil)
	require.NoError(t, err)
	for _, name := range []string{"i", "c"} {
		b := contents(t, fs, name)
		b[4]++
		put(t, fs, name, b)
	}
	_, err = OpenIndex(fs, "/d", "i")
	require.ErrorIs(t, err, ErrFormatTooNew)
	_, err = ReadCheckpoint(fs, "/d", "c", nil, nil)
	require.ErrorIs(t, err, ErrFormatTooNew)
	b := sampleState().Append(nil)
	b[0]++
	_, err = DecodeState(b)
	require.ErrorIs(t, err, ErrFormatTooNew)
}

func TestAnyFlippedBitOfAFileIsNoticed(t *testing.T) {
	fs := newDir(t)
	_, err := WriteIndex(fs, "/d", "i", sampleInfo, sampleParts())
	require.NoError(t, err)
	whole := contents(t, fs, "i")
	for at := range whole {
		b := slices.Clone(whole)
		b[at] ^= 1 << (at % 8)
		put(t, fs, "i", b)
		require.Error(t, readAllOf(fs, "i"), "byte %d", at)
	}
	parts := []CheckpointPart{{ID: id(1, 0), State: sampleState().Append(nil), Runs: []Run{{Segment: 8, Entries: sampleParts()[0].Entries}}}}
	_, err = WriteCheckpoint(fs, "/d", "c", Checkpoint{Upto: 9, Live: []LiveBytes{{1, 2}}}, parts)
	require.NoError(t, err)
	whole = contents(t, fs, "c")
	nothing := func(commitlog.PartitionID, *State) error { return nil }
	for at := range whole {
		b := slices.Clone(whole)
		b[at] ^= 1 << (at % 8)
		put(t, fs, "c", b)
		_, err := ReadCheckpoint(fs, "/d", "c", nothing, func(commitlog.PartitionID, Run) error { return nil })
		require.Error(t, err, "byte %d", at)
	}
}

// readAllOf reads everything in an index.
func readAllOf(fs vfs.FS, name string) error {
	x, err := OpenIndex(fs, "/d", name)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	note(x.Rows(func(_ commitlog.PartitionID, r Row) bool {
		note(x.Scan(&r, 0, -1<<62, func(*Entry) bool { return true }))
		_, err := x.State(&r)
		note(err)
		return true
	}))
	note(x.States(func(commitlog.PartitionID, *State) error { return nil }))
	return first
}

func TestLookupsFindEveryPartitionAmongManyPages(t *testing.T) {
	fs := newDir(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var parts []IndexPart
	for topic := range byte(20) {
		for p := range int32(30) {
			if rng.IntN(3) > 0 {
				base := rng.Int64N(1000)
				parts = append(parts, IndexPart{ID: id(topic, p), Entries: []Entry{{Base: base, Count: 2, Size: 70, LSN: 5000, Pos: 90}}})
			}
		}
	}
	_, err := WriteIndex(fs, "/d", "i", sampleInfo, parts)
	require.NoError(t, err)
	x, err := OpenIndex(fs, "/d", "i")
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	n := 0
	for topic := range byte(21) {
		for p := range int32(31) {
			r, ok, err := x.Lookup(id(topic, p))
			require.NoError(t, err)
			if n < len(parts) && parts[n].ID == id(topic, p) {
				require.True(t, ok)
				require.Equal(t, parts[n].Entries[0].Base, r.First)
				n++
			} else {
				require.False(t, ok)
			}
		}
	}
	require.Equal(t, len(parts), n)
}

func FuzzState(f *testing.F) {
	f.Add(sampleState().Append(nil))
	f.Add(Tombstone(5).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		again, err := DecodeState(s.Append(nil))
		require.NoError(t, err)
		require.Equal(t, s.Append(nil), again.Append(nil))
	})
}

func FuzzIndexFile(f *testing.F) {
	fs := newDir(f)
	_, err := WriteIndex(fs, "/d", "seed", sampleInfo, sampleParts())
	require.NoError(f, err)
	golden, err := os.ReadFile("testdata/index-1.golden")
	require.NoError(f, err)
	f.Add(golden)
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := newDir(t)
		put(t, fs, "i", b)
		_ = readAllOf(fs, "i")
		// Behind the checksums: what a row or an entry says is bounded by itself.
		d := decoder{b: b}
		var at commitlog.PartitionID
		x := Index{states: 1 << 20, pages: 1 << 21}
		for n := 0; len(d.b) > 0 && n < 100; n++ {
			r := d.row(&at, n > 0)
			_ = x.plausible(&r)
		}
		d = decoder{b: b}
		var last Entry
		for len(d.b) > 0 && !d.failed {
			last = d.entry(&last)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	golden, err := os.ReadFile("testdata/checkpoint-1.golden")
	require.NoError(f, err)
	f.Add(golden)
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := newDir(t)
		put(t, fs, "c", b)
		_, _ = ReadCheckpoint(fs, "/d", "c", func(commitlog.PartitionID, *State) error { return nil }, func(commitlog.PartitionID, Run) error { return nil })
	})
}
