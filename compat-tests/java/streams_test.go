package java

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestStreamsCountExactlyOnce counts words with Kafka Streams, exactly_once_v2,
// while the broker is stopped in good order, killed, and the application restarted
// without its local state. The counts of each word rise by one.
func TestStreamsCountExactlyOnce(t *testing.T) {
	needsJava(t)
	node := harness.Start(t, "group.initial.rebalance.delay.ms=100", "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000")
	cl, adm := client(t, node.Address)
	createTopic(t, adm, "lines", 3)
	createTopic(t, adm, "counts", 3)
	state := t.TempDir()
	run := func(dir string) *program {
		return start(t, "WordCount", node.Address, "lines", "counts", "word-count", filepath.Join(state, dir))
	}

	app := run("kept")
	const lines = 400
	sent := 0
	feed := func() {
		t.Helper()
		for range lines {
			value := words[sent%len(words)] + " " + words[(sent+1)%len(words)]
			cl.Produce(t.Context(), &kgo.Record{Topic: "lines", Value: []byte(value)}, nil)
			sent++
		}
	}
	// Each word stands in two lines of five.
	counted := func() { t.Helper(); awaitCounts(t, node.Address, int64(2*sent/len(words))) }
	feed()
	counted()

	feed()
	time.Sleep(300 * time.Millisecond) // Into the middle of it.
	require.NoError(t, node.Stop())
	require.NoError(t, node.Start())
	counted()

	for range 3 {
		feed()
		time.Sleep(300 * time.Millisecond)
		node.Kill()
		require.NoError(t, node.Start())
		counted()
	}

	app.end()
	feed()
	app = run("lost") // What it had counted comes from the changelog.
	counted()
	app.end()
	require.NoError(t, cl.Flush(t.Context()), "records of lines")
	require.Len(t, countsOf(t, node.Address), len(words))
}

var words = []string{"log", "queue", "leader", "epoch", "offset"}

// awaitCounts waits until every word was counted so often.
func awaitCounts(t *testing.T, address string, each int64) {
	t.Helper()
	var got map[string]int64
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		got = countsOf(t, address)
		done := len(got) == len(words)
		for _, n := range got {
			done = done && n == each
		}
		if done {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	require.Fail(t, fmt.Sprintf("every word must be counted %d times", each), "%v", got)
}

// countsOf reads the committed counts; those of a word must be 1, 2, 3 and so on.
func countsOf(t *testing.T, address string) map[string]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, adm := client(t, address, kgo.ConsumeTopics("counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	ends, err := adm.ListCommittedOffsets(ctx, "counts")
	require.NoError(t, err)
	counts, at := map[string]int64{}, map[int32]int64{}
	left := func() (n int) {
		ends.Each(func(o kadm.ListedOffset) {
			if at[o.Partition] < o.Offset {
				n++
			}
		})
		return n
	}
	for left() > 0 {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			at[r.Partition] = r.Offset + 1
			if r.Attrs.IsControl() {
				return
			}
			n, err := strconv.ParseInt(string(r.Value), 10, 64)
			require.NoError(t, err)
			require.Equal(t, counts[string(r.Key)]+1, n, "the count of %s at %d-%d", r.Key, r.Partition, r.Offset)
			counts[string(r.Key)] = n
		})
	}
	return counts
}
