package log_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// large appends batches of about 20 KB each, that hold their number.
func large(t *testing.T, s *log.Store, p *log.Partition, n int) {
	t.Helper()
	for i := range n {
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, 1000, fmt.Sprintf("needle-%d-", i)+strings.Repeat("v", 20_000)))
	}
}

// rest returns all that is left of a stream.
func rest(t *testing.T, b *log.Batches) (all []byte) {
	t.Helper()
	for b.Rest() > 0 {
		before := b.Rest()
		pieces, err := b.More()
		require.NoError(t, err)
		more := bytes.Join(pieces, nil)
		require.Equal(t, before-len(more), b.Rest())
		require.NotEmpty(t, more)
		all = append(all, more...)
	}
	b.Discard()
	return all
}

func TestStreamsBringWhatReadsReturn(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	large(t, s, p, 60)
	for _, where := range []string{"memory", "indexes"} {
		t.Run(where, func(t *testing.T) {
			for _, now := range []int{0, 1, 50_000, 2 << 20} {
				for offset := int64(0); offset < p.End(); offset += 7 {
					want, err := p.Read(offset, p.End(), 1<<20, true)
					require.NoError(t, err)
					require.Zero(t, want.Rest())
					b, err := p.Stream(offset, p.End(), 1<<20, true, now)
					require.NoError(t, err)
					require.Equal(t, want.Size(), b.Size())
					require.Equal(t, want.NextOffset(), b.NextOffset())
					first := bytes.Join(b.Buffers(), nil)
					require.Equal(t, now > 0, len(first) > 0, "one batch at least, unless none is wanted")
					require.LessOrEqual(t, len(first), max(now, 21_000))
					require.Equal(t, b.Size()-len(first), b.Rest())
					require.Equal(t, bytes.Join(want.Buffers(), nil), append(first, rest(t, b)...))
					want.Release()
					b.Release()
				}
			}
		})
		roll(t, s)
	}
}

func TestAStreamHoldsItsSegments(t *testing.T) {
	freed := make(chan []string, 100)
	s := storetest.Open(t, func(o *log.Options) { o.Events.Freed = func(files []string) { freed <- files } })
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	large(t, s, p, 30)
	roll(t, s)
	want, err := p.Read(0, p.End(), 1<<20, true)
	require.NoError(t, err)
	defer want.Release()
	b, err := p.Stream(0, p.End(), 1<<20, true, 0)
	require.NoError(t, err)
	require.NoError(t, s.Delete([]log.PartitionID{p.ID()}))
	require.NotEmpty(t, <-freed, "the log is without them")
	storetest.Create(t, s, 2, "other", 1, log.Fsync)
	roll(t, s) // New segments are made of those that nobody holds.
	require.Equal(t, bytes.Join(want.Buffers(), nil), rest(t, b))
	b.Release()
}

func TestDamageEndsAStream(t *testing.T) {
	fs := vfs.NewMem(1)
	o := storetest.Small(fs)
	s, err := log.Open(o)
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	large(t, s, p, 50)
	roll(t, s)
	require.NoError(t, s.Close())
	flip(t, fs, "needle-40-")
	s, err = log.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p = s.Partition(p.ID())
	b, err := p.Stream(0, p.End(), 2<<20, true, 0)
	require.NoError(t, err)
	require.EqualValues(t, 50, b.NextOffset())
	var damaged *log.StorageError
	for err == nil {
		_, err = b.More()
	}
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, [2]int64{40, 40}, [2]int64{damaged.First, damaged.Last})
	b.Release()

	b, err = p.Stream(0, p.End(), 2<<20, true, 0)
	require.NoError(t, err)
	require.EqualValues(t, 40, b.NextOffset(), "the next one ends before it")
	rest(t, b)
	b.Release()
	_, err = p.Stream(40, p.End(), 2<<20, true, 0)
	require.ErrorAs(t, err, &damaged)
}
