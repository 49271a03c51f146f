package batch

import (
	"bytes"
	"math"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sample is a set of records with all that a record can have.
func sample() []Record {
	return []Record{
		{Timestamp: testTime, Key: []byte("key"), Value: []byte("value"), Headers: []RecordHeader{{"a", []byte("1")}, {"b", nil}, {"", []byte{}}}},
		{Timestamp: testTime - 5_000_000_000, Value: []byte("no key")},
		{Timestamp: testTime + 70, Key: []byte("tombstone")},
		{Timestamp: testTime + 1, Key: []byte{}, Value: []byte{}},
		{Timestamp: testTime + 2, Key: mixed(200), Value: mixed(3 * streamWindow)},
		{Timestamp: testTime + 3, Key: []byte("last"), Value: mixed(70)},
	}
}

func buildSample(t testing.TB, s Spec) []byte {
	t.Helper()
	b := NewBuilder(s)
	for _, r := range sample() {
		b.Append(r.Timestamp, r.Key, r.Value, r.Headers...)
	}
	require.Equal(t, len(sample()), b.Len())
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

func TestRecordsComeBackAsTheyWereBuilt(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		got, err := collect(buildSample(t, Spec{Codec: c, BaseOffset: 1000}))
		require.NoError(t, err)
		want := sample()
		require.Len(t, got, len(want))
		for i, w := range want {
			w.Offset, w.OffsetDelta = int64(1000+i), int32(i)
			if w.Headers == nil {
				w.Headers = []RecordHeader{}
			}
			require.Equal(t, w, got[i])
		}
	})
}

func TestFranzGoReadsWhatIsBuilt(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		b := buildSample(t, Spec{Codec: c, BaseOffset: 1000, LeaderEpoch: 4, Producer: &Producer{ID: 9, Epoch: 2, Sequence: 5}})
		fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			KeepControlRecords: true, Offset: 1000, Topic: "t", DisableCRCValidation: false,
		}, &kmsg.FetchResponseTopicPartition{RecordBatches: b}, kgo.DefaultDecompressor(), nil)
		require.NoError(t, fetched.Err)
		require.EqualValues(t, 1006, next)
		want := sample()
		require.Len(t, fetched.Records, len(want))
		for i, r := range fetched.Records {
			require.Equal(t, want[i].Key, r.Key)
			require.Equal(t, want[i].Value, r.Value)
			require.Equal(t, want[i].Timestamp, r.Timestamp.UnixMilli())
			require.EqualValues(t, 1000+i, r.Offset)
			require.EqualValues(t, 4, r.LeaderEpoch)
			require.EqualValues(t, 9, r.ProducerID)
			require.Len(t, r.Headers, len(want[i].Headers))
			for j, h := range r.Headers {
				require.Equal(t, want[i].Headers[j].Key, h.Key)
				require.Equal(t, want[i].Headers[j].Value, h.Value)
			}
		}
	})
}

// kmsgBatch encodes the sample with kmsg's types, which know nothing of ours.
func kmsgBatch() []byte {
	var records []byte
	for i, r := range sample() {
		k := kmsg.Record{TimestampDelta64: r.Timestamp - testTime, OffsetDelta: int32(i), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		k.Length = int32(len(k.AppendTo(nil)) - 1) // The length of the zero length.
		records = k.AppendTo(records)
	}
	b := kmsg.RecordBatch{
		FirstOffset: 7, Length: int32(HeaderLen - Overhead + len(records)), PartitionLeaderEpoch: 3, Magic: 2,
		Attributes: attrTransactional, LastOffsetDelta: int32(len(sample()) - 1), FirstTimestamp: testTime, MaxTimestamp: testTime + 70,
		ProducerID: 12, ProducerEpoch: 1, FirstSequence: 0, NumRecords: int32(len(sample())), Records: records,
	}
	out := b.AppendTo(nil)
	b.CRC = int32(checksum(out))
	return b.AppendTo(nil)
}

func TestBuiltBytesEqualKmsgs(t *testing.T) {
	require.Equal(t, kmsgBatch(), buildSample(t, Spec{
		BaseOffset: 7, LeaderEpoch: 3, Transactional: true, Producer: &Producer{ID: 12, Epoch: 1, Sequence: 0},
	}))
}

func TestAnEmptyBuilderMakesNoBatch(t *testing.T) {
	_, err := NewBuilder(Spec{}).Batch()
	require.ErrorIs(t, err, ErrEmpty)
}

func TestAnIterationCanStopEarly(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		n := 0
		for _, err := range Records(buildSample(t, Spec{Codec: c})) {
			require.NoError(t, err)
			if n++; n == 2 {
				break
			}
		}
		require.Equal(t, 2, n)
	})
}

func TestBatchesWithLargeZstdWindowsAreReadInsideOneAnother(t *testing.T) {
	w, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	records := append(rec(attrs, 0, 0, -1, 1, "a", 0), rec(attrs, 0, 1, -1, 1, "b", 0)...)
	var buf bytes.Buffer
	buf.Write(make([]byte, HeaderLen))
	w.Reset(&buf)
	_, err = w.Write(records)
	require.NoError(t, err)
	require.NoError(t, w.Flush(), "so that the frame keeps its window")
	require.NoError(t, w.Close())
	b := buf.Bytes()
	seal(b, Header{Magic: magic2, Attributes: int16(Zstd), NumRecords: 2, LastOffsetDelta: 1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1})
	pairs := 0
	for outer, err := range Records(b) {
		require.NoError(t, err)
		_, err = Validate(b, Checks{})
		require.NoError(t, err)
		for inner, err := range Records(b) {
			require.NoError(t, err)
			require.Len(t, string(outer.Value)+string(inner.Value), 2)
			pairs++
		}
	}
	require.Equal(t, 4, pairs)
	require.True(t, wideMu.TryLock())
	wideMu.Unlock()
}

func TestReadersOfCutBatchesReportIt(t *testing.T) {
	b := build(t, Spec{}, 3)
	for _, cut := range [][]byte{nil, b[:40], b[:HeaderLen], b[:len(b)-1]} {
		_, err := collect(cut)
		require.ErrorIs(t, err, ErrShort)
		_, _, _, err = FindTimestamp(cut, 0, 0)
		require.ErrorIs(t, err, ErrShort)
		_, err = Recompress(cut, Gzip, -1)
		require.ErrorIs(t, err, ErrShort)
	}
	putInt16(b, posAttributes, 6)
	_, err := collect(b)
	require.ErrorIs(t, err, ErrCodec)
	_, _, _, err = FindTimestamp(b, 0, 0)
	require.ErrorIs(t, err, ErrCodec)
	_, err = Recompress(b, Gzip, -1)
	require.ErrorIs(t, err, ErrCodec)
}

func TestLogAppendTimeCountsForEachRecord(t *testing.T) {
	got, err := collect(buildSample(t, Spec{LogAppendTime: testTime + 99}))
	require.NoError(t, err)
	for _, r := range got {
		require.EqualValues(t, testTime+99, r.Timestamp)
	}
}

func TestFindTimestampLooksIntoTheBatch(t *testing.T) {
	type answer struct {
		offset, timestamp int64
		found             bool
	}
	eachCodec(t, func(t *testing.T, c Codec) {
		b := NewBuilder(Spec{Codec: c, BaseOffset: 50})
		for ts := range int64(12) {
			b.Append(ts+1, nil, mixed(int(ts)*10_000))
		}
		out, err := b.Batch()
		require.NoError(t, err)
		find := func(ts, from int64) answer {
			offset, timestamp, found, err := FindTimestamp(out, ts, from)
			require.NoError(t, err)
			return answer{offset, timestamp, found}
		}
		require.Equal(t, answer{50, 1, true}, find(0, 0))
		require.Equal(t, answer{50, 1, true}, find(1, 0))
		require.Equal(t, answer{54, 5, true}, find(5, 0))
		require.Equal(t, answer{61, 12, true}, find(12, 0))
		require.Equal(t, answer{}, find(13, 0))
		require.Equal(t, answer{53, 4, true}, find(1, 53), "after DeleteRecords")
		require.Equal(t, answer{}, find(1, 62))

		SetTimestamps(out, 500, true)
		require.Equal(t, answer{50, 500, true}, find(500, 0))
		require.Equal(t, answer{}, find(501, 0))
	})
}

func TestRecompressKeepsAllButTheCodec(t *testing.T) {
	for _, from := range allCodecs {
		for _, to := range allCodecs {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				spec := Spec{
					Codec: from, BaseOffset: 30, LeaderEpoch: 6, Transactional: true, LogAppendTime: testTime + 500,
					Producer: &Producer{ID: 12, Epoch: 1, Sequence: math.MaxInt32},
				}
				old := buildSample(t, spec)
				out, err := Recompress(old, to, to.DefaultLevel())
				require.NoError(t, err)
				require.True(t, ChecksumOK(out))
				oldHeader, err := ParseHeader(old)
				require.NoError(t, err)
				h, err := ParseHeader(out)
				require.NoError(t, err)
				require.Equal(t, to, h.Codec())
				require.True(t, h.IsLogAppendTime())
				h.Length, h.CRC, h.Attributes = oldHeader.Length, oldHeader.CRC, oldHeader.Attributes
				require.Equal(t, oldHeader, h)
				want, err := collect(old)
				require.NoError(t, err)
				got, err := collect(out)
				require.NoError(t, err)
				require.Equal(t, want, got)
				spec.Codec = to
				require.Equal(t, buildSample(t, Spec{})[HeaderLen:], mustDecompress(t, to, out[HeaderLen:]))
			})
		}
	}
}

func mustDecompress(t *testing.T, c Codec, src []byte) []byte {
	t.Helper()
	out, err := Decompress(c, src, DefaultMaxUncompressed)
	require.NoError(t, err)
	return out
}

func TestRecompressNumbersScatteredRecordsAnew(t *testing.T) {
	long := string(mixed(2 * streamWindow))
	records := append(rec(attrs, 0, 5, 1, "a", len(long), long, 0), rec(attrs, 3, 1_000_000, -1, 1, "x", 1, 1, "h", -1)...)
	records = append(records, rec(attrs, -9, -3, 1, "c", -1, 0)...)
	for _, c := range allCodecs {
		b := rawBatch(t, c, 3, records)
		s, err := Validate(b, Checks{})
		require.NoError(t, err)
		require.True(t, s.Scattered)
		require.EqualValues(t, testTime+3, s.MaxTimestamp)
		require.EqualValues(t, 1, s.OffsetOfMaxTimestamp)
		out, err := Recompress(b, c, c.DefaultLevel())
		require.NoError(t, err)
		s, err = Validate(out, Checks{})
		require.NoError(t, err)
		require.False(t, s.Scattered)
		got, err := collect(out)
		require.NoError(t, err)
		require.Equal(t, long, string(got[0].Value))
		for i, r := range got {
			require.EqualValues(t, i, r.Offset)
		}
		require.Equal(t, []RecordHeader{{"h", nil}}, got[1].Headers)
		require.EqualValues(t, testTime-9, got[2].Timestamp)
	}
}

func TestRecompressStopsAtTheLimit(t *testing.T) {
	b := buildSample(t, Spec{Codec: Gzip})
	plain := len(buildSample(t, Spec{}))
	_, err := Recompression{Codec: None, Limit: plain}.Apply(b)
	require.NoError(t, err)
	_, err = Recompression{Codec: None, Limit: plain - 1}.Apply(b)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Recompression{Codec: LZ4, Level: 9, Limit: 100}.Apply(b)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Recompression{Codec: LZ4, Level: 90}.Apply(b)
	require.Error(t, err)
	_, err = Recompression{Codec: LZ4, Level: 9}.Apply(b)
	require.NoError(t, err, "an encoder that was stopped is used again")
}
