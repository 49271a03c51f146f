package batch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachCodec runs a test with every codec.
func eachCodec(t *testing.T, test func(t *testing.T, c Codec)) {
	for _, c := range allCodecs {
		t.Run(c.String(), func(t *testing.T) { test(t, c) })
	}
}

func requireKind(t *testing.T, kind, err error) *InvalidError {
	t.Helper()
	var e *InvalidError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, kind)
	require.NotEmpty(t, e.Message)
	return e
}

func TestAGoodBatchPassesAndIsSummed(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		for _, n := range []int{1, 2, 3, 100, 5000} {
			b := build(t, Spec{Codec: c, Producer: &Producer{ID: 5, Epoch: 1, Sequence: 0}}, n)
			before := clone(b)
			s, err := Validate(b, Checks{RequireKeys: true, CheckTimestamps: true, Now: testTime, BeforeMaxMs: 10, AfterMaxMs: 10_000})
			require.NoError(t, err)
			require.Equal(t, before, b)
			require.EqualValues(t, n, s.NumRecords)
			require.True(t, s.TimestampsExact())
			require.False(t, s.Scattered)
			if n > 1 {
				require.EqualValues(t, testTime+n-2+1000, s.MaxTimestamp)
				require.EqualValues(t, n-2, s.OffsetOfMaxTimestamp)
			}
			plain := build(t, Spec{Producer: &Producer{ID: 5, Epoch: 1, Sequence: 0}}, n)
			require.Equal(t, len(plain)-HeaderLen, s.Uncompressed)
		}
	})
}

func TestTheFirstOfEqualTimestampsIsTheMaximum(t *testing.T) {
	b := NewBuilder(Spec{BaseOffset: 100})
	for _, ts := range []int64{5, 9, 9, 3} {
		b.Append(ts, nil, nil)
	}
	out, err := b.Batch()
	require.NoError(t, err)
	s, err := Validate(out, Checks{Internal: true})
	require.NoError(t, err)
	require.EqualValues(t, 9, s.MaxTimestamp)
	require.EqualValues(t, 101, s.OffsetOfMaxTimestamp)
}

func TestBatchHeadersThatDoNotAddUp(t *testing.T) {
	good := build(t, Spec{Producer: &Producer{ID: 7, Epoch: 0, Sequence: 0}}, 2)
	cases := []struct {
		name   string
		kind   error
		change func(b []byte) []byte
	}{
		{"base offset 5", ErrInvalidRecord, func(b []byte) []byte { putInt64(b, posBaseOffset, 5); return b }},
		{"record count 0", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posNumRecords, 0); return fix(b) }},
		{"record count -1", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posNumRecords, -1); return fix(b) }},
		{"count 0, delta -1", ErrInvalidRecord, func(b []byte) []byte {
			putInt32(b, posNumRecords, 0)
			putInt32(b, posLastOffsetDelta, -1)
			return fix(b)
		}},
		{"count of the lowest number", ErrInvalidRecord, func(b []byte) []byte {
			putInt32(b, posNumRecords, math.MinInt32)
			putInt32(b, posLastOffsetDelta, math.MaxInt32)
			return fix(b)
		}},
		{"count above delta", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posLastOffsetDelta, 0); return fix(b) }},
		{"last offset delta -1", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posLastOffsetDelta, -1); return fix(b) }},
		{"last offset delta 5", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posLastOffsetDelta, 5); return fix(b) }},
		{"fewer records than count", ErrInvalidRecord, func(b []byte) []byte {
			putInt32(b, posLastOffsetDelta, 2)
			putInt32(b, posNumRecords, 3)
			return fix(b)
		}},
		{"more records than count", ErrInvalidRecord, func(b []byte) []byte {
			putInt32(b, posLastOffsetDelta, 0)
			putInt32(b, posNumRecords, 1)
			return fix(b)
		}},
		{"control bit", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, attrControl); return fix(b) }},
		{"producer without sequence", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posBaseSequence, -1); return fix(b) }},
		{"codec 5", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, 5); return fix(b) }},
		{"codec 7", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, 7); return fix(b) }},
		{"gzip bit on plain bytes", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, 1); return fix(b) }},
		{"snappy bit on plain bytes", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, 2); return fix(b) }},
		{"lz4 bit on plain bytes", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, 3); return fix(b) }},
		{"zstd bit on plain bytes", ErrInvalidRecord, func(b []byte) []byte { putInt16(b, posAttributes, 4); return fix(b) }},
		{"wrong checksum", ErrCorrupt, func(b []byte) []byte { b[posCRC]++; return b }},
		{"length one short", ErrCorrupt, func(b []byte) []byte { putInt32(b, posLength, int32(len(b)-Overhead-1)); return b }},
		{"length one long", ErrInvalidRecord, func(b []byte) []byte { putInt32(b, posLength, int32(len(b)-Overhead+1)); return b }},
		{"bytes behind", ErrInvalidRecord, func(b []byte) []byte { return append(b, 1, 2, 3) }},
		{"magic 1", ErrInvalidRecord, func(b []byte) []byte { b[posMagic] = 1; return b }},
		{"nothing", ErrInvalidRecord, func([]byte) []byte { return nil }},
		{"header only", ErrInvalidRecord, func(b []byte) []byte { return fix(b[:HeaderLen]) }},
		{"cut header", ErrInvalidRecord, func(b []byte) []byte { return b[:40] }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Validate(tc.change(clone(good)), Checks{})
			e := requireKind(t, tc.kind, err)
			require.Empty(t, e.Records)
			require.False(t, e.Shown)
		})
	}
	for name, change := range map[string]func(b []byte){
		"delete horizon bit":        func(b []byte) { putInt16(b, posAttributes, 1<<6) },
		"unused bit 8":              func(b []byte) { putInt16(b, posAttributes, 1<<8) },
		"epoch without producer":    func(b []byte) { putInt64(b, posProducerID, -1); putInt16(b, posProducerEpoch, 3) },
		"producer with epoch -1":    func(b []byte) { putInt16(b, posProducerEpoch, -1) },
		"transactional":             func(b []byte) { putInt16(b, posAttributes, attrTransactional) },
		"max timestamp is too high": func(b []byte) { putInt64(b, posMaxTimestamp, testTime*2) },
	} {
		t.Run(name+" passes", func(t *testing.T) {
			b := clone(good)
			change(b)
			s, err := Validate(fix(b), Checks{})
			require.NoError(t, err)
			require.EqualValues(t, testTime+1000, s.MaxTimestamp)
			require.Equal(t, name != "max timestamp is too high", s.TimestampsExact())
		})
	}
}

func TestTheBrokersOwnBatchesMayBeControlBatchesAtAnyOffset(t *testing.T) {
	b := Marker{Type: Commit, ProducerID: 3, Timestamp: testTime}.Batch()
	Stamp(b, 500, 2)
	_, err := Validate(b, Checks{Internal: true})
	require.NoError(t, err)
	_, err = Validate(b, Checks{})
	requireKind(t, ErrInvalidRecord, err)
}

func TestRecordsWithBadInnerLengths(t *testing.T) {
	long := string(mixed(3 * streamWindow))
	cases := map[string][]byte{
		"record length 2^31-1":            raw(math.MaxInt32, attrs, 0, 0, 1, "k", 1, "v", 0),
		"record length -1":                raw(-1, attrs, 0, 0, 1, "k", 1, "v", 0),
		"record length 0":                 raw(0),
		"record length cut":               {0x80},
		"record length without end":       bytes.Repeat([]byte{0xff}, 20),
		"record ends in its attributes":   rec(attrs),
		"record ends in its offset":       rec(attrs, 0),
		"record ends before its key":      rec(attrs, 0, 0),
		"record ends before its value":    rec(attrs, 0, 0, 1, "k"),
		"record ends before its headers":  rec(attrs, 0, 0, 1, "k", 1, "v"),
		"record ends inside a header":     rec(attrs, 0, 0, 1, "k", 1, "v", 1, 1, "k"),
		"timestamp without end":           rec(attrs, bytes.Repeat([]byte{0xff}, 12), 0, 1, "k", 1, "v", 0),
		"offset without end":              rec(attrs, 0, bytes.Repeat([]byte{0xff}, 12), 1, "k", 1, "v", 0),
		"key length -5":                   rec(attrs, 0, 0, -5, 1, "v", 0),
		"key length past the end":         rec(attrs, 0, 0, 100, "k", 1, "v", 0),
		"key length 2^31-1":               rec(attrs, 0, 0, math.MaxInt32, "k", 1, "v", 0),
		"value length -2":                 rec(attrs, 0, 0, 1, "k", -2, 0),
		"value length past the end":       rec(attrs, 0, 0, 1, "k", 100, "v", 0),
		"header count 200,000,000":        rec(attrs, 0, 0, 1, "k", 1, "v", 200_000_000),
		"header count -1":                 rec(attrs, 0, 0, 1, "k", 1, "v", -1),
		"header key length -1":            rec(attrs, 0, 0, 1, "k", 1, "v", 1, -1, 1, "x"),
		"header key past the end":         rec(attrs, 0, 0, 1, "k", 1, "v", 1, 50, "x", 0),
		"header value length -2":          rec(attrs, 0, 0, 1, "k", 1, "v", 1, 1, "x", -2),
		"header value past the end":       rec(attrs, 0, 0, 1, "k", 1, "v", 1, 1, "x", 50),
		"trailing bytes":                  rec(attrs, 0, 0, 1, "k", 1, "v", 0, "more"),
		"long: key past the end":          rec(attrs, 0, 0, 4*streamWindow, long, 1, "v", 0),
		"long: value past the end":        rec(attrs, 0, 0, len(long), long, 100, "v", 0),
		"long: header count":              rec(attrs, 0, 0, len(long), long, 1, "v", 200_000_000),
		"long: header count -1":           rec(attrs, 0, 0, len(long), long, 1, "v", -1),
		"long: header key -1":             rec(attrs, 0, 0, len(long), long, 1, "v", 1, -1, 0),
		"long: header value past the end": rec(attrs, 0, 0, len(long), long, 1, "v", 1, 1, "x", 2, "y"),
		"long: trailing bytes":            rec(attrs, 0, 0, len(long), long, 1, "v", 0, long),
		"long: ends early":                rec(attrs, 0, 0, len(long), long, 1, "v"),
		"long: the batch ends first":      rec(attrs, 0, 0, len(long), long, 1, "v", 0)[:2*streamWindow],
		"long: key length -5":             rec(attrs, 0, 0, -5, len(long), long, 0),
		"long: offset without end":        rec(attrs, 0, bytes.Repeat([]byte{0xff}, 12), len(long), long, 1, "v", 0),
	}
	eachCodec(t, func(t *testing.T, c Codec) {
		for name, records := range cases {
			t.Run(name, func(t *testing.T) {
				b := rawBatch(t, c, 1, records)
				_, err := Validate(b, Checks{})
				requireKind(t, ErrInvalidRecord, err)
				// The other readers must bear it, and find it too.
				_, _, _, err = FindTimestamp(b, math.MaxInt64, 0)
				require.Error(t, err)
				_, err = collect(b)
				require.Error(t, err)
				_, _ = Recompress(b, Gzip, -1)
			})
		}
	})
}

func TestWhatKafkaAcceptsInRecordsIsAccepted(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		for name, record := range map[string][]byte{
			"record attributes 1": rec("\x01", 0, 0, 1, "k", 1, "v", 0),
			"null header value":   rec(attrs, 0, 0, 1, "k", 1, "v", 1, 1, "h", -1),
			"empty header key":    rec(attrs, 0, 0, 1, "k", 1, "v", 1, 0, 0),
			"null key and value":  rec(attrs, 0, 0, -1, -1, 0),
			"empty key and value": rec(attrs, 0, 0, 0, 0, 0),
		} {
			_, err := Validate(rawBatch(t, c, 1, record), Checks{})
			require.NoError(t, err, name)
		}
		s, err := Validate(rawBatch(t, c, 1, rec(attrs, 0, 5, 1, "k", 1, "v", 0)), Checks{})
		require.NoError(t, err, "an offset delta of 5 in the first record")
		require.True(t, s.Scattered)
	})
}

func TestRecordsOfEverySizeAroundTheWindowPass(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		for _, size := range []int{0, 1, streamWindow - 40, streamWindow - 12, streamWindow - 8, streamWindow, streamWindow + 1, 5 * streamWindow} {
			b := NewBuilder(Spec{Codec: c})
			v := mixed(size)
			b.Append(1, nil, v)
			b.Append(2, v, []byte("small"), RecordHeader{Key: "h", Value: v})
			b.Append(3, []byte("k"), v)
			out, err := b.Batch()
			require.NoError(t, err)
			s, err := Validate(out, Checks{})
			require.NoError(t, err, "size %d", size)
			require.Equal(t, b.Size()-HeaderLen, s.Uncompressed)
		}
	})
}

func TestNullKeysInACompactedTopicAreNamed(t *testing.T) {
	eachCodec(t, func(t *testing.T, c Codec) {
		b := NewBuilder(Spec{Codec: c})
		for _, key := range [][]byte{[]byte("k"), nil, {}, nil} {
			b.Append(testTime, key, []byte("v"))
		}
		out, err := b.Batch()
		require.NoError(t, err)
		_, err = Validate(out, Checks{RequireKeys: true, Partition: "wirec-0"})
		e := requireKind(t, ErrInvalidRecord, err)
		const message = "Compacted topic cannot accept message without key in topic partition wirec-0"
		require.Equal(t, []RecordError{{1, message}, {3, message}}, e.Records)
		require.Equal(t, "One or more records have been rejected due to 2 record errors in total, and only showing the first "+
			"three errors at most: [RecordError(batchIndex=1, message='"+message+"'), RecordError(batchIndex=3, message='"+
			message+"')]", e.Message)
		require.True(t, e.Shown)
		_, err = Validate(out, Checks{})
		require.NoError(t, err, "other topics take them")
	})
}

func TestTheRecordsThatAnErrorNamesAreBounded(t *testing.T) {
	b := NewBuilder(Spec{Codec: Gzip})
	for range 50_000 {
		b.Append(testTime, nil, nil)
	}
	out, err := b.Batch()
	require.NoError(t, err)
	_, err = Validate(out, Checks{RequireKeys: true})
	e := requireKind(t, ErrInvalidRecord, err)
	require.Len(t, e.Records, maxRecordErrors)
	require.Contains(t, e.Message, "due to 50000 record errors in total")
}

func TestTimestampsOutOfBoundsAreNamed(t *testing.T) {
	const hour = 3_600_000
	check := func(c Codec, checks Checks, timestamps ...int64) error {
		b := NewBuilder(Spec{Codec: c})
		for _, ts := range timestamps {
			b.Append(ts, nil, []byte("v"))
		}
		out, err := b.Batch()
		require.NoError(t, err)
		_, err = Validate(out, checks)
		return err
	}
	kafka := Checks{CheckTimestamps: true, Now: testTime, BeforeMaxMs: math.MaxInt64, AfterMaxMs: hour}
	eachCodec(t, func(t *testing.T, c Codec) {
		require.NoError(t, check(c, kafka, -1, 0, 1, testTime, testTime+hour))
		require.NoError(t, check(c, Checks{}, math.MaxInt64), "not asked to check")
		later := kafka
		later.LogAppendTime = true
		require.NoError(t, check(c, later, testTime+2*hour), "the client's timestamps do not count there")

		e := requireKind(t, ErrInvalidTimestamp, check(c, kafka, testTime, testTime+hour+1, testTime+2*hour))
		require.Equal(t, "One or more records have been rejected due to invalid timestamp", e.Message)
		require.True(t, e.Shown)
		require.Equal(t, []RecordError{
			{1, fmt.Sprintf("Timestamp %d of message with offset 1 is out of range. The timestamp should be within [%d, %d]",
				int64(testTime+hour+1), int64(testTime)-math.MaxInt64, int64(testTime+hour))},
			{2, fmt.Sprintf("Timestamp %d of message with offset 2 is out of range. The timestamp should be within [%d, %d]",
				int64(testTime+2*hour), int64(testTime)-math.MaxInt64, int64(testTime+hour))},
		}, e.Records)

		strict := Checks{CheckTimestamps: true, Now: testTime, BeforeMaxMs: 1000, AfterMaxMs: 0}
		require.NoError(t, check(c, strict, testTime-1000, testTime, -1))
		require.ErrorIs(t, check(c, strict, testTime-1001), ErrInvalidTimestamp)
		require.ErrorIs(t, check(c, strict, testTime+1), ErrInvalidTimestamp)
		require.ErrorIs(t, check(c, strict, 0), ErrInvalidTimestamp)
		endless := Checks{CheckTimestamps: true, Now: testTime, BeforeMaxMs: math.MaxInt64, AfterMaxMs: math.MaxInt64}
		require.NoError(t, check(c, endless, math.MaxInt64))
		require.NoError(t, check(c, endless, 0))
	})
}

func TestTimestampsWinOverNullKeys(t *testing.T) {
	b := NewBuilder(Spec{})
	b.Append(testTime, nil, nil)
	b.Append(testTime+5, []byte("k"), nil)
	out, err := b.Batch()
	require.NoError(t, err)
	_, err = Validate(out, Checks{RequireKeys: true, CheckTimestamps: true, Now: testTime})
	e := requireKind(t, ErrInvalidTimestamp, err)
	require.Len(t, e.Records, 2)
}

func TestAClientsClaimOfLogAppendTime(t *testing.T) {
	claimed := build(t, Spec{LogAppendTime: testTime}, 2)
	s, err := Validate(claimed, Checks{CheckTimestamps: true, Now: testTime, AfterMaxMs: 5000, BeforeMaxMs: 5000})
	require.NoError(t, err, "Kafka rewrites the bit")
	require.False(t, s.TimestampsExact())

	_, err = Validate(claimed, Checks{LogAppendTime: true})
	e := requireKind(t, ErrInvalidTimestamp, err)
	require.Len(t, e.Records, 2)

	b := NewBuilder(Spec{LogAppendTime: testTime})
	b.Append(-1, []byte("k"), []byte("v"))
	out, err := b.Batch()
	require.NoError(t, err)
	_, err = Validate(out, Checks{CheckTimestamps: true, Now: testTime, AfterMaxMs: 5000, BeforeMaxMs: 5000})
	e = requireKind(t, ErrInvalidTimestamp, err)
	require.Equal(t, []RecordError{{0, "Invalid timestamp type in message DefaultRecord(offset=0, timestamp=-1, key=1 bytes, " +
		"value=1 bytes). Producer should not set timestamp type to LogAppendTime."}}, e.Records)
}

func TestDelimit(t *testing.T) {
	one := build(t, Spec{}, 1)
	two := append(clone(one), build(t, Spec{}, 1)...)
	set := func(at int, v byte) []byte { b := clone(one); b[at] = v; return b }
	length := func(n int32) []byte { b := clone(one); putInt32(b, posLength, n); return b }

	got, err := Delimit(one)
	require.NoError(t, err)
	require.Equal(t, one, got)
	got, err = Delimit(append(clone(one), one[:40]...))
	require.NoError(t, err, "an incomplete batch behind is left out")
	require.Equal(t, one, got)
	got, err = Delimit(append(clone(one), 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, one, got)
	got, err = Delimit(length(int32(len(one) - Overhead - 1)))
	require.NoError(t, err, "the checksum tells")
	require.Len(t, got, len(one)-1)

	for _, tc := range []struct {
		name    string
		kind    error
		records []byte
		message string
	}{
		{"null", ErrInvalidRecord, nil, ""},
		{"empty", ErrInvalidRecord, []byte{}, ""},
		{"cut header", ErrInvalidRecord, one[:40], ""},
		{"cut batch", ErrInvalidRecord, one[:len(one)-1], ""},
		{"two", ErrInvalidRecord, two, ""},
		{"magic 0", ErrInvalidRecord, set(posMagic, 0), ""},
		{"magic 1", ErrInvalidRecord, set(posMagic, 1), ""},
		{"length one long", ErrInvalidRecord, length(int32(len(one) - Overhead + 1)), ""},
		{"length 2^31-1", ErrInvalidRecord, length(math.MaxInt32), ""},
		{"magic 3", ErrUndelimited, set(posMagic, 3), "Invalid magic found in record: 3"},
		{"magic -1", ErrUndelimited, set(posMagic, 255), "Invalid magic found in record: -1"},
		{"length negative", ErrUndelimited, length(-100), "Record size -100 is less than the minimum record overhead (14)"},
		{"zeros", ErrUndelimited, make([]byte, 100), "Record size 0 is less than the minimum record overhead (14)"},
		{"junk", ErrUndelimited, bytes.Repeat([]byte("j"), 20), "Invalid magic found in record: 106"},
		{"junk behind", ErrCorrupt, append(clone(one), bytes.Repeat([]byte("j"), 20)...), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Delimit(tc.records)
			e := requireKind(t, tc.kind, err)
			require.Equal(t, tc.message != "", e.Shown)
			if e.Shown {
				require.Equal(t, tc.message, e.Message)
			}
		})
	}
}

func TestALimitBoundsWhatABatchDecompressesTo(t *testing.T) {
	for _, c := range allCodecs[1:] {
		b := NewBuilder(Spec{Codec: c})
		b.Append(1, nil, make([]byte, 1<<20))
		out, err := b.Batch()
		require.NoError(t, err)
		size := b.Size() - HeaderLen
		_, err = Validate(out, Checks{MaxUncompressed: size})
		require.NoError(t, err)
		_, err = Validate(out, Checks{MaxUncompressed: size - 1})
		e := requireKind(t, ErrInvalidRecord, err)
		require.Contains(t, e.Message, "larger than the limit", c)
	}
}

func collect(b []byte) ([]Record, error) {
	var out []Record
	for r, err := range Records(b) {
		if err != nil {
			return out, err
		}
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		headers := make([]RecordHeader, 0, len(r.Headers))
		for _, h := range r.Headers {
			headers = append(headers, RecordHeader{h.Key, bytes.Clone(h.Value)})
		}
		r.Headers = headers
		out = append(out, r)
	}
	return out, nil
}

func TestFaultsHaveWordsAndKinds(t *testing.T) {
	for f := sound; f <= faultTooLarge; f++ {
		require.NotEqual(t, "unknown fault", f.String())
	}
	require.Equal(t, "unknown fault", fault(99).String())
	require.True(t, errors.Is(faultUndecodable, ErrUndecodable))
	require.True(t, errors.Is(faultTooLarge, ErrTooLarge))
	require.True(t, errors.Is(faultVarint, ErrInvalidRecord))
	require.False(t, errors.Is(faultVarint, ErrTooLarge))
}
