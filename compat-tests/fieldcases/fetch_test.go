package fieldcases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// sessionFetch is a fetch in a session; without offsets it lists no partition.
func sessionFetch(topic string, id, epoch int32, wait time.Duration, offsets ...int64) *kmsg.FetchRequest {
	req := frames.Fetch(topic, offsets...)
	if len(offsets) == 0 {
		req.Topics = nil
	}
	req.SessionID, req.SessionEpoch, req.MaxWaitMillis = id, epoch, int32(wait.Milliseconds())
	return req
}

// TestIncrementalFetchWaits is O-FE-1: an idle consumer's fetch waits as long as
// it says, also when the session and not the request lists the partitions.
func TestIncrementalFetchWaits(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	const wait = 500 * time.Millisecond
	ask := func(req *kmsg.FetchRequest) (*kmsg.FetchResponse, time.Duration) {
		started := time.Now()
		return frames.Ask[*kmsg.FetchResponse](c, req), time.Since(started)
	}
	first, took := ask(sessionFetch("t", 0, 0, wait, 0))
	require.NotZero(t, first.SessionID)
	assert.GreaterOrEqual(t, took, wait-time.Millisecond)
	id := first.SessionID

	idle, took := ask(sessionFetch("t", id, 1, wait))
	assert.Empty(t, idle.Topics, "nothing is new")
	assert.GreaterOrEqual(t, took, wait-time.Millisecond)

	_, took = ask(sessionFetch("t", id, 2, 0))
	assert.Less(t, took, wait, "a fetch that does not want to wait")

	// Longer than the test may take: only the append can end it.
	waiting := sessionFetch("t", id, 3, 10*frames.Patience)
	correlation := c.Send(waiting)
	writer := frames.Dial(t, node.Address)
	require.EqualValues(t, 0, writer.MustAppend("t", 0, good("new")))
	woken := frames.Receive[*kmsg.FetchResponse](c, waiting, correlation)
	require.Len(t, woken.Topics, 1)
	batches, err := frames.Decode(woken.Topics[0].Partitions[0].RecordBatches)
	require.NoError(t, err)
	assert.Len(t, batches, 1)
}

// fetches counts the Fetch requests that a broker has served.
func fetches(t *testing.T, node *harness.Node) int {
	t.Helper()
	return int(node.Metric(t, "kafka_network_requestmetrics_requests_total", `"Fetch"`))
}

// TestIdleConsumerAsksSeldom is O-FE-1 with a real client.
func TestIdleConsumerAsksSeldom(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	c.MustAppend("t", 0, good("v"))
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
	require.NoError(t, err)
	defer cl.Close()
	require.Equal(t, 1, cl.PollFetches(limited(t)).NumRecords())
	before, started := fetches(t, node), time.Now()
	require.NotZero(t, before)
	require.Eventually(t, func() bool { return fetches(t, node) >= before+4 }, frames.Patience, 20*time.Millisecond)
	assert.GreaterOrEqual(t, time.Since(started), 1400*time.Millisecond, "four fetches of 500 ms, the first under way")
}

// timed is a batch whose records have these timestamps.
func timed(codec int, timestamps ...int64) []byte {
	var records []kmsg.Record
	for _, ts := range timestamps {
		r := kmsg.NewRecord()
		r.Value, r.TimestampDelta64 = []byte(fmt.Sprint(ts)), ts-timestamps[0]
		records = append(records, r)
	}
	b := frames.NewBatch(records...)
	b.FirstTimestamp, b.MaxTimestamp, b.Codec = timestamps[0], timestamps[len(timestamps)-1], codec
	return b.Seal()
}

// TestTimesAreFoundInsideBatches is O-FE-2: the first record that is not older,
// not the first of its batch, also in a compressed one.
func TestTimesAreFoundInsideBatches(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	month := map[string]string{"retention.ms": "-1"} // The times below are long past.
	at := func(topic string, ts int64) [2]int64 {
		p := c.Offset(topic, 0, ts)
		require.Zero(t, p.ErrorCode)
		return [2]int64{p.Offset, p.Timestamp}
	}
	for codec, name := range frames.Codecs {
		for batches, topic := range map[int]string{1: "one-" + name, 2: "two-" + name} {
			c.CreateWith(1, month, topic)
			if batches == 1 {
				c.MustAppend(topic, 0, timed(codec, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
			} else {
				c.MustAppend(topic, 0, timed(codec, 1, 2, 3, 4, 5, 6))
				c.MustAppend(topic, 0, timed(codec, 7, 8, 9, 10, 11, 12))
			}
			for ts, want := range map[int64][2]int64{0: {0, 1}, 1: {0, 1}, 5: {4, 5}, 7: {6, 7}, 12: {11, 12}, 13: {-1, -1}} {
				assert.Equal(t, want, at(topic, ts), "%s at %d", topic, ts)
			}
			deleteTo(t, c, topic, 3)
			assert.Equal(t, [2]int64{3, 4}, at(topic, 1), "%s after records were deleted", topic)
		}
	}
	c.CreateWith(1, map[string]string{"message.timestamp.type": "LogAppendTime"}, "stamped")
	c.MustAppend("stamped", 0, timed(1, 1, 2, 3))
	appended := c.Offset("stamped", 0, 0).Timestamp
	require.Greater(t, appended, time.Now().Add(-time.Hour).UnixMilli())
	assert.Equal(t, [2]int64{0, appended}, at("stamped", appended), "all records of the batch have its time")
	assert.Equal(t, [2]int64{-1, -1}, at("stamped", appended+1))
}

// deleteTo moves the start of partition 0.
func deleteTo(t *testing.T, c *frames.Conn, topic string, offset int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, 30_000
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = offset
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	require.Zero(t, frames.Ask[*kmsg.DeleteRecordsResponse](c, req).Topics[0].Partitions[0].ErrorCode)
}

// TestBatchBeyondTheFetchLimitIsServed is O-FE-3: the first partition that has
// something gives a whole batch, the others nothing beyond the limit.
func TestBatchBeyondTheFetchLimitIsServed(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "a", "b")
	batch := good(strings.Repeat("x", 900_000))
	c.MustAppend("a", 0, batch)
	c.MustAppend("b", 0, batch)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		req := frames.Fetch(order[0], 0)
		req.Topics = append(req.Topics, frames.Fetch(order[1], 0).Topics[0])
		req.MaxBytes = 1
		for i := range req.Topics {
			req.Topics[i].Partitions[0].PartitionMaxBytes = 1
		}
		resp := frames.Ask[*kmsg.FetchResponse](c, req)
		require.Len(t, resp.Topics, 2)
		for _, topic := range resp.Topics {
			want := 0
			if topic.Topic == order[0] {
				want = len(batch)
			}
			assert.Len(t, topic.Partitions[0].RecordBatches, want, "%s of %v", topic.Topic, order)
		}
	}
}

// TestConsumerWithTinyLimitsReadsEverything is O-FE-3 with a real client: no
// partition starves.
func TestConsumerWithTinyLimitsReadsEverything(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(3, "t")
	for i := range 10 {
		for p := range int32(3) {
			c.MustAppend("t", p, good(fmt.Sprint(i, " ", strings.Repeat("x", 900_000))))
		}
	}
	start := kgo.NewOffset().AtStart()
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.FetchMaxBytes(1), kgo.FetchMaxPartitionBytes(1),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: start, 1: start, 2: start}}))
	require.NoError(t, err)
	defer cl.Close()
	next, ctx := map[int32]int64{}, limited(t)
	for next[0]+next[1]+next[2] < 30 {
		polled := cl.PollFetches(ctx)
		require.NoError(t, polled.Err(), "read so far: %v", next)
		polled.EachRecord(func(r *kgo.Record) {
			require.Equal(t, next[r.Partition], r.Offset)
			require.True(t, strings.HasPrefix(string(r.Value), fmt.Sprint(r.Offset, " ")))
			next[r.Partition]++
		})
	}
	assert.Equal(t, map[int32]int64{0: 10, 1: 10, 2: 10}, next)
}
