package storetest

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// Dir is the directory of test stores.
const Dir = "/data"

// Small returns options of a store with small segments on a filesystem in
// memory: what takes hours elsewhere happens within a test.
func Small(fs vfs.FS) log.Options {
	return log.Options{
		FS: fs, Dir: Dir, ClusterID: "test", NodeID: 1, SegmentBytes: 128 << 10, SegmentEntries: 200, RingBytes: 256 << 10, BlockBytes: 16 << 10,
		ReserveBytes: 64 << 10, MinFree: -1, CacheRows: 64,
	}
}

// Open opens a store on a fresh filesystem in memory. At the test's end it is
// closed and everything in it is checked.
func Open(t testing.TB, change ...func(*log.Options)) *log.Store {
	t.Helper()
	o := Small(vfs.NewMem(1))
	for _, c := range change {
		c(&o)
	}
	return OpenOn(t, o)
}

// OpenOn opens a store as Open does, with the options as they are.
func OpenOn(t testing.TB, o log.Options) *log.Store {
	t.Helper()
	s, err := log.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		Check(t, o.FS)
	})
	return s
}

// Check demands that a stopped store's directory is whole.
func Check(t testing.TB, fs vfs.FS) {
	t.Helper()
	r, err := log.Check(fs, Dir)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
}

// ID returns the id of a test's partition: topics are told apart by one number.
func ID(topic uint64, partition int32) log.PartitionID {
	id := log.PartitionID{Partition: partition}
	binary.BigEndian.PutUint64(id.Topic[:], topic*0x9e3779b97f4a7c15) // Spread as UUIDs are.
	binary.BigEndian.PutUint64(id.Topic[8:], topic)
	return id
}

// Create makes partitions of one topic with an epoch begun.
func Create(t testing.TB, s *log.Store, topic uint64, name string, partitions int32, d log.Durability) []*log.Partition {
	t.Helper()
	specs := make([]log.CreateSpec, partitions)
	for i := range specs {
		specs[i] = log.CreateSpec{ID: ID(topic, int32(i)), Name: name, Durability: d, LeaderEpoch: 1}
	}
	require.NoError(t, s.Create(specs))
	ps := make([]*log.Partition, partitions)
	for i := range ps {
		ps[i] = s.Partition(specs[i].ID)
		require.NotNil(t, ps[i])
	}
	return ps
}

// Batch builds a batch of records with these values, all at one timestamp.
func Batch(t testing.TB, spec batch.Spec, timestamp int64, values ...string) []byte {
	t.Helper()
	b := batch.NewBuilder(spec)
	for _, v := range values {
		b.Append(timestamp, nil, []byte(v))
	}
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

// Append appends a batch as a client in epoch 1 and waits until it is safe.
func Append(t testing.TB, s *log.Store, p *log.Partition, records []byte) log.Appended {
	t.Helper()
	a, err := p.Append(log.Append{Records: records, LeaderEpoch: p.LatestEpoch()})
	require.NoError(t, err)
	require.NoError(t, s.Commit(a.Ticket))
	return a
}

// Values reads the values of all records in [from, end of the log).
func Values(t testing.TB, p *log.Partition, from int64) []string {
	t.Helper()
	var values []string
	for from < p.End() {
		b, err := p.Read(from, p.End(), 1<<20, true)
		require.NoError(t, err)
		require.Positive(t, b.Size(), "read at %d of %d", from, p.End())
		for _, one := range Split(t, b) {
			for r, err := range batch.Records(one) {
				require.NoError(t, err)
				if r.Offset >= from {
					values = append(values, string(r.Value))
				}
			}
		}
		from = b.NextOffset()
		b.Release()
	}
	return values
}

// Split copies the batches of a read.
func Split(t testing.TB, b *log.Batches) [][]byte {
	t.Helper()
	var all []byte
	for _, piece := range b.Buffers() {
		all = append(all, piece...)
	}
	require.Len(t, all, b.Size())
	var out [][]byte
	for len(all) > 0 {
		h, err := batch.ParseHeader(all)
		require.NoError(t, err)
		require.True(t, batch.ChecksumOK(all[:h.Size()]))
		out = append(out, all[:h.Size()])
		all = all[h.Size():]
	}
	return out
}
