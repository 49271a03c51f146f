package fieldcases

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// create sends one CreateTopics request and returns the answers by name.
func create(t *testing.T, c *frames.Conn, validateOnly bool, topics ...kmsg.CreateTopicsRequestTopic) map[string]kmsg.CreateTopicsResponseTopic {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly, req.Topics = 7, 60_000, validateOnly, topics
	out := map[string]kmsg.CreateTopicsResponseTopic{}
	for _, answer := range frames.Ask[*kmsg.CreateTopicsResponse](c, req).Topics {
		_, twice := out[answer.Topic]
		require.False(t, twice, "two answers for %q", answer.Topic)
		out[answer.Topic] = answer
	}
	return out
}

// TestEachTopicIsRefusedForItsOwnFault is O-AD-1: the same cause has the same
// code at any size, and one bad topic does not stop the others.
func TestEachTopicIsRefusedForItsOwnFault(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	answers := create(t, c, false,
		frames.NewTopic("fine", 3, 1, nil), frames.NewTopic("also-fine", -1, -1, nil),
		frames.NewTopic("replicas-5", 1, 5, nil), frames.NewTopic("replicas-0", 1, 0, nil), frames.NewTopic("replicas--2", 1, -2, nil),
		frames.NewTopic("partitions-0", 0, 1, nil), frames.NewTopic("partitions--2", -2, 1, nil),
		frames.NewTopic("a/b", 1, 1, nil), frames.NewTopic("twice", 1, 1, nil), frames.NewTopic("twice", 1, 1, nil))
	want := map[string]int16{"fine": 0, "also-fine": 0, "replicas-5": 38, "replicas-0": 38, "replicas--2": 38,
		"partitions-0": 37, "partitions--2": 37, "a/b": 17, "twice": 42}
	require.Len(t, answers, len(want))
	for name, code := range want {
		assert.Equal(t, code, answers[name].ErrorCode, name)
		if code != 0 {
			require.NotNil(t, answers[name].ErrorMessage, name)
			assert.NotEmpty(t, *answers[name].ErrorMessage, name)
		}
	}
	assert.Equal(t, []string{"also-fine", "fine"}, topics(t, node.Address))
}

// TestTooManyPartitionsAreRefusedAtAnySize is the limit of O-AD-1.
func TestTooManyPartitionsAreRefusedAtAnySize(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	for _, partitions := range []int32{10_000, 100_000, 1<<31 - 1} {
		answer := create(t, c, false, frames.NewTopic("huge", partitions, 1, nil))["huge"]
		assert.EqualValues(t, 44, answer.ErrorCode, "%d partitions", partitions)
		require.NotNil(t, answer.ErrorMessage)
		assert.Contains(t, *answer.ErrorMessage, "9999", "the limit")
	}
	c.Create(9_999, "large")
	assert.EqualValues(t, 0, c.MustAppend("large", 9_998, good("v")))
	assert.Equal(t, []string{"large"}, topics(t, node.Address))
}

// TestValidatingOnlyCreatesNothing is O-AD-2: every check is made, also whether
// the name is taken.
func TestValidatingOnlyCreatesNothing(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	for name, want := range map[string]struct {
		topic kmsg.CreateTopicsRequestTopic
		code  int16
	}{
		"taken":        {frames.NewTopic("t", 1, 1, nil), 36},
		"free":         {frames.NewTopic("u", 1, 1, nil), 0},
		"policy":       {frames.NewTopic("u", 1, 1, map[string]string{"cleanup.policy": "banana"}), 40},
		"replicas":     {frames.NewTopic("u", 1, 99, nil), 38},
		"partitions":   {frames.NewTopic("u", 0, 1, nil), 37},
		"illegal name": {frames.NewTopic("u/", 1, 1, nil), 17},
	} {
		assert.Equal(t, want.code, create(t, c, true, want.topic)[want.topic.Topic].ErrorCode, name)
	}
	assert.Equal(t, []string{"t"}, topics(t, node.Address))
	restart(t, node)
	assert.Equal(t, []string{"t"}, topics(t, node.Address))
}

// TestOneOfManyCreatorsWins is the race of O-AD-2.
func TestOneOfManyCreatorsWins(t *testing.T) {
	node := harness.Start(t)
	var conns []*frames.Conn
	for range 20 {
		conns = append(conns, frames.Dial(t, node.Address))
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 60_000
	req.Topics = append(req.Topics, frames.NewTopic("wanted", 4, 1, nil))
	codes := make([]int16, len(conns))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			<-start
			codes[i] = frames.Ask[*kmsg.CreateTopicsResponse](c, req).Topics[0].ErrorCode
		})
	}
	close(start)
	wg.Wait()
	count := map[int16]int{}
	for _, code := range codes {
		count[code]++
	}
	assert.Equal(t, map[int16]int{0: 1, 36: 19}, count)
}

func deleteTopic(t *testing.T, c *frames.Conn, name string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis, req.TopicNames = 5, 30_000, []string{name}
	require.Zero(t, frames.Ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0].ErrorCode)
}

// byID turns a fetch by name into one by topic id.
func byID(req *kmsg.FetchRequest, ids frames.Topics) *kmsg.FetchRequest {
	req.Version = 13
	for i := range req.Topics {
		req.Topics[i].TopicID = ids[req.Topics[i].Topic]
	}
	return req
}

// TestRecreatedTopicStartsEmpty is O-AD-3: another topic of the same name, with
// another id, and nothing of the old one in it.
func TestRecreatedTopicStartsEmpty(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	ids := c.Create(1, "t")
	for i := range 10 {
		c.MustAppend("t", 0, good(fmt.Sprint("old ", i)))
	}
	for range number(t, "MAINSTEM_CYCLES", 100) {
		deleteTopic(t, c, "t")
		again := c.Create(1, "t")
		require.NotEqual(t, ids["t"], again["t"])
		require.Zero(t, c.End("t", 0))
		stale := frames.Ask[*kmsg.FetchResponse](c, byID(frames.Fetch("t", 0), ids)).Topics[0].Partitions[0]
		require.EqualValues(t, 100, stale.ErrorCode, "the old id is gone")
		ids = again
		beyond := frames.Ask[*kmsg.FetchResponse](c, frames.Fetch("t", 10)).Topics[0].Partitions[0]
		require.EqualValues(t, 1, beyond.ErrorCode)
	}
	for i := range 5 {
		require.EqualValues(t, i, c.MustAppend("t", 0, good(fmt.Sprint("new ", i))))
	}
	assert.Equal(t, []string{"new 0", "new 1", "new 2", "new 3", "new 4"}, c.ReadAll("t", 0, 0))
}

// TestDeletedTopicStaysDeletedAfterAKill is the crash of O-AD-3: its bytes are
// still in the shared log.
func TestDeletedTopicStaysDeletedAfterAKill(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(2, "t", "kept")
	for range 5 {
		c.MustAppend("t", 0, good("old"))
		c.MustAppend("t", 1, good("old"))
		c.MustAppend("kept", 0, good("kept"))
	}
	deleteTopic(t, c, "t")
	node.Kill()
	require.NoError(t, node.Start())
	assert.Equal(t, []string{"kept"}, topics(t, node.Address))
	c = frames.Dial(t, node.Address)
	assert.EqualValues(t, 3, c.Offset("t", 0, -1).ErrorCode)
	c.Create(2, "t")
	for p := range int32(2) {
		assert.Zero(t, c.End("t", p))
		assert.Zero(t, c.Offset("t", p, -2).Offset)
		assert.EqualValues(t, 0, c.MustAppend("t", p, good("new")))
		assert.Equal(t, []string{"new"}, c.ReadAll("t", p, 0))
	}
	assert.Len(t, c.ReadAll("kept", 0, 0), 5)
}
