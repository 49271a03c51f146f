package clients

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestTransactionsOfEachClient has each client read, transform and write exactly
// once: what it has aborted is not seen, what it has committed is there once, and
// the group's offset is where it has stopped.
func TestTransactionsOfEachClient(t *testing.T) {
	address := os.Getenv("COMPAT_ADDRESS")
	if address == "" {
		address = harness.Start(t, "group.initial.rebalance.delay.ms=50").Address
	}
	everyone := GoTransactional()
	if os.Getenv("COMPAT_CLIENTS") == "all" {
		everyone = append(everyone, ExternalTransactional()...)
	}
	const n = 95
	for _, c := range everyone {
		t.Run(c.Name(), func(t *testing.T) {
			p := Pipe{ID: "txn-" + c.Name(), Group: "group-" + c.Name(), From: "from-" + c.Name(), To: "to-" + c.Name(), N: n}
			createTopic(t, address, p.From)
			createTopic(t, address, p.To)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var records []Record
			for i := range n {
				records = append(records, Record{Key: fmt.Append(nil, i), Value: []byte("v")})
			}
			require.NoError(t, franz{}.Write(ctx, address, p.From, "none", records))
			require.NoError(t, c.Transform(ctx, address, p))

			keys, markers := readCommitted(ctx, t, address, p.To)
			var want []string
			for i := range n {
				want = append(want, fmt.Sprint(i))
			}
			require.Equal(t, want, keys)
			require.GreaterOrEqual(t, markers, 14, "10 committed, 4 aborted")
			require.EqualValues(t, n, committedOffset(ctx, t, address, p.Group, p.From))
		})
	}
}

// readCommitted reads the keys of a topic up to its end, and counts the markers.
func readCommitted(ctx context.Context, t *testing.T, address, topic string) (keys []string, markers int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(t, err)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	var end int64
	require.Eventually(t, func() bool {
		ends, err := adm.ListEndOffsets(ctx, topic)
		require.NoError(t, err)
		stable, err := adm.ListCommittedOffsets(ctx, topic)
		require.NoError(t, err)
		e, _ := ends.Lookup(topic, 0)
		s, _ := stable.Lookup(topic, 0)
		end = e.Offset
		return end > 0 && s.Offset == end
	}, 10*time.Second, 20*time.Millisecond, "a transaction does not end")
	for at := int64(0); at < end; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if r.Attrs.IsControl() {
				markers++
				return
			}
			keys = append(keys, string(r.Key))
		})
	}
	return keys, markers
}

func committedOffset(ctx context.Context, t *testing.T, address, group, topic string) int64 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	require.NoError(t, err)
	defer cl.Close()
	var at int64
	require.Eventually(t, func() bool { // The last transaction's marker may be on its way.
		offsets, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
		require.NoError(t, err)
		o, _ := offsets.Lookup(topic, 0)
		at = o.At
		return at > 0
	}, 10*time.Second, 20*time.Millisecond)
	return at
}
