package commitlog

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/mainstem/mainstem/log/vfs"
)

// payloadCRCFrom continues a checksum.
func payloadCRCFrom(seed uint32, b []byte) uint32 { return crc32.Update(seed, castagnoli, b) }

// FuzzManifest: what is read is written the same; nothing panics or takes more memory than the file has bytes for.
func FuzzManifest(f *testing.F) {
	f.Add(goldenManifest().encode(), true)
	f.Add((&manifest{nextID: 1}).encode(), false)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) >= manifestHeader { // Else the checksum stops nearly everything.
			le.PutUint32(b[16:], uint32(len(b)-manifestHeader))
			le.PutUint32(b[12:], headerChecksum(b))
		}
		m, err := decodeManifest(b)
		if err != nil {
			return
		}
		again, err := decodeManifest(m.encode())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.encode(), m.encode()) {
			t.Fatal("not the same")
		}
	})
}

// FuzzSegmentHeader: what is read is written the same.
func FuzzSegmentHeader(f *testing.F) {
	frames, _ := frameImage()
	f.Add(frames[:segmentHeader], true)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix && len(b) >= segmentHeader {
			le.PutUint32(b[12:], headerChecksum(b[:segmentHeader]))
		}
		h, err := decodeSegmentHead(b)
		if err != nil {
			return
		}
		again, err := decodeSegmentHead(h.encode())
		if err != nil || again != h {
			t.Fatal(again, h, err)
		}
	})
}

// FuzzFrames scans any bytes as the frames of a segment, sealed and open.
func FuzzFrames(f *testing.F) {
	frames, _ := frameImage()
	f.Add(frames[dataStart:], 0)
	f.Add(frames[dataStart:], 1000)
	f.Fuzz(func(t *testing.T, b []byte, fixAt int) {
		if fixAt >= 0 && fixAt < len(b)-frameHeader-batchOutside {
			h := b[fixAt:]
			crc := payloadCRCFrom(saltSeed(goldenSalt), h[:76])
			if Kind(h[5]) == Data {
				crc = payloadCRCFrom(crc, h[frameHeader:frameHeader+batchOutside])
			}
			le.PutUint32(h[76:], crc)
		}
		fuzzScan(t, kindFrames, append(bytes.Clone(frames[:dataStart]), b...))
	})
}

// FuzzRuns scans any bytes as the runs of a clustered segment.
func FuzzRuns(f *testing.F) {
	image, _, _ := clusteredImage()
	f.Add(image[dataStart:], 0)
	f.Fuzz(func(t *testing.T, b []byte, fixAt int) {
		if fixAt >= 0 && fixAt < len(b)-runHeader {
			h := b[fixAt:]
			le.PutUint32(h[80:], payloadCRCFrom(saltSeed(goldenSalt), h[:80]))
		}
		fuzzScan(t, kindClustered, append(bytes.Clone(image[:dataStart]), b...))
	})
}

// fuzzScan reads a segment of any content in all ways, and what it finds once more.
func fuzzScan(t *testing.T, kind uint8, content []byte) {
	fs := vfs.NewMem(1)
	if err := fs.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	head := segmentHead{kind: kind, id: 3, salt: goldenSalt, base: 1 << 20, capacity: alignUp(int64(len(content)), pageSize)}
	if kind == kindClustered {
		head.base = 0
	}
	for _, sealed := range []bool{true, false} {
		m := &manifest{
			clusterID: "cluster", nodeID: 1, nextID: 4, nextBase: 1 << 30, durable: 1<<20 + dataStart,
			rows: []segmentRow{{segmentHead: head, sealed: sealed, end: int64(len(content))}},
		}
		if err := vfs.WriteAtomic(fs, "data/"+manifestName, m.encode()); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteAtomic(fs, "data/"+segmentName(3), content); err != nil {
			t.Fatal(err)
		}
		o := smallOptions(fs)
		o.ReadOnly = true // So that nothing runs beside it.
		l, frames, err := tryReopen(o)
		if err != nil {
			continue // A newer version.
		}
		for _, f := range frames {
			got, err := read(l, f.Place)
			if err != nil || got != f.payload {
				t.Fatal(f.Place, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
