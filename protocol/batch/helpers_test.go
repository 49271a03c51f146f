package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allCodecs are the codecs with the level that tests take.
var allCodecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

const testTime = 1_700_000_000_000

func clone(b []byte) []byte { return slices.Clone(b) }

func putInt16(b []byte, at int, v int16) { binary.BigEndian.PutUint16(b[at:], uint16(v)) }
func putInt32(b []byte, at int, v int32) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
func putInt64(b []byte, at int, v int64) { binary.BigEndian.PutUint64(b[at:], uint64(v)) }

// fix makes length and checksum right again.
func fix(b []byte) []byte {
	putInt32(b, posLength, int32(len(b)-Overhead))
	putInt32(b, posCRC, int32(checksum(b)))
	return b
}

// build returns a batch of n records with rising timestamps, of which the second last is the highest.
func build(t testing.TB, s Spec, n int) []byte {
	t.Helper()
	b := NewBuilder(s)
	for i := range n {
		ts := int64(testTime + i)
		if i == n-2 {
			ts += 1000
		}
		b.Append(ts, fmt.Appendf(nil, "key-%d", i), bytes.Repeat([]byte("value "), i%5+1),
			RecordHeader{Key: "h", Value: []byte("x")}, RecordHeader{Key: "", Value: nil})
	}
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

// rawBatch returns a batch around the bytes of records, compressed by the codec, of which it claims to have count.
func rawBatch(t testing.TB, c Codec, count int, records []byte) []byte {
	t.Helper()
	out, err := Compress(c, c.DefaultLevel(), make([]byte, HeaderLen), records)
	require.NoError(t, err)
	seal(out, Header{
		Magic: magic2, Attributes: int16(c), LastOffsetDelta: int32(count - 1), NumRecords: int32(count),
		BaseTimestamp: testTime, MaxTimestamp: testTime, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1,
	})
	return out
}

// rec builds the bytes of a record by hand: numbers are varints, strings and bytes are raw.
func rec(parts ...any) []byte {
	body := raw(parts...)
	return append(appendVarint(nil, int64(len(body))), body...)
}

func raw(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = appendVarint(b, int64(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		default:
			panic(fmt.Sprintf("unknown part %T", p))
		}
	}
	return b
}

// attrs is the attributes byte of a hand-made record.
const attrs = "\x00"

// mixed returns bytes that compress, but not to nothing.
func mixed(n int) []byte {
	var sb strings.Builder
	for i := 0; sb.Len() < n; i++ {
		fmt.Fprintf(&sb, "line %d of %d;", i*7919%1000, i)
	}
	return []byte(sb.String())[:n]
}
