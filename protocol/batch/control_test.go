package batch

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMarkersRoundTrip(t *testing.T) {
	for _, kind := range []MarkerType{Abort, Commit} {
		m := Marker{Type: kind, ProducerID: 1 << 33, ProducerEpoch: 12, CoordinatorEpoch: 77, Timestamp: testTime}
		b := m.Batch()
		require.True(t, ChecksumOK(b))
		got, err := ParseMarker(b)
		require.NoError(t, err)
		require.Equal(t, m, got)
		h, err := ParseHeader(b)
		require.NoError(t, err)
		require.True(t, h.IsControl())
		require.True(t, h.IsTransactional())
		require.EqualValues(t, -1, h.BaseSequence)
		require.EqualValues(t, -1, h.LastSequence())
		require.EqualValues(t, 1, h.NumRecords)
	}
}

func TestAMarkersRecordIsKafkas(t *testing.T) {
	b := Marker{Type: Commit, ProducerID: 5, ProducerEpoch: 0, CoordinatorEpoch: 1, Timestamp: testTime}.Batch()
	// Length 16, attributes, deltas, key length 4: version 0, type 1; value length 6: version 0, epoch 1; no headers.
	require.Equal(t, "20"+"00"+"00"+"00"+"08"+"00000001"+"0c"+"0000"+"00000001"+"00", hex.EncodeToString(b[HeaderLen:]))
	records, err := collect(b)
	require.NoError(t, err)
	var key kmsg.ControlRecordKey
	require.NoError(t, key.ReadFrom(records[0].Key))
	require.Equal(t, kmsg.ControlRecordKeyTypeCommit, key.Type)
	var value kmsg.EndTxnMarker
	require.NoError(t, value.ReadFrom(records[0].Value))
	require.EqualValues(t, 1, value.CoordinatorEpoch)
}

func TestWhatIsNoMarkerIsRefused(t *testing.T) {
	control := func(key, value []byte) []byte {
		b := NewBuilder(Spec{Control: true, Producer: &Producer{ID: 1, Sequence: -1}})
		b.Append(testTime, key, value)
		out, err := b.Batch()
		require.NoError(t, err)
		return out
	}
	for name, b := range map[string][]byte{
		"data":             build(t, Spec{}, 1),
		"leader change":    control([]byte{0, 0, 0, 2}, []byte{0, 0, 0, 0, 0, 1}),
		"negative type":    control([]byte{0, 0, 0xff, 0xff}, []byte{0, 0, 0, 0, 0, 1}),
		"short key":        control([]byte{0, 0, 0}, []byte{0, 0, 0, 0, 0, 1}),
		"null key":         control(nil, []byte{0, 0, 0, 0, 0, 1}),
		"negative version": control([]byte{0xff, 0xff, 0, 1}, []byte{0, 0, 0, 0, 0, 1}),
		"short value":      control([]byte{0, 0, 0, 1}, []byte{0, 0, 0, 0, 0}),
		"null value":       control([]byte{0, 0, 0, 1}, nil),
		"value of the old": control([]byte{0, 0, 0, 1}, []byte{0xff, 0xff, 0, 0, 0, 1}),
	} {
		_, err := ParseMarker(b)
		require.ErrorIs(t, err, ErrNoMarker, name)
	}
	_, err := ParseMarker(nil)
	require.ErrorIs(t, err, ErrShort)
	bad := control([]byte{0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 1})
	bad[HeaderLen] = 0x80
	_, err = ParseMarker(bad)
	require.ErrorIs(t, err, ErrInvalidRecord)
	putInt32(bad, posNumRecords, 0)
	_, err = ParseMarker(bad)
	require.ErrorIs(t, err, ErrEmpty)

	m, err := ParseMarker(control([]byte{0, 1, 0, 1, 9, 9}, []byte{0, 1, 0, 0, 0, 1, 9}))
	require.NoError(t, err, "later versions append")
	require.Equal(t, Commit, m.Type)
	require.Equal(t, "abort commit control type 2", Abort.String()+" "+Commit.String()+" "+MarkerType(2).String())
}
