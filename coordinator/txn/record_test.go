package txn

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

func replayed(t *testing.T, key, value []byte) (*Machine, error) {
	t.Helper()
	m := New(0, &Options{})
	return m, m.Replay(coordinator.Record{Key: key, Value: value}, coordinator.NoProducer)
}

func TestRecordsThatCannotBeReadAreReported(t *testing.T) {
	good := (&txn{id: "a", state: Ongoing, places: places{"t": {1, 2}}, next: 4}).value()
	for name, r := range map[string]coordinator.Record{
		"no key":          {Value: good},
		"unknown key":     {Key: []byte{0, 1, 0, 1, 'a'}, Value: good},
		"short key":       {Key: []byte{0, 0, 0, 2, 'a'}, Value: good},
		"negative length": {Key: []byte{0, 0, 0xff, 0xfe}, Value: good},
		"empty value":     {Key: keyOf("a"), Value: []byte{}},
		"newer value":     {Key: keyOf("a"), Value: append([]byte{0, 2}, good[2:]...)},
		"unknown state":   {Key: keyOf("a"), Value: append(append([]byte{}, good[:16]...), append([]byte{9}, good[17:]...)...)},
	} {
		m, err := replayed(t, r.Key, r.Value)
		require.ErrorIs(t, err, errMalformed, name)
		require.Empty(t, m.txns, name)
	}
	for n := range len(good) {
		m, err := replayed(t, keyOf("a"), good[:n])
		require.ErrorIs(t, err, errMalformed, n)
		require.Empty(t, m.txns, n)
	}
}

func TestTagsOfLaterVersionsAreSkipped(t *testing.T) {
	v := kmsg.NewTxnMetadataValue()
	v.Version, v.ProducerID, v.State, v.NextProducerEpoch, v.NextProducerID = 1, 5, 1, 3, 6
	v.UnknownTags.Set(9, []byte("later"))
	m, err := replayed(t, keyOf("a"), v.AppendTo(nil))
	require.NoError(t, err)
	require.EqualValues(t, 5, m.txns["a"].producer)
	require.EqualValues(t, 6, m.txns["a"].next)
}

func FuzzReplay(f *testing.F) {
	f.Add(keyOf("a"), (&txn{id: "a", state: Ongoing, places: places{"t": {1, 2}}, next: 4}).value())
	f.Add(keyOf("b"), (&txn{id: "b", previous: -1, next: -1, version: 2}).value())
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, err := replayed(t, key, value)
		for _, x := range m.txns {
			if err != nil {
				t.Fatal("a record that cannot be read was taken in")
			}
			again, err := replayed(t, keyOf(x.id), x.value())
			if err != nil {
				t.Fatalf("what is written cannot be read: %v", err)
			}
			// Of an empty one partitions are not written.
			if x.state == Empty {
				x.places = nil
			}
			require.Equal(t, x.places, again.txns[x.id].places)
			x.places, again.txns[x.id].places, x.m, again.txns[x.id].m = nil, nil, nil, nil
			require.Equal(t, x, again.txns[x.id])
		}
	})
}

// BenchmarkLoad measures the replay of records of ids that are mostly the same.
func BenchmarkLoad(b *testing.B) {
	var records []coordinator.Record
	for i := range 1000 {
		id := string([]byte{'i', byte('0' + i%10), byte('0' + i/10%10), byte('0' + i/100)})
		x := txn{id: id, state: CompleteCommit, previous: 1, next: -1}
		records = append(records, coordinator.Record{Key: keyOf(id), Value: x.value()})
	}
	b.ReportAllocs()
	m := New(0, &Options{})
	for i := 0; b.Loop(); i++ {
		if err := m.Replay(records[i%len(records)], coordinator.NoProducer); err != nil {
			b.Fatal(err)
		}
	}
}
