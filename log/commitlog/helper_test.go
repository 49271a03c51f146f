package commitlog

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/log/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testBatch returns a record batch of a size whose content depends on seed, valid as far as the log looks.
func testBatch(offset int64, epoch int32, count, size int, seed uint64) []byte {
	b := make([]byte, max(size, batchHead))
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := batchHead; i < len(b); i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	be := binary.BigEndian
	be.PutUint64(b, uint64(offset))
	be.PutUint32(b[8:], uint32(len(b)-batchPrefix))
	be.PutUint32(b[12:], uint32(epoch))
	b[16] = batchMagic
	be.PutUint32(b[23:], uint32(count-1))
	be.PutUint64(b[35:], 1000+uint64(offset))
	be.PutUint32(b[57:], uint32(count))
	be.PutUint32(b[batchCRC:], crc32.Checksum(b[batchOutside:], castagnoli))
	return b
}

// smallOptions make a log whose segments and memory are so small that tests cross their ends often.
func smallOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, Dir: "data", ClusterID: "cluster", NodeID: 1, SegmentBytes: 32 << 10, BlockBytes: 1 << 10, RingBytes: 32 << 10,
		ReserveBytes: 8 << 10, MinFree: -1,
	}
}

// found is a frame that was read back.
type found struct {
	Header
	Place
	payload string
}

// reopen opens a log and recovers it, and returns all frames that it holds, in the order of the stream.
func reopen(t testing.TB, o Options) (*Log, []found) {
	t.Helper()
	l, frames, err := tryReopen(o)
	require.NoError(t, err)
	return l, frames
}

func tryReopen(o Options) (*Log, []found, error) {
	l, err := Open(o)
	if err != nil {
		return nil, nil, err
	}
	var frames []found
	collect := func(f Frame) error {
		frames = append(frames, found{f.Header, f.Place, string(f.Payload)})
		return nil
	}
	m := l.Manifest()
	for _, s := range m.Segments {
		if s.Sealed || m.Clean {
			if err := l.Scan(s.ID, collect); err != nil {
				_ = l.Close()
				return nil, nil, err
			}
		}
	}
	if err := l.Recover(collect); err != nil {
		_ = l.Close()
		return nil, nil, err
	}
	return l, frames, nil
}

// place appends one frame.
func place(l *Log, h Header, d Durability, tag *Tag, payload []byte) (Place, error) {
	r, err := l.Reserve(Budget{Bytes: len(payload), Durability: d})
	if err != nil {
		return Place{}, err
	}
	defer r.Release()
	return r.Place(h, tag, payload)
}

// appendBatch appends and commits one batch.
func appendBatch(l *Log, id PartitionID, offset int64, size int) (Place, error) {
	b := testBatch(offset, 3, 1, size, uint64(offset))
	p, err := place(l, Header{Kind: Data, ID: id, LeaderEpoch: 3, BaseOffset: offset, OffsetCount: 1, MaxTimestamp: 1000 + offset}, Synced, nil, b)
	if err != nil {
		return p, err
	}
	return p, l.Commit(p.End(), Synced)
}

// read returns a payload.
func read(l *Log, at Place) (string, error) {
	var p Pinned
	defer p.Release()
	if _, err := l.Pin(&p, []Place{at}); err != nil {
		return "", err
	}
	var out []byte
	for _, b := range p.Buffers() {
		out = append(out, b...)
	}
	return string(out), nil
}
