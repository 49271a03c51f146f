package fieldcases

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// What these tests must know of the log's files, which log/commitlog/format.go
// describes: a segment begins with a header, frames follow from byte 4096 on,
// and the stream goes on in the segment whose base comes next.
const (
	framesAt     = 4096
	frameHeader  = 80
	batchOutside = 21 // bytes of a batch that the frame's own checksum covers
	kindData     = 1
	kindEnd      = 15
)

// frame is one frame in a file of the log.
type frame struct {
	file       string
	start, end int64
	kind       byte
}

// segment is one file of the log with the frames that belong to it.
type segment struct {
	file   string
	base   uint64
	salt   []byte
	frames []frame
}

// sealed tells a full segment from the one that is written to.
func (s *segment) sealed() bool {
	return len(s.frames) > 0 && s.frames[len(s.frames)-1].kind == kindEnd
}

// segments reads the log of a broker that does not run, in the log's order.
func segments(t *testing.T, node *harness.Node) (all []segment) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(node.Dir, "commitlog", "*.segment"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		if len(raw) < framesAt || string(raw[:8]) != "MSTEMSEG" {
			continue // A spare.
		}
		s := segment{file: file, salt: raw[24:32], base: binary.LittleEndian.Uint64(raw[32:])}
		for at := int64(framesAt); at+frameHeader <= int64(len(raw)); {
			h := raw[at:]
			if string(h[:4]) != "MSFR" || binary.LittleEndian.Uint64(h[16:]) != s.base+uint64(at) {
				break
			}
			end := at + frameHeader + int64(binary.LittleEndian.Uint32(h[8:]))
			s.frames = append(s.frames, frame{file, at, end, h[5]})
			at = (end + 7) / 8 * 8
		}
		if len(s.frames) > 0 {
			all = append(all, s)
		}
	}
	for i := range all {
		for j := range i {
			if all[i].base < all[j].base {
				all[i], all[j] = all[j], all[i]
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// lastData is the last frame with records, which is where a crash tears.
func lastData(t *testing.T, node *harness.Node) (last frame, salt []byte) {
	t.Helper()
	for _, s := range segments(t, node) {
		for _, f := range s.frames {
			if f.kind == kindData {
				last, salt = f, s.salt
			}
		}
	}
	require.NotEmpty(t, last.file)
	return last, salt
}

// patch overwrites bytes of a file.
func patch(t *testing.T, file string, at int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(with, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// flip changes one bit of a file.
func flip(t *testing.T, file string, at int64) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	patch(t, file, at, []byte{raw[at] ^ 0x10})
}

// hugeFrame makes a frame header out of the last one that is right in all but
// its length, which is far beyond the file.
func hugeFrame(t *testing.T, last frame, salt []byte) []byte {
	t.Helper()
	raw, err := os.ReadFile(last.file)
	require.NoError(t, err)
	h := append([]byte{}, raw[last.start:last.start+frameHeader+batchOutside]...)
	next := (last.end + 7) / 8 * 8
	binary.LittleEndian.PutUint64(h[16:], binary.LittleEndian.Uint64(h[16:])+uint64(next-last.start))
	binary.LittleEndian.PutUint32(h[8:], 0x7fff_fff0)
	binary.LittleEndian.PutUint64(h[56:], binary.LittleEndian.Uint64(h[56:])+1)
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(salt, castagnoli), castagnoli, h[:76])
	binary.LittleEndian.PutUint32(h[76:], crc32.Update(sum, castagnoli, h[frameHeader:]))
	return h
}
