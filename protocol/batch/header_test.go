package batch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestHeaderEqualsKmsgs(t *testing.T) {
	b := build(t, Spec{BaseOffset: 77, LeaderEpoch: 5, Transactional: true, Producer: &Producer{ID: 1 << 40, Epoch: 3, Sequence: 9}}, 4)
	var want kmsg.RecordBatch
	require.NoError(t, want.ReadFrom(b))
	h, err := ParseHeader(b)
	require.NoError(t, err)
	require.Equal(t, Header{
		BaseOffset:      want.FirstOffset,
		Length:          want.Length,
		LeaderEpoch:     want.PartitionLeaderEpoch,
		Magic:           want.Magic,
		CRC:             uint32(want.CRC),
		Attributes:      want.Attributes,
		LastOffsetDelta: want.LastOffsetDelta,
		BaseTimestamp:   want.FirstTimestamp,
		MaxTimestamp:    want.MaxTimestamp,
		ProducerID:      want.ProducerID,
		ProducerEpoch:   want.ProducerEpoch,
		BaseSequence:    want.FirstSequence,
		NumRecords:      want.NumRecords,
	}, h)
	require.Equal(t, want.AppendTo(nil), b)
	require.Equal(t, len(b), h.Size())
	require.EqualValues(t, 80, h.LastOffset())
	require.EqualValues(t, 81, h.NextOffset())
	require.EqualValues(t, 12, h.LastSequence())
	require.True(t, h.HasProducer())
	require.True(t, h.IsTransactional())
	require.False(t, h.IsControl())
	require.False(t, h.IsLogAppendTime())
	require.False(t, h.HasDeleteHorizon())
	require.True(t, ChecksumOK(b))
}

func TestAHeaderThatIsNoneIsRefused(t *testing.T) {
	good := build(t, Spec{}, 1)
	for n := range HeaderLen {
		_, err := ParseHeader(good[:n])
		require.ErrorIs(t, err, ErrShort, "%d bytes", n)
	}
	_, err := ParseHeader(good[:HeaderLen])
	require.NoError(t, err, "a header alone is enough")

	for _, magic := range []byte{0, 1, 3, 255} {
		bad := clone(good)
		bad[posMagic] = magic
		_, err := ParseHeader(bad)
		require.ErrorIs(t, err, ErrMagic)
	}
	for _, length := range []int32{math.MinInt32, -1, 0, HeaderLen - Overhead - 1, math.MaxInt32} {
		bad := clone(good)
		putInt32(bad, posLength, length)
		_, err := ParseHeader(bad)
		require.ErrorIs(t, err, ErrLength, "length %d", length)
	}
}

func TestSequencesWrapToZero(t *testing.T) {
	h := Header{BaseSequence: math.MaxInt32 - 1, LastOffsetDelta: 1}
	require.EqualValues(t, math.MaxInt32, h.LastSequence())
	h.LastOffsetDelta = 2
	require.EqualValues(t, 0, h.LastSequence())
	h.LastOffsetDelta = 12
	require.EqualValues(t, 10, h.LastSequence())
	h.BaseSequence = -1
	require.EqualValues(t, -1, h.LastSequence())
}

func TestStampLeavesTheChecksumRight(t *testing.T) {
	b := build(t, Spec{}, 3)
	Stamp(b, math.MaxInt64-10, 1<<30)
	require.True(t, ChecksumOK(b))
	h, err := ParseHeader(b)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64-10, h.BaseOffset)
	require.EqualValues(t, 1<<30, h.LeaderEpoch)
}

func TestSetTimestampsSetsBitTimeAndChecksum(t *testing.T) {
	b := build(t, Spec{Codec: LZ4}, 3)
	before := clone(b)
	SetTimestamps(b, 123456, true)
	require.True(t, ChecksumOK(b))
	h, err := ParseHeader(b)
	require.NoError(t, err)
	require.True(t, h.IsLogAppendTime())
	require.EqualValues(t, 123456, h.MaxTimestamp)
	require.Equal(t, LZ4, h.Codec())

	old, err := ParseHeader(before)
	require.NoError(t, err)
	SetTimestamps(b, old.MaxTimestamp, false)
	require.Equal(t, before, b)
}

func TestChecksumSeesEveryBitThatItCovers(t *testing.T) {
	good := build(t, Spec{}, 2)
	for i := range len(good) * 8 {
		bad := clone(good)
		bad[i/8] ^= 1 << (i % 8)
		outside := i/8 < posLength || (i/8 >= posLeaderEpoch && i/8 < posCRC)
		require.Equal(t, outside, ChecksumOK(bad), "bit %d", i)
	}
	require.False(t, ChecksumOK(good[:len(good)-1]))
	require.False(t, ChecksumOK(append(clone(good), 0)))
	require.False(t, ChecksumOK(nil))
}
