package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

func TestRawLoadIsWrittenAndReadBack(t *testing.T) {
	n := harness.Start(t)
	ctx := context.Background()
	require.NoError(t, makeTopic(ctx, n.Address, "raw", 5))
	for _, l := range []rawLoad{
		{Connections: 2, InFlight: 3, Partitions: 5, PerRequest: 2, Records: 10, Size: 100},
		{Connections: 1, InFlight: 1, Partitions: 5, PerRequest: 1, Records: 1, Size: 100, Codec: 3},
	} {
		before, err := topicEnds(ctx, n.Address, "raw")
		require.NoError(t, err)
		r, err := produceRaw(ctx, n.Address, "raw", l, 200*time.Millisecond)
		require.NoError(t, err)
		require.Positive(t, r.requests)
		require.Len(t, r.latencies, int(r.requests))
		require.LessOrEqual(t, r.quantile(0.5), r.quantile(0.999))
		after, err := topicEnds(ctx, n.Address, "raw")
		require.NoError(t, err)
		var written int64
		for i := range after {
			written += after[i] - before[i]
		}
		require.GreaterOrEqual(t, written, r.requests*int64(l.Records))
	}
	ends, err := topicEnds(ctx, n.Address, "raw")
	require.NoError(t, err)
	r, err := fetchRaw(ctx, n.Address, "raw", ends, 2)
	require.NoError(t, err)
	require.Positive(t, r.bytes)
	require.NoError(t, dropTopic(ctx, n.Address, "raw"))
	_, err = produceRaw(ctx, n.Address, "raw", rawLoad{Connections: 1, InFlight: 1, Partitions: 1, PerRequest: 1, Records: 1, Size: 1}, 100*time.Millisecond)
	require.ErrorContains(t, err, "refused")
}

func TestTheComparisonShowsMediansRatiosAndGoals(t *testing.T) {
	r := peerReport{Date: "2001-02-03T04:05:06Z", Brokers: []string{"kafka", "mainstem"}, Rounds: 3}
	for i, v := range []float64{100, 300, 200} {
		r.add("kafka", "throughput", "1 partition none", "MB/s", sample{Value: v})
		r.add("mainstem", "throughput", "1 partition none", "MB/s", sample{Value: 2 * v})
		r.add("kafka", "latency", "1000 records/s", "p50 ms", sample{Value: v, Others: 1})
		r.add("mainstem", "latency", "1000 records/s", "p50 ms", sample{Value: v})
		r.add("mainstem", "idle", "after start", "MB resident", sample{Value: 30 + v})
		r.add("kafka", "idle", "after start", "MB resident", sample{Value: 400})
		for _, broker := range r.Brokers {
			r.add(broker, "partitions", []string{"1", "10", "100"}[i], "MB/s", sample{Value: v})
		}
	}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"200 (100–300)", "400 (200–600)", "≥ 1.80 met", "not measurable: other work", "≤ 60 itself MISSED"} {
		require.Contains(t, out.String(), want)
	}
	dir := t.TempDir()
	files, err := r.save(dir)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, image := range [][]byte{r.latencyPlot(), r.partitionsPlot()} {
		d := xml.NewDecoder(bytes.NewReader(image))
		lines := 0
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
				lines++
			}
		}
		require.Equal(t, 2, lines)
		require.NotContains(t, string(image), "NaN")
	}
	require.Nil(t, (&peerReport{}).latencyPlot())
}

func TestPartsOfOneDayAreKeptTogether(t *testing.T) {
	dir := t.TempDir()
	first := report{Date: "2001-02-03T04:05:06Z"}
	first.add("start", "x", 1, "s", "")
	first.goal("idle", "y", 2, 1, "MB", "")
	first.noteBusy("start", 0)
	first.noteBusy("idle", 0)
	_, err := first.save(dir)
	require.NoError(t, err)
	second := report{Date: "2001-02-03T05:05:06Z"}
	second.goal("idle", "y", 0.5, 1, "MB", "")
	second.noteBusy("idle", 0)
	second.merge(&first)
	require.Len(t, second.Figures, 2)
	require.Equal(t, "start", second.Figures[0].Part)
	require.True(t, *second.Figures[1].Met)
}
