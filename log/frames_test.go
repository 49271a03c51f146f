package log

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

func TestControlFramesReadBackWhatWasWritten(t *testing.T) {
	var specs []CreateSpec
	for i := range int32(5000) {
		specs = append(specs, CreateSpec{ID: PartitionID{Topic: [16]byte{byte(i / 100)}, Partition: i}, Name: string('a' + i/1000), Durability: Durability(i % 2), LeaderEpoch: i%7 - 1})
	}
	var got []CreateSpec
	for rest := specs; len(rest) > 0; {
		var b []byte
		b, rest = appendCreates(nil, rest)
		require.Less(t, len(b), frameBudget+300)
		require.NoError(t, readCreates(b, func(c CreateSpec) { got = append(got, c) }))
	}
	require.Equal(t, specs, got)

	want := startItem{PartitionID{Partition: 4}, 1 << 40, 77}
	require.NoError(t, readStarts(appendStart([]byte{frameVersion}, want), func(i startItem) { require.Equal(t, want, i) }))
	var ps queue.Producers
	removed, _, err := readTruncate(appendTruncate(nil, 55, &ps))
	require.NoError(t, err)
	require.EqualValues(t, 55, removed)
	require.ErrorIs(t, readDeletes([]byte{frameVersion + 1}, nil), commitlog.ErrFormatTooNew)
	require.ErrorIs(t, readDeletes([]byte{frameVersion, 1}, nil), queue.ErrCorrupt)
}

func FuzzControlFrames(f *testing.F) {
	b, _ := appendCreates(nil, []CreateSpec{{Name: "orders"}, {Name: "orders", LeaderEpoch: -1, Durability: Async}})
	f.Add(b)
	f.Add(appendStart([]byte{frameVersion}, startItem{start: 5}))
	var ps queue.Producers
	f.Add(appendTruncate(nil, 5, &ps))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = readCreates(b, func(CreateSpec) {})
		_ = readDeletes(b, func(PartitionID) {})
		_ = readStarts(b, func(startItem) {})
		_, _, _ = readTruncate(b)
	})
}
