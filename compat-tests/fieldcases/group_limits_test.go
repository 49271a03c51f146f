package fieldcases

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// Codes of the answers to members of groups.
const (
	codeInvalidRequest = 42
	codeFullGroup      = 81
	codeInvalidRegex   = 128
)

// TestLongAndUnusualGroupIDs: whatever a record can hold is an id like any other,
// also after a restart. What it cannot hold is refused; it must not be lost.
func TestLongAndUnusualGroupIDs(t *testing.T) {
	t.Parallel()
	node := harness.Start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	ids := []string{strings.Repeat("x", 249), strings.Repeat("x", 250), strings.Repeat("x", 32_767), "gr\u00fcn \U0001F680/\\\x01%s", " ", "__consumer_offsets"}
	for i, id := range ids {
		j := &joiner{c: dialCoordinator(t, node.Address, groupCoordinator, id), group: id}
		require.Zero(t, j.commit(t, 8, int64(i+1), 0), id)
	}
	// A string that is longer than Kafka's are is a bad request.
	for _, req := range []kmsg.Request{
		(&joiner{group: strings.Repeat("x", 40_000), version: 9, session: 10 * time.Second}).request(),
		heartbeatOf("g", strings.Repeat("m", 40_000)), initOf(strings.Repeat("t", 40_000)),
	} {
		c := frames.Dial(t, node.Address)
		c.Send(req)
		require.NoError(t, c.Closed(frames.Patience))
	}
	c := dialCoordinator(t, node.Address, groupCoordinator, "g")
	named := &joiner{c: c, group: "g", version: 9, session: 10 * time.Second}
	instance := named.request()
	instance.InstanceID = kmsg.StringPtr(strings.Repeat("i", 32_767))
	assert.EqualValues(t, codeInvalidRequest, frames.Ask[*kmsg.JoinGroupResponse](c, instance).ErrorCode, "it would be part of a longer id")
	pattern := heartbeatOf("g", "m")
	pattern.SubscribedTopicRegex = kmsg.StringPtr(strings.Repeat("a{1000}", 1000))
	assert.EqualValues(t, codeInvalidRegex, frames.Ask[*kmsg.ConsumerGroupHeartbeatResponse](c, pattern).ErrorCode)

	node.Kill()
	require.NoError(t, node.Start())
	adm := admin(t, node.Address)
	listed, err := adm.ListGroups(limited(t))
	require.NoError(t, err)
	assert.ElementsMatch(t, ids, listed.Groups())
	for i, id := range ids {
		assert.EqualValues(t, i+1, offsetOf(t, adm, id), id)
	}
}

func initOf(id string) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &id, 1000
	return req
}

func heartbeatOf(group, member string) *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, group, member, 60_000
	req.Topics, req.SubscribedTopicNames = []kmsg.ConsumerGroupHeartbeatRequestTopic{}, []string{}
	return req
}

// TestTwoThousandMembersAtOnce: they get in together, and the group's leader hears
// of them all; what they say takes no more memory than a group may.
func TestTwoThousandMembersAtOnce(t *testing.T) {
	n := number(t, "MAINSTEM_MEMBERS", 300)
	node := harness.Start(t, "group.initial.rebalance.delay.ms=3000")
	dialCoordinator(t, node.Address, groupCoordinator, "g")
	first := &joiner{c: frames.Dial(t, node.Address), version: 5, group: "warm", session: time.Minute}
	first.join(t)
	began := time.Now()
	answers := joinTogether(t, node, "g", n, 1000)
	took := time.Since(began)
	leaders, members := 0, 0
	for _, r := range answers {
		require.Zero(t, r.ErrorCode)
		if len(r.Members) > 0 {
			leaders, members = leaders+1, len(r.Members)
		}
	}
	assert.Equal(t, 1, leaders)
	assert.Equal(t, n, members)
	t.Logf("%d members joined in %v, of which the initial delay is at least 3s", n, took)

	before := memoryOf(t, node).resident
	size := 200 << 20 / n // 200 MiB of words, together.
	in, refused := 0, 0
	for _, r := range joinTogether(t, node, "large", n, size) {
		switch r.ErrorCode {
		case 0:
			in++
		case codeFullGroup:
			refused++
		default:
			t.Fatalf("error %d", r.ErrorCode)
		}
	}
	assert.Positive(t, in)
	assert.LessOrEqual(t, in*size, 8<<20)
	assert.Equal(t, n, in+refused)
	assert.Less(t, memoryOf(t, node).resident, before+3*n*size, "what was sent, and not what each would hear of all")
	assert.Zero(t, first.sync(t, nil).ErrorCode, "others are served")
}

// joinTogether has members join a group at the same time, each with so many bytes of
// metadata, and returns their answers.
func joinTogether(t *testing.T, node *harness.Node, group string, n, bytes int) []*kmsg.JoinGroupResponse {
	t.Helper()
	answers := make([]*kmsg.JoinGroupResponse, n)
	var all sync.WaitGroup
	for i := range n {
		j := &joiner{c: frames.Dial(t, node.Address), version: 3, group: group, session: time.Minute}
		req := j.request()
		req.Protocols[0].Metadata = make([]byte, bytes)
		all.Go(func() {
			answers[i] = frames.Ask[*kmsg.JoinGroupResponse](j.c, req)
			_ = j.c.Close()
		})
	}
	all.Wait()
	return answers
}

// TestOffsetsOfTenThousandPartitions are committed and fetched by one request each.
func TestOffsetsOfTenThousandPartitions(t *testing.T) {
	t.Parallel()
	const topics, partitions = 10, 1000
	node := harness.Start(t)
	c := dialCoordinator(t, node.Address, groupCoordinator, "g")
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 9, "g", -1
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Version, fetch.RequireStable = 9, true
	ask := kmsg.NewOffsetFetchRequestGroup()
	ask.Group, ask.MemberEpoch = "g", -1
	for i := range topics {
		name := fmt.Sprint("t", i)
		c.Create(partitions, name)
		topic, asked := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetFetchRequestGroupTopic()
		topic.Topic, asked.Topic = name, name
		for p := range int32(partitions) {
			row := kmsg.NewOffsetCommitRequestTopicPartition()
			row.Partition, row.Offset = p, int64(i)*partitions+int64(p)
			topic.Partitions, asked.Partitions = append(topic.Partitions, row), append(asked.Partitions, p)
		}
		commit.Topics, ask.Topics = append(commit.Topics, topic), append(ask.Topics, asked)
	}
	fetch.Groups = append(fetch.Groups, ask)
	committed := loaded(t, func() (*kmsg.OffsetCommitResponse, int16) {
		r := frames.Ask[*kmsg.OffsetCommitResponse](c, commit)
		return r, r.Topics[0].Partitions[0].ErrorCode
	})
	for _, topic := range committed.Topics {
		for _, p := range topic.Partitions {
			require.Zero(t, p.ErrorCode)
		}
	}
	check := func(c *frames.Conn, topics []kmsg.OffsetFetchRequestGroupTopic) {
		fetch.Groups[0].Topics = topics
		row := loaded(t, func() (kmsg.OffsetFetchResponseGroup, int16) {
			r := frames.Ask[*kmsg.OffsetFetchResponse](c, fetch).Groups[0]
			return r, r.ErrorCode
		})
		n := 0
		for _, topic := range row.Topics {
			var i int64
			_, err := fmt.Sscanf(topic.Topic, "t%d", &i)
			require.NoError(t, err)
			for _, p := range topic.Partitions {
				require.Zero(t, p.ErrorCode)
				require.Equal(t, i*partitions+int64(p.Partition), p.Offset)
				n++
			}
		}
		require.Equal(t, len(commit.Topics)*partitions, n)
	}
	check(c, ask.Topics)
	check(c, nil)
	node.Kill()
	require.NoError(t, node.Start())
	check(frames.Dial(t, node.Address), ask.Topics)
}

// TestOffsetsGoWithTheirTopic: a topic that is deleted and made again under the same
// name does not inherit the offsets of the one before, whatever a kill falls into.
func TestOffsetsGoWithTheirTopic(t *testing.T) {
	t.Parallel()
	node := harness.Start(t, "offsets.retention.check.interval.ms=200")
	c := frames.Dial(t, node.Address)
	for round := range int64(5) {
		c.Create(1, "t")
		j := &joiner{c: dialCoordinator(t, node.Address, groupCoordinator, "g"), group: "g"}
		adm := admin(t, node.Address)
		require.EqualValues(t, -1, offsetOf(t, adm, "g"), "round %d: nothing is committed for the new topic", round)
		require.Zero(t, j.commit(t, 9, round+5, 0))
		require.EqualValues(t, round+5, offsetOf(t, adm, "g"))
		_, err := adm.DeleteTopic(limited(t), "t")
		require.NoError(t, err)
		if round%2 == 0 {
			node.Kill()
			require.NoError(t, node.Start())
			c = frames.Dial(t, node.Address)
		}
	}
	require.Eventually(t, func() bool {
		groups, err := admin(t, node.Address).ListGroups(limited(t))
		require.NoError(t, err)
		return len(groups.Groups()) == 0
	}, frames.Patience, 50*time.Millisecond, "nothing is left of a group without offsets")
}

// TestPartitionsOfInternalTopicsStayAsManyAsTheyWere is O-OP-2: where a group's or a
// transaction's state lies is fixed when its topic is made, not by a setting.
func TestPartitionsOfInternalTopicsStayAsManyAsTheyWere(t *testing.T) {
	t.Parallel()
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	group := func(i int) string { return fmt.Sprint("group-", i) }
	for i := range 50 {
		j := &joiner{c: dialCoordinator(t, node.Address, groupCoordinator, group(i)), group: group(i)}
		require.Zero(t, j.commit(t, 9, int64(i+1), 0))
	}
	p := newTxnProducer(t, node.Address, "a", time.Minute)
	producer := p.producer
	require.NoError(t, node.Stop())
	node.Settings = []string{"offsets.topic.num.partitions=7", "transaction.state.log.num.partitions=3", "num.partitions=5"}
	require.NoError(t, node.Start())
	adm := admin(t, node.Address)
	for i := range 50 {
		require.EqualValues(t, i+1, offsetOf(t, adm, group(i)), group(i))
	}
	details, err := adm.ListTopicsWithInternal(limited(t), "__consumer_offsets", "__transaction_state")
	require.NoError(t, err)
	details.EachPartition(func(d kadm.PartitionDetail) { require.Less(t, d.Partition, int32(50)) })
	require.Len(t, details["__consumer_offsets"].Partitions, 50)
	require.Len(t, details["__transaction_state"].Partitions, 50)
	again := newTxnProducer(t, node.Address, "a", time.Minute)
	require.Equal(t, producer, again.producer, "the id is known")
	require.Positive(t, again.epoch)
}

// TestSubscriptionToManyTopics: a member of the broker's assignment that names very
// many topics, or finds them by an expression, gets all of them in good time.
func TestSubscriptionToManyTopics(t *testing.T) {
	n := number(t, "MAINSTEM_SUBSCRIBED", 300)
	node := harness.Start(t, "group.consumer.assignment.interval.ms=0", "group.consumer.min.heartbeat.interval.ms=50", "group.consumer.heartbeat.interval.ms=50")
	c := dialCoordinator(t, node.Address, groupCoordinator, "g")
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("topic-", i))
	}
	for at := 0; at < n; at += 500 {
		c.Create(1, names[at:min(at+500, n)]...)
	}
	list, pattern := heartbeatOf("list", "m"), heartbeatOf("pattern", "m")
	list.SubscribedTopicNames = names
	pattern.SubscribedTopicRegex = kmsg.StringPtr("topic-[0-9]+")
	for _, req := range []*kmsg.ConsumerGroupHeartbeatRequest{list, pattern} {
		began := time.Now()
		resp := loaded(t, func() (*kmsg.ConsumerGroupHeartbeatResponse, int16) {
			r := frames.Ask[*kmsg.ConsumerGroupHeartbeatResponse](c, req)
			return r, r.ErrorCode
		})
		require.Zero(t, resp.ErrorCode)
		for resp.Assignment == nil || len(resp.Assignment.Topics) < n {
			require.Less(t, time.Since(began), frames.Patience)
			time.Sleep(5 * time.Millisecond)
			beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			beat.Version, beat.Group, beat.MemberID, beat.MemberEpoch = 1, req.Group, req.MemberID, resp.MemberEpoch
			resp = frames.Ask[*kmsg.ConsumerGroupHeartbeatResponse](c, beat)
			require.Zero(t, resp.ErrorCode)
		}
		t.Logf("%s: %d topics after %v", req.Group, n, time.Since(began))
	}
}
