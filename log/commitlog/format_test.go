package commitlog

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

// rewriteGolden writes the golden files anew. Those of a version that was shipped are never written again: a new version gets new ones.
var rewriteGolden = flag.Bool("rewrite", false, "write the golden files of the present format")

const goldenSalt = 0x0123456789abcdef

// goldenTopics are the partitions of the golden files.
var goldenIDs = []PartitionID{
	{Topic: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Partition: 0},
	{Topic: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Partition: 1},
	{Topic: [16]byte{0xff}, Partition: 70000},
}

// frameImage returns the file of a segment with frames of all kinds.
func frameImage() ([]byte, []found) {
	head := segmentHead{kind: kindFrames, id: 3, salt: goldenSalt, base: 1 << 20, capacity: 8 << 10}
	b := make([]byte, dataStart)
	copy(b, head.encode())
	var frames []found
	add := func(h Header, payload []byte) {
		f := frameHead{Header: h, lsn: head.base + LSN(len(b)), durable: head.base + dataStart, length: len(payload)}
		if h.Kind != Data {
			f.payloadCRC = payloadChecksum([][]byte{payload})
		}
		at := len(b)
		b = append(b, make([]byte, frameSize(len(payload)))...)
		f.encode(b[at:], saltSeed(head.salt), [][]byte{payload})
		copy(b[at+frameHeader:], payload)
		if h.Kind != kindEnd {
			p := Place{LSN: f.lsn, Segment: head.id, Offset: int64(at + frameHeader), Size: int32(len(payload))}
			frames = append(frames, found{h, p, string(payload)})
		}
	}
	add(Header{Kind: Create}, []byte("create"))
	add(Header{Kind: Epoch, ID: goldenIDs[0], LeaderEpoch: 5}, nil)
	add(Header{Kind: Data, ID: goldenIDs[0], LeaderEpoch: 5, OffsetCount: 3, MaxTimestamp: 1000}, testBatch(0, 5, 3, 200, 1))
	add(Header{Kind: Data, ID: goldenIDs[2], LeaderEpoch: -1, BaseOffset: 1 << 40, OffsetCount: 1, MaxTimestamp: -1}, testBatch(1<<40, -1, 1, 61, 2))
	add(Header{Kind: Truncate, ID: goldenIDs[0], LeaderEpoch: 6, BaseOffset: 2}, []byte{1, 2, 3})
	add(Header{Kind: LogStart}, bytes.Repeat([]byte{9}, 40))
	add(Header{Kind: Delete}, []byte("delete"))
	add(Header{Kind: kindEnd}, nil)
	return append(b, make([]byte, int(head.capacity)-len(b))...), frames
}

// clusteredImage returns the file of a clustered segment with a run for each of the partitions.
func clusteredImage() ([]byte, []found, segmentRow) {
	head := segmentHead{kind: kindClustered, id: 4, salt: goldenSalt, asOf: 1<<20 + 5000, capacity: 64 << 10}
	b := make([]byte, dataStart)
	copy(b, head.encode())
	var frames []found
	for i, id := range goldenIDs {
		run := runHead{id: id, position: int64(len(b)), first: 10, maxTimestamp: -1}
		var batches, index []byte
		offset := int64(10)
		for stretch := range 3 {
			item := runItem{position: int64(len(batches)), first: offset, maxTimestamp: -1}
			var heads [][]byte
			for n := range 1 + stretch + i {
				batch := testBatch(offset, int32(stretch), 2, 61+100*n, uint64(offset))
				h := batchHeader(id, batch)
				at := Place{Segment: head.id, Offset: run.position + runHeader + int64(len(batches)), Size: int32(len(batch))}
				frames = append(frames, found{h, at, string(batch)})
				heads = append(heads, batch[:batchOutside])
				item.batches++
				item.maxTimestamp = max(item.maxTimestamp, h.MaxTimestamp)
				batches = append(batches, batch...)
				offset += 5 // Compaction has left gaps.
			}
			item.outsideCRC = payloadChecksum(heads)
			index = item.encode(index)
			run.items++
			run.batches += item.batches
			run.maxTimestamp = max(run.maxTimestamp, item.maxTimestamp)
		}
		run.length, run.next, run.indexCRC = int64(len(batches)), offset-3, payloadChecksum([][]byte{index})
		b = append(append(append(b, run.encode(saltSeed(head.salt))...), batches...), index...)
		b = append(b, make([]byte, alignUp(int64(len(b)), frameAlign)-int64(len(b)))...)
	}
	row := segmentRow{segmentHead: head, sealed: true, end: int64(len(b)), frames: len(frames)}
	return b, frames, row
}

func goldenManifest() *manifest {
	_, _, clustered := clusteredImage()
	return &manifest{
		clean: true, nodeID: 7, clusterID: "Some-Cluster-Id_123456", nextID: 9, nextBase: 1 << 30, durable: 1<<20 + 4500,
		checkpointLSN: 1<<20 + 4400, checkpoint: CheckpointName(1<<20 + 4400),
		rows: []segmentRow{
			{
				segmentHead: segmentHead{kind: kindFrames, id: 3, salt: goldenSalt, base: 1 << 20, capacity: 8 << 10}, sealed: true, end: 8 << 10,
				frames: 7, index: IndexName(3),
			},
			clustered,
			{segmentHead: segmentHead{kind: kindFrames, id: 8, salt: 42, base: 1<<20 + 8<<10, capacity: 128 << 20}, end: dataStart},
		},
		quarantined: []Span{{Segment: 3, From: 4096, To: 4184}},
	}
}

// golden compares bytes with a file of testdata.
func golden(t *testing.T, name string, b []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewriteGolden {
		require.NoError(t, os.WriteFile(path, b, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, b), "%s: the format has changed: it needs a new version", name)
	return want
}

// TestTheFormatStaysTheSame writes what this version writes and reads what was written when it was new.
func TestTheFormatStaysTheSame(t *testing.T) {
	frames, _ := frameImage()
	golden(t, "frames-v1.segment", frames)
	clustered, _, _ := clusteredImage()
	golden(t, "clustered-v1.segment", clustered)
	golden(t, "manifest-v1", goldenManifest().encode())
}

// goldenDir makes a data directory of the golden files.
func goldenDir(t *testing.T) *vfs.Mem {
	t.Helper()
	fs := vfs.NewMem(1)
	require.NoError(t, fs.MkdirAll("data"))
	for name, as := range map[string]string{
		"frames-v1.segment": segmentName(3), "clustered-v1.segment": segmentName(4), "manifest-v1": manifestName,
	} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.NoError(t, vfs.WriteAtomic(fs, filepath.Join("data", as), b))
	}
	return fs
}

func goldenOptions(fs vfs.FS) Options {
	o := smallOptions(fs)
	o.ClusterID, o.NodeID = "Some-Cluster-Id_123456", 7
	return o
}

func TestFilesOfVersion1AreRead(t *testing.T) {
	o := goldenOptions(goldenDir(t))
	o.ReadOnly = true
	l, err := Open(o)
	require.NoError(t, err)
	info := l.Manifest()
	require.True(t, info.Clean)
	require.Equal(t, int32(7), info.NodeID)
	require.Equal(t, LSN(1<<20+4400), info.CheckpointLSN)
	require.Len(t, info.Segments, 3)
	require.True(t, info.Segments[1].Clustered)
	require.Equal(t, LSN(1<<20+5000), info.Segments[1].AsOf)
	require.Equal(t, []Span{{Segment: 3, From: 4096, To: 4184}}, info.Quarantined)

	scan := func(id SegmentID) (frames []found) {
		require.NoError(t, l.Scan(id, func(f Frame) error {
			frames = append(frames, found{f.Header, f.Place, string(f.Payload)})
			return nil
		}))
		return frames
	}
	_, want := frameImage()
	require.Equal(t, want[1:], scan(3), "the first is quarantined")
	_, clustered, _ := clusteredImage()
	require.Equal(t, clustered, scan(4))
	for _, f := range append(want[1:], clustered...) {
		if f.Size == 0 {
			continue
		}
		got, err := read(l, f.Place)
		require.NoError(t, err)
		require.Equal(t, f.payload, got)
		head := make([]byte, 30)
		n, err := l.ReadHead(f.Place, head)
		require.NoError(t, err)
		require.Equal(t, f.payload[:min(30, len(f.payload))], string(head[:n]))
	}
	require.NoError(t, l.Close())
}

// TestDamageOfRunsIsFoundAndTheRestIsRead flips each byte of a clustered segment, one at a time.
func TestDamageOfRunsIsFoundAndTheRestIsRead(t *testing.T) {
	image, want, _ := clusteredImage()
	for pos := dataStart; pos < len(image); pos++ {
		fs := goldenDir(t)
		flip(t, fs, "data/"+segmentName(4), int64(pos), pos%8)
		o := goldenOptions(fs)
		o.ReadOnly = true
		damaged := 0
		o.Events.Corrupt = func(e *CorruptError) {
			require.Equal(t, SegmentID(4), e.Segment)
			require.Less(t, e.From, e.To)
			damaged++
		}
		l, err := Open(o)
		require.NoError(t, err)
		n := 0
		require.NoError(t, l.Scan(4, func(f Frame) error {
			n++
			require.Contains(t, want, found{f.Header, f.Place, string(f.Payload)})
			return nil
		}))
		if n < len(want) {
			require.Positive(t, damaged, "byte %d", pos)
		}
		require.LessOrEqual(t, len(want)-n, 12, "at most the largest run")
		require.NoError(t, l.Close())
	}
}

func TestANewerVersionIsNotCorruption(t *testing.T) {
	frames, _ := frameImage()
	rechecksum := func(b []byte) { le.PutUint32(b[12:], headerChecksum(b)) }
	t.Run("segment", func(t *testing.T) {
		b := bytes.Clone(frames[:segmentHeader])
		b[8]++
		_, err := decodeSegmentHead(b)
		require.ErrorIs(t, err, ErrCorrupt, "without the checksum it is damage")
		rechecksum(b)
		_, err = decodeSegmentHead(b)
		require.ErrorIs(t, err, ErrFormatTooNew)
		require.NotErrorIs(t, err, ErrCorrupt)
		b[8]--
		b[10] = 3
		rechecksum(b)
		_, err = decodeSegmentHead(b)
		require.ErrorIs(t, err, ErrFormatTooNew)
	})
	t.Run("manifest", func(t *testing.T) {
		b := goldenManifest().encode()
		b[8]++
		rechecksum(b)
		_, err := decodeManifest(b)
		require.ErrorIs(t, err, ErrFormatTooNew)
		require.NotErrorIs(t, err, ErrCorrupt)
		fs := vfs.NewMem(1)
		require.NoError(t, fs.MkdirAll("data"))
		require.NoError(t, vfs.WriteAtomic(fs, "data/"+manifestName, b))
		_, err = Open(smallOptions(fs))
		require.ErrorIs(t, err, ErrFormatTooNew)
	})
	for name, change := range map[string]func(b []byte){
		"frame":         func(b []byte) { b[4]++ },
		"kind":          func(b []byte) { b[5] = 100 },
		"reserved kind": func(b []byte) { b[5] = byte(Refill) },
	} {
		t.Run(name, func(t *testing.T) {
			b := bytes.Clone(frames)
			f := b[dataStart+frameSize(6):] // The second frame: no payload.
			change(f)
			le.PutUint32(f[76:], payloadCRCFrom(saltSeed(goldenSalt), f[:76]))
			fs := goldenDir(t)
			require.NoError(t, vfs.WriteAtomic(fs, "data/"+segmentName(3), b))
			o := goldenOptions(fs)
			o.ReadOnly = true
			l, err := Open(o)
			require.NoError(t, err)
			err = l.Scan(3, func(Frame) error { return nil })
			require.ErrorIs(t, err, ErrFormatTooNew)
			require.NotErrorIs(t, err, ErrCorrupt)
			require.NoError(t, l.Close())
		})
	}
	t.Run("run", func(t *testing.T) {
		b, _, _ := clusteredImage()
		r := b[dataStart:]
		r[4]++
		le.PutUint32(r[80:], payloadCRCFrom(saltSeed(goldenSalt), r[:80]))
		fs := goldenDir(t)
		require.NoError(t, vfs.WriteAtomic(fs, "data/"+segmentName(4), b))
		o := goldenOptions(fs)
		o.ReadOnly = true
		l, err := Open(o)
		require.NoError(t, err)
		require.ErrorIs(t, l.Scan(4, func(Frame) error { return nil }), ErrFormatTooNew)
		require.NoError(t, l.Close())
	})
}

func TestContentOfAnEarlierLifeOfAFileIsNoFrame(t *testing.T) {
	frames, _ := frameImage()
	_, v := decodeFrameHead(frames[dataStart:], saltSeed(goldenSalt), 1<<20+dataStart, 4096)
	require.Equal(t, frameGood, v)
	_, v = decodeFrameHead(frames[dataStart:], saltSeed(goldenSalt+1), 1<<20+dataStart, 4096)
	require.Equal(t, frameBad, v)
	_, v = decodeFrameHead(frames[dataStart:], saltSeed(goldenSalt), 1<<20+dataStart+8, 4096)
	require.Equal(t, frameBad, v, "at another position")
	_, v = decodeFrameHead(frames[dataStart:], saltSeed(goldenSalt), 1<<20+dataStart, frameHeader)
	require.Equal(t, frameBad, v, "longer than the segment")
}

// TestEveryByteOfAFrameIsProtected flips each bit of a frame.
func TestEveryByteOfAFrameIsProtected(t *testing.T) {
	frames, want := frameImage()
	at := want[2].Offset - frameHeader
	size := frameHeader + int(want[2].Size)
	for bit := range size * 8 {
		b := bytes.Clone(frames[at : at+int64(size)])
		b[bit/8] ^= 1 << (bit % 8)
		h, v := decodeFrameHead(b, saltSeed(goldenSalt), want[2].LSN, int64(size))
		require.False(t, v == frameGood && h.payloadOK(b[frameHeader:]), "bit %d", bit)
	}
}
