package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readInGroup reads n records in a group and commits; the member stays.
func readInGroup(t *testing.T, address, group, topic string, n int) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ClientID("reader"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for got := 0; got < n; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		got += fetches.NumRecords()
	}
	require.NoError(t, cl.CommitUncommittedOffsets(ctx))
	return cl
}

func parsed[V any](t *testing.T, text string) (v V) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func TestGroupsAreShownMovedAndDeleted(t *testing.T) {
	s := serve(t, t.TempDir(), "--override", "group.initial.rebalance.delay.ms=0")
	s.do(t, "", "topic", "create", "orders", "--partitions", "2")
	s.do(t, "a\nb\nc\n", "produce", "orders", "--partition", "0")
	reader := readInGroup(t, s.address, "billing", "orders", 3)
	s.do(t, "d\n", "produce", "orders", "--partition", "0")

	require.Contains(t, s.do(t, "", "group", "list", "--state", "stable"), "billing")
	require.Equal(t, "[]\n", s.do(t, "", "group", "list", "--state", "empty", "--json"))
	groups := parsed[[]describedGroup](t, s.do(t, "", "group", "describe", "billing", "--json"))
	require.Len(t, groups, 1)
	require.Equal(t, "Stable", groups[0].State)
	require.Equal(t, int64(1), groups[0].Lag)
	require.Equal(t, "reader", groups[0].Members[0].ClientID)
	require.Equal(t, 2, groups[0].Members[0].Partitions)
	require.Equal(t, int64(3), *groups[0].Partitions[0].Committed)
	require.Contains(t, s.do(t, "", "group", "describe", "billing", "--members"), "reader")

	// The broker knows who it is.
	clients := parsed[[]shownClient](t, s.do(t, "", "client", "list", "--http", s.http, "--json"))
	at := -1
	for i := range clients {
		if clients[i].ClientID == "reader" {
			at = i
		}
	}
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, "127.0.0.1", clients[at].Host)
	require.Equal(t, "kgo", clients[at].Software)
	require.Equal(t, int64(1), clients[at].Groups[0].Lag)
	require.Contains(t, s.do(t, "", "client", "list", "--http", s.http), "billing")
	require.Contains(t, s.do(t, "", "client", "list", "--http", s.http, "--partitions"), "orders")

	// While it has members nobody moves its offsets.
	env := map[string]string{bootstrapEnv: s.address}
	for _, refused := range []string{"group delete billing", "group reset-offsets billing --to beginning", "group delete billing --topic orders"} {
		requireFailure(t, cli(t, "", env, strings.Fields(refused)...), exitRefused, "Stop the group's members first")
	}
	reader.LeaveGroup()
	reader.Close()

	require.Contains(t, s.do(t, "", "group", "reset-offsets", "billing", "--shift", "-2", "--dry-run"), "orders")
	moves := parsed[[]movedOffset](t, s.do(t, "", "group", "reset-offsets", "billing", "--shift", "-2", "--json"))
	require.Equal(t, int64(1), moves[0].To)
	require.Equal(t, int64(3), *moves[0].From)
	moves = parsed[[]movedOffset](t, s.do(t, "", "group", "reset-offsets", "billing", "--topic", "orders", "--to", "end", "--json"))
	require.Equal(t, int64(4), moves[0].To)
	s.do(t, "", "group", "delete", "billing", "--topic", "orders")
	requireFailure(t, cli(t, "", env, "group", "reset-offsets", "billing", "--to", "end"), exitUsage, "--topic")
	require.Contains(t, s.do(t, "", "group", "delete", "billing"), "billing deleted")
	s.do(t, "", "group", "delete", "billing", "--if-exists")
	requireFailure(t, cli(t, "", env, "group", "delete", "billing"), exitRefused, "group list")
	requireFailure(t, cli(t, "", env, "group", "describe", "billing"), exitRefused, "group list")
}
