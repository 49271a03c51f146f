package batch

import (
	"encoding/hex"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Batches as Apache Kafka 4.3.1 stored and served them.
const (
	kafkaPlain = "0000000000000000000000470000000002e30b5ddd000000000001000001a22c7e5173000001a22c7e5173ffffffffffffffff" +
		"ffffffffffff0000000214000000046b310476310014000002046b3204763200"
	kafkaGzip = "000000000000000f00000058000000000232cf3001000100000001000001a22c7e5282000001a22c7e5282ffffffffffffffff" +
		"ffffffffffff000000021f8b08000000000000ff1260606060ca662a6310606060023300010000ffff2cfe4eb612000000"
	kafkaTransactional = "00000000000000000000003b00000000025b2a6892001000000000000001a22c7efa87000001a22c7efa87" +
		"000000000000000b0000000000000000000112000000026b04747800"
	kafkaCommit = "0000000000000001000000420000000002504c0f8d003000000000000001a22c7efb36000001a22c7efb36" +
		"000000000000000b0000ffffffff000000012000000008000000010c00000000000000"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestKafkasBatchesAreBuiltByteForByte(t *testing.T) {
	b := NewBuilder(Spec{})
	b.Append(0x01a22c7e5173, []byte("k1"), []byte("v1"))
	b.Append(0x01a22c7e5173, []byte("k2"), []byte("v2"))
	out, err := b.Batch()
	require.NoError(t, err)
	require.Equal(t, kafkaPlain, hex.EncodeToString(out))

	b = NewBuilder(Spec{Transactional: true, Producer: &Producer{ID: 11, Epoch: 0, Sequence: 0}})
	b.Append(0x01a22c7efa87, []byte("k"), []byte("tx"))
	out, err = b.Batch()
	require.NoError(t, err)
	require.Equal(t, kafkaTransactional, hex.EncodeToString(out))

	out = Marker{Type: Commit, ProducerID: 11, ProducerEpoch: 0, CoordinatorEpoch: 0, Timestamp: 0x01a22c7efb36}.Batch()
	Stamp(out, 1, 0)
	require.Equal(t, kafkaCommit, hex.EncodeToString(out))
}

func TestKafkasBatchesAreRead(t *testing.T) {
	for _, s := range []string{kafkaPlain, kafkaGzip, kafkaTransactional, kafkaCommit} {
		b := unhex(t, s)
		sum, err := Validate(b, Checks{Internal: true})
		require.NoError(t, err)
		require.True(t, sum.TimestampsExact())
		records, err := collect(b)
		require.NoError(t, err)
		require.Len(t, records, int(sum.NumRecords))
	}
	records, err := collect(unhex(t, kafkaGzip))
	require.NoError(t, err)
	require.EqualValues(t, 15, records[0].Offset)
	require.EqualValues(t, 16, records[1].Offset)
}

func TestBatchesOfManyConnectionsAreHandledAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 30 {
				c := allCodecs[(i+j)%len(allCodecs)]
				b := build(t, Spec{Codec: c}, 50+i)
				bad := clone(b)
				bad[len(bad)-1] ^= 0xff
				fix(bad)
				_, err := Validate(b, kafkaChecks)
				_, _ = Validate(bad, kafkaChecks)
				if err == nil {
					b, err = Recompress(b, allCodecs[(i*3+j)%len(allCodecs)], 9) // A level that each codec has.
				}
				if err == nil {
					_, err = collect(b)
				}
				if err != nil {
					t.Errorf("codec %v: %v", c, err)
				}
			}
		})
	}
	wg.Wait()
}
