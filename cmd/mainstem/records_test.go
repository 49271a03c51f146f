package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func all(t *testing.T, s recordSource) (records []*kgo.Record, partitions []*int32, err error) {
	t.Helper()
	for {
		r, p, err := s.next()
		if errors.Is(err, io.EOF) {
			return records, partitions, nil
		}
		if err != nil {
			return records, partitions, err
		}
		records, partitions = append(records, r), append(partitions, p)
	}
}

func input(s string) *bufio.Reader { return bufio.NewReaderSize(strings.NewReader(s), 16) }

func TestLinesBecomeRecords(t *testing.T) {
	long := strings.Repeat("x", 1000)
	records, _, err := all(t, &lines{in: input("a\n\n" + long + "\nlast"), delimiter: '\n'})
	require.NoError(t, err)
	require.Len(t, records, 4)
	require.Equal(t, "a", string(records[0].Value))
	require.NotNil(t, records[1].Value, "an empty line is an empty value, not a tombstone")
	require.Empty(t, records[1].Value)
	require.Equal(t, long, string(records[2].Value))
	require.Equal(t, "last", string(records[3].Value))
	require.Nil(t, records[0].Key)

	records, _, err = all(t, &lines{in: input("a\nb\x00c"), delimiter: 0})
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, "a\nb", string(records[0].Value))
}

func TestKeysAreCutAtTheFirstSeparator(t *testing.T) {
	source := &lines{in: input("k::v::w\n::v\nk::NULL\nNULL::v\nbad\n"), delimiter: '\n', separator: []byte("::"), null: []byte("NULL")}
	records, _, err := all(t, source)
	require.ErrorContains(t, err, "line 5")
	require.Len(t, records, 4)
	require.Equal(t, "v::w", string(records[0].Value))
	require.Equal(t, "k", string(records[0].Key))
	require.NotNil(t, records[1].Key)
	require.Nil(t, records[2].Value)
	require.Nil(t, records[3].Key)
}

func TestAllInputMayBeOneRecord(t *testing.T) {
	records, _, err := all(t, &whole{in: strings.NewReader("a\nb\n")})
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, "a\nb\n", string(records[0].Value))
}

func TestFormattedInputIsReadByItsLayout(t *testing.T) {
	source, err := newFormatted(strings.NewReader("k=v\nk2=v2\n"), `%k=%v\n`)
	require.NoError(t, err)
	records, _, err := all(t, source)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, "v2", string(records[1].Value))

	source, err = newFormatted(strings.NewReader("k=v\nno"), `%k=%v\n`)
	require.NoError(t, err)
	_, _, err = all(t, source)
	require.ErrorContains(t, err, "record 2")
}

func TestReadErrorsAreNotTakenForTheEnd(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("a\nb"), failingReader{})
	records, _, err := all(t, &lines{in: bufio.NewReader(broken), delimiter: '\n'})
	require.ErrorContains(t, err, "read standard input")
	require.Len(t, records, 1)
	_, _, err = all(t, &whole{in: failingReader{}})
	require.ErrorContains(t, err, "read standard input")
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("pipe broke") }

func TestARecordSurvivesJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		want := &kgo.Record{
			Topic: "t", Partition: rng.Int32N(100), Offset: rng.Int64N(1 << 40),
			Timestamp: time.UnixMilli(rng.Int64N(1 << 42)),
			Key:       randomBytes(rng), Value: randomBytes(rng),
		}
		for range rng.IntN(3) {
			want.Headers = append(want.Headers, kgo.RecordHeader{Key: "h<&>\"\u2028", Value: randomBytes(rng)})
		}
		line, err := appendJSON(nil, want)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(line, []byte("\n")))
		records, partitions, err := all(t, &jsonLines{in: bufio.NewReader(bytes.NewReader(line)), keepPartition: true})
		require.NoError(t, err, "%s", line)
		require.Len(t, records, 1)
		got := records[0]
		require.Equal(t, want.Key, got.Key, "%s", line)
		require.Equal(t, want.Value, got.Value, "%s", line)
		require.Equal(t, want.Headers, got.Headers)
		require.True(t, want.Timestamp.Equal(got.Timestamp))
		require.Equal(t, want.Partition, *partitions[0])
	}
}

// randomBytes is nil, empty, text or no text.
func randomBytes(rng *rand.Rand) []byte {
	switch rng.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return []byte("text \"quoted\" \n <&> ä 漢 \u2028")
	default:
		b := make([]byte, 1+rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.UintN(256))
		}
		return b
	}
}

func TestJSONInputIsStrictAndForgivesEmptyLines(t *testing.T) {
	records, partitions, err := all(t, &jsonLines{in: input("\n{\"value\":\"a\",\"partition\":3,\"topic\":\"x\",\"offset\":9}\n  \n{\"value\":{\"n\": 1},\"key\":7}\n")})
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Nil(t, partitions[0], "the partition of the line is only for --keep-partition")
	require.Nil(t, records[0].Key)
	require.JSONEq(t, `{"n":1}`, string(records[1].Value))
	require.Equal(t, "7", string(records[1].Key))
	for line, word := range map[string]string{
		`{"valeu":"x"}`:                       "valeu",
		`{"value":"x"`:                        "EOF",
		`{"value":"x"} {"value":"y"}`:         "more than one",
		`{"value":"x","value_base64":"eA=="}`: "both",
		`{"key_base64":"!"}`:                  "key_base64",
		`[]`:                                  "array",
		`{"timestamp":"noon"}`:                "timestamp",
	} {
		_, _, err := all(t, &jsonLines{in: input(line + "\n")})
		require.ErrorContains(t, err, "line 1", line)
		require.ErrorContains(t, err, word, line)
	}
}

func TestPlacesAreReadAsTheHelpSays(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for s, want := range map[string]place{
		"beginning":             {fromStart, 0},
		"end":                   {fromEnd, 0},
		"0":                     {atOffset, 0},
		"42":                    {atOffset, 42},
		"-10":                   {fromEnd, 10},
		"@1700000000000":        {atTime, 1700000000000},
		"@-90m":                 {atTime, now.Add(-90 * time.Minute).UnixMilli()},
		"@2026-01-31T15:04:05Z": {atTime, time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC).UnixMilli()},
		"@2026-01-31":           {atTime, time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC).UnixMilli()},
	} {
		got, err := parsePlace("offset", s, now)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "x", "1.5", "@", "@x", "--3", "99999999999999999999"} {
		_, err := parsePlace("offset", s, now)
		require.Error(t, err, s)
	}
}

func TestPlacesBecomeOffsetsInsideThePartition(t *testing.T) {
	b := &bounds{
		topics: []string{"t"},
		starts: kadm.ListedOffsets{"t": {0: {Offset: 10}}},
		ends:   kadm.ListedOffsets{"t": {0: {Offset: 20}}},
	}
	for _, c := range []struct {
		from  place
		clamp bool
		want  int64
	}{
		{place{fromStart, 0}, false, 10},
		{place{fromEnd, 0}, false, 20},
		{place{fromEnd, 3}, false, 17},
		{place{fromEnd, 300}, false, 10},
		{place{atOffset, 10}, false, 10},
		{place{atOffset, 20}, false, 20},
		{place{atOffset, 5}, true, 10},
		{place{atOffset, 50}, true, 20},
	} {
		got, err := b.resolve(t.Context(), c.from, c.clamp)
		require.NoError(t, err)
		require.Equal(t, c.want, got["t"][0], "%+v", c)
	}
	for _, n := range []int64{9, 21} {
		_, err := b.resolve(t.Context(), place{atOffset, n}, false)
		require.ErrorContains(t, err, "holds offsets 10 to 20")
	}
	late, err := place{atTime, 5}.offset(10, 20, kadm.ListedOffset{Offset: -1})
	require.NoError(t, err)
	require.EqualValues(t, 20, late, "nothing is that young")
}

func TestAPartitionThatIsNotThereIsRefused(t *testing.T) {
	b := &bounds{topics: []string{"t"}, partitions: []int32{3}, ends: kadm.ListedOffsets{"t": {0: {}}}}
	require.ErrorContains(t, b.checkPartitions(), "no partition 3")
}

func TestLayoutsFollowTheFlags(t *testing.T) {
	r := &kgo.Record{
		Topic: "t", Partition: 1, Offset: 2, Timestamp: time.UnixMilli(0),
		Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}},
	}
	for want, o := range map[string]*consume{
		"v\n":                             {remote: &remote{}},
		"k\tv\n":                          {remote: &remote{}, keys: true},
		"h=x \tk\tv\n":                    {remote: &remote{}, keys: true, headers: true},
		"t/1 2 1970-01-01T00:00:00Z\tv\n": {remote: &remote{}, offsets: true},
		"[v]":                             {remote: &remote{}, format: "[%v]"},
	} {
		write, err := o.writer()
		require.NoError(t, err)
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		require.NoError(t, write(w, r))
		require.NoError(t, w.Flush())
		require.Equal(t, want, out.String())
	}
}

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 20 << 30: "20 GiB",
		1<<20 - 1: "1 MiB", 123 << 20: "123 MiB", 1<<63 - 1: "8 EiB",
	} {
		require.Equal(t, want, byteSize(n))
	}
}

func TestAddressesOfAllInterfacesBecomeOnesToConnectTo(t *testing.T) {
	for address, want := range map[string]string{
		"[::]:9644": "127.0.0.1:9644", "0.0.0.0:1": "127.0.0.1:1", ":2": "127.0.0.1:2",
		"[::1]:3": "[::1]:3", "host:4": "host:4", "": "",
	} {
		require.Equal(t, want, reachable(address))
	}
}

func TestTheWelcomeSaysWhatToType(t *testing.T) {
	var out bytes.Buffer
	c := &console{out: &out, program: "bin/my mainstem"}
	require.NoError(t, welcome(c, greeting{version: "v1", address: "127.0.0.1:9092", dir: "/data", http: "127.0.0.1:9644"}))
	require.Contains(t, out.String(), "v1 is ready for Kafka clients on 127.0.0.1:9092")
	require.Contains(t, out.String(), "echo hello | 'bin/my mainstem' produce greetings\n")
	require.Contains(t, out.String(), "http://127.0.0.1:9644/metrics")
	require.NotContains(t, out.String(), " -b ")

	out.Reset()
	require.NoError(t, welcome(c, greeting{address: "127.0.0.1:9094"}))
	require.Contains(t, out.String(), "produce greetings -b 127.0.0.1:9094\n")
	require.NotContains(t, out.String(), "metrics")
}
