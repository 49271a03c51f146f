package main

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestQuantilesAreThoseOfTheValuesCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var h histogram
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(random.ExpFloat64() * float64(3*time.Millisecond))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	s := h.snapshot()
	for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 0.999} {
		require.InEpsilon(t, all[int(q*float64(len(all)-1))]+1, s.quantile(q)+1, 0.04, "%v", q)
	}
	require.Equal(t, all[len(all)-1], s.quantile(1))
	require.EqualValues(t, len(all), s.summary().Count)

	h.add(time.Hour)
	later := h.snapshot().since(s)
	require.EqualValues(t, 1, later.total)
	require.InEpsilon(t, time.Hour, later.quantile(0.5), 0.02)
	require.Nil(t, new(histogram).snapshot().summary())
}

func TestEveryDurationHasItsBucket(t *testing.T) {
	for _, d := range []time.Duration{-5, 0, 1, 63, 64, 65, 127, 128, 1000, time.Millisecond, time.Second, time.Hour, 1 << 62} {
		i := bucketOf(d)
		require.LessOrEqual(t, i, histogramBuckets-1)
		if d >= 0 && d < 2*time.Hour/3 {
			require.GreaterOrEqual(t, bucketEnd(i), d)
			require.LessOrEqual(t, float64(bucketEnd(i)), float64(d)*1.02)
		}
		if i > 0 {
			require.Equal(t, i-1, bucketOf(bucketEnd(i-1)), "%v", d)
		}
	}
}

func TestLatencyCountsFromTheIntendedTime(t *testing.T) {
	p := &producers{load: &benchLoad{Size: 100}, measured: time.Now().Add(-time.Minute)}
	stalled := &sending{p: p, intended: time.Now().Add(-time.Second)}
	warm := &sending{p: p, intended: p.measured.Add(-time.Second)}
	lost := &sending{p: p, intended: time.Now()}
	stalled.finish(&kgo.Record{}, nil)
	warm.finish(&kgo.Record{}, nil)
	lost.finish(&kgo.Record{}, errors.New("lost"))
	s := p.meter.ack.snapshot()
	require.EqualValues(t, 1, s.total, "neither the warm-up nor what failed")
	require.GreaterOrEqual(t, s.quantile(0.5), time.Second)
	require.Equal(t, count{2, 200}, p.meter.count())
	require.EqualValues(t, 1, p.meter.errors.Load())
	require.EqualError(t, *p.meter.failure.Load(), "lost")
}

func TestAboutHalfOfThePayloadCompresses(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	raw := benchPayload(1 << 20)
	require.Len(t, raw, 1<<20)
	require.InDelta(t, 0.5, float64(len(encoder.EncodeAll(raw, nil)))/float64(len(raw)), 0.1)
	require.NoError(t, encoder.Close())
}

func TestBenchMistakesSayWhatToType(t *testing.T) {
	for _, c := range []struct {
		args  string
		words []string
	}{
		{"produce --size 0", []string{"--size 0"}},
		{"produce --acks 3", []string{`"3"`, "all, 1 or 0"}},
		{"produce --compression lzma", []string{`"lzma"`, "zstd"}},
		{"produce --connections 0", []string{"--connections 0"}},
		{"produce --rate -1", []string{"--rate -1"}},
		{"produce --duration 0s", []string{"--duration 0s"}},
		{"produce --config x", []string{"name=value"}},
		{"produce more", []string{`"more"`}},
		{"latency --rate 0", []string{"1000"}},
		{"latency --size 15", []string{"16"}},
		{"partitions --counts 1,0", []string{"--counts 0"}},
		{"partitions --topic x", []string{"--topic"}},
	} {
		o := cli(t, "", nil, append([]string{"bench"}, strings.Fields(c.args)...)...)
		t.Log(c.args, "→", strings.TrimSpace(o.err))
		requireOneLine(t, o, exitUsage, c.words...)
	}
	requireOneLine(t, cli(t, "", nil, "bench", "produce", "--bootstrap", "127.0.0.1:1", "--timeout", "1s"), exitUnreachable, "no broker answers at 127.0.0.1:1")
}

// benchJSON runs a bench command and decodes what it prints.
func benchJSON(t *testing.T, s *serving, into any, args ...string) outcome {
	t.Helper()
	o := cli(t, "", map[string]string{bootstrapEnv: s.address}, append(append([]string{"bench"}, args...), "--json")...)
	require.Zero(t, o.code, o.err)
	require.NoError(t, json.Unmarshal([]byte(o.out), into), o.out)
	return o
}

func TestBenchMeasuresABroker(t *testing.T) {
	s := serve(t, t.TempDir())
	var r benchResult

	o := benchJSON(t, s, &r, "produce", "--records", "3000", "--size", "100", "--partitions", "3", "--connections", "2", "--topic", "kept")
	require.EqualValues(t, 3000, r.Records)
	require.EqualValues(t, 300_000, r.Bytes)
	require.EqualValues(t, 3, r.Partitions)
	require.Zero(t, r.Errors)
	require.EqualValues(t, 3000, r.Ack.Count)
	require.Nil(t, r.Late, "nothing is late at full rate")
	require.NotContains(t, o.err, "mainstem:")

	for _, acks := range []string{"0", "1", "all"} {
		r = benchResult{}
		benchJSON(t, s, &r, "produce", "--duration", "300ms", "--warmup", "100ms", "--rate", "1000", "--acks", acks, "--in-flight", "2", "--compression", "lz4", "--quiet")
		require.LessOrEqual(t, r.Records, int64(400), "at most what was intended, warm-up included")
		require.EqualValues(t, 300, r.Ack.Count, "all that was intended within the time")
		require.EqualValues(t, 300, r.Late.Count)
	}

	r = benchResult{}
	benchJSON(t, s, &r, "consume", "--topic", "kept", "--connections", "2")
	require.EqualValues(t, 3000, r.Records)
	require.EqualValues(t, 300_000, r.Bytes)
	r = benchResult{}
	benchJSON(t, s, &r, "consume", "--fill", "1000000", "--compression", "zstd", "--partitions", "4")
	require.EqualValues(t, 1000000/1024, r.Records)

	r = benchResult{}
	benchJSON(t, s, &r, "latency", "--duration", "300ms", "--warmup", "100ms", "--rate", "500", "--partitions", "2")
	require.EqualValues(t, 150, r.Ack.Count)
	require.EqualValues(t, 150, r.EndToEnd.Count)
	require.Zero(t, r.Missing)
	require.GreaterOrEqual(t, r.EndToEnd.Max, r.Late.P50)

	var rows []benchResult
	benchJSON(t, s, &rows, "partitions", "--counts", "1,20", "--duration", "200ms", "--warmup", "0s")
	require.Len(t, rows, 2)
	for i, n := range []int32{1, 20} {
		require.Equal(t, n, rows[i].Partitions)
		require.Positive(t, rows[i].Records)
		require.Positive(t, rows[i].Creation)
	}

	left := cli(t, "", map[string]string{bootstrapEnv: s.address}, "topic", "list")
	require.Contains(t, left.out, "kept")
	require.NotContains(t, left.out, "mainstem-bench-")
}

func TestBenchPrintsTablesAndProgress(t *testing.T) {
	s := serve(t, t.TempDir())
	env := map[string]string{bootstrapEnv: s.address}
	o := cli(t, "", env, "bench", "latency", "--duration", "1100ms", "--warmup", "0s", "--rate", "100")
	require.Zero(t, o.code, o.err)
	for _, want := range []string{"LATENCY IN MS", "P99.9", "acknowledged", "end to end", "generator late"} {
		require.Contains(t, o.out, want)
	}
	require.Regexp(t, `1s +\d+ records/s .* MB/s  p50 .* ms  p99 .* ms`, o.err)
	o = cli(t, "", env, "bench", "partitions", "--counts", "2", "--duration", "100ms", "--warmup", "0s", "-q")
	require.Zero(t, o.code, o.err)
	require.Contains(t, o.out, "CREATION MS")
	require.Empty(t, o.err)
}
