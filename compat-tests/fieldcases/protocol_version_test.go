package fieldcases

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// header is a request header up to and with the client id, before any tags.
func header(key, version int16, correlation int32, client string) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = binary.BigEndian.AppendUint16(b, uint16(len(client)))
	return append(b, client...)
}

func apiVersions(version int16) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, "frames", "1"
	return req
}

// TestUnknownApiVersionsIsAnsweredInTheFirstLayout is O-PV-1: a client newer than
// the broker must be able to finish the handshake on the same connection.
func TestUnknownApiVersionsIsAnsweredInTheFirstLayout(t *testing.T) {
	node := harness.Start(t)
	for _, version := range []int16{5, 127} {
		c := frames.Dial(t, node.Address)
		c.SendBytes(append(header(18, version, 7, "newer"), 0xde, 0xad, 0xbe, 0xef, 0xff, 0xff))
		correlation, rest, err := c.Next()
		require.NoError(t, err)
		require.EqualValues(t, 7, correlation)
		// Version 0: error, array of (key, min, max), and nothing behind it.
		require.Len(t, rest, 2+4+6, "one row and no tags")
		assert.EqualValues(t, 35, binary.BigEndian.Uint16(rest))
		assert.EqualValues(t, 1, binary.BigEndian.Uint32(rest[2:]))
		assert.EqualValues(t, 18, binary.BigEndian.Uint16(rest[6:]))
		assert.EqualValues(t, 0, binary.BigEndian.Uint16(rest[8:]))
		assert.EqualValues(t, 4, binary.BigEndian.Uint16(rest[10:]))
		for _, v := range []int16{3, 0} {
			resp := frames.Ask[*kmsg.ApiVersionsResponse](c, apiVersions(v))
			assert.Zero(t, resp.ErrorCode)
			assert.Greater(t, len(resp.ApiKeys), 15)
		}
	}
	c := frames.Dial(t, node.Address)
	bad := apiVersions(3)
	bad.ClientSoftwareName = "spaces are not allowed"
	assert.EqualValues(t, 42, frames.Ask[*kmsg.ApiVersionsResponse](c, bad).ErrorCode)
}

// TestClientsConfiguredForOlderReleasesWork is O-PV-2: sarama asks with the
// versions of the release it is told, not with those that the broker offers.
func TestClientsConfiguredForOlderReleasesWork(t *testing.T) {
	node := harness.Start(t)
	for _, v := range []sarama.KafkaVersion{
		sarama.V2_1_0_0, sarama.V2_4_0_0, sarama.V2_6_0_0, sarama.V2_8_0_0, sarama.V3_0_0_0, sarama.V3_6_0_0, sarama.V4_0_0_0,
	} {
		t.Run(v.String(), func(t *testing.T) { saramaOf(t, node.Address, v) })
	}
}

func saramaOf(t *testing.T, address string, v sarama.KafkaVersion) {
	config := sarama.NewConfig()
	config.Version = v
	config.ApiVersionsRequest = false
	config.Producer.Return.Successes = true
	topic := "as-" + v.String()
	admin, err := sarama.NewClusterAdmin([]string{address}, config)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	producer, err := sarama.NewSyncProducer([]string{address}, config)
	require.NoError(t, err)
	defer producer.Close()
	for i := range 10 {
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint(i))})
		require.NoError(t, err)
		require.EqualValues(t, i, offset)
	}
	consumer, err := sarama.NewConsumer([]string{address}, config)
	require.NoError(t, err)
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	require.NoError(t, err)
	defer partition.Close()
	ctx := limited(t)
	for i := range 10 {
		select {
		case m := <-partition.Messages():
			require.Equal(t, fmt.Sprint(i), string(m.Value))
		case <-ctx.Done():
			t.Fatalf("%d of 10 records read", i)
		}
	}
	described, err := admin.DescribeTopics([]string{topic})
	require.NoError(t, err)
	require.Len(t, described, 1)
	require.NoError(t, admin.DeleteTopic(topic))
}

// TestUnsupportedVersionClosesAndIsLogged is the other half of O-PV-2: the log
// names who asked for what, so that a user can find out.
func TestUnsupportedVersionClosesAndIsLogged(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	self := c.LocalAddr().String()
	c.SendBytes(append(header(3, 99, 1, "from-the-future"), 0))
	require.NoError(t, c.Closed(frames.Patience))
	require.Eventually(t, func() bool { return len(node.Lines("from-the-future")) > 0 }, frames.Patience, 10*time.Millisecond)
	line := node.Lines("from-the-future")[0]
	assert.Contains(t, line, self)
	assert.Contains(t, line, "Metadata")
	assert.Contains(t, line, "99")
	require.NoError(t, frames.Dial(t, node.Address).Close())
}

// TestLengthsBeyondTheFrameCloseOnlyThatConnection is O-PV-3: what a length
// claims is neither believed nor reserved.
func TestLengthsBeyondTheFrameCloseOnlyThatConnection(t *testing.T) {
	node := harness.Start(t)
	metadata := func(tail ...byte) []byte { return append(header(3, 9, 1, "liar"), tail...) }
	bystander := frames.Dial(t, node.Address)
	for _, lie := range []struct {
		name  string
		frame []byte
	}{
		{"a tag of 2^31-1 bytes", metadata(1, 0, 0xff, 0xff, 0xff, 0xff, 0x07)},
		{"an array of 2^32-2 elements", metadata(0, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"a number that does not end", metadata(0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80)},
	} {
		t.Run(lie.name, func(t *testing.T) {
			var before memory
			for i := range 1000 {
				if i == 200 { // What connections need once is there by now.
					before = memoryOf(t, node)
				}
				c := frames.Dial(t, node.Address)
				c.SendBytes(lie.frame)
				require.NoError(t, c.Closed(frames.Patience))
				require.NoError(t, c.Close())
			}
			after := memoryOf(t, node)
			assert.Less(t, after.resident-before.resident, 24<<20)
			assert.Less(t, after.reserved-before.reserved, 256<<20)
			assert.Zero(t, frames.Ask[*kmsg.ApiVersionsResponse](bystander, apiVersions(3)).ErrorCode)
		})
	}
	t.Run("an unknown tag", func(t *testing.T) {
		c := frames.Dial(t, node.Address)
		// Tag 99 of 3 bytes in header and body; no topics, three flags.
		c.SendBytes(metadata(1, 99, 3, 'a', 'b', 'c', 1, 0, 0, 0, 1, 99, 3, 'a', 'b', 'c'))
		correlation, rest, err := c.Next()
		require.NoError(t, err)
		require.EqualValues(t, 1, correlation)
		resp := kmsg.NewPtrMetadataResponse()
		resp.Version = 9
		require.NoError(t, resp.ReadFrom(rest[1:]))
		assert.Len(t, resp.Brokers, 1)
	})
}

// parked is a fetch of an empty partition that waits for its whole max_wait.
func parked(topic string, wait time.Duration) *kmsg.FetchRequest {
	req := frames.Fetch(topic, 0)
	req.MaxWaitMillis = int32(wait.Milliseconds())
	return req
}

// TestAnswersLeaveInTheOrderOfRequests is O-PV-4: whatever is done first.
func TestAnswersLeaveInTheOrderOfRequests(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "idle", "busy")
	fetch := parked("idle", time.Second)
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 9
	silent := frames.Produce(9, 0, "busy", frames.NewBatch(frames.Values("unanswered")...).Seal())
	loud := frames.Produce(9, 1, "busy", frames.NewBatch(frames.Values("answered")...).Seal())
	started := time.Now()
	ids := []int32{c.Send(fetch), c.Send(metadata), c.Send(silent), c.Send(loud), c.Send(apiVersions(3))}

	frames.Receive[*kmsg.FetchResponse](c, fetch, ids[0])
	assert.GreaterOrEqual(t, time.Since(started), 900*time.Millisecond, "nothing leaves before the fetch is due")
	frames.Receive[*kmsg.MetadataResponse](c, metadata, ids[1])
	produced := frames.Receive[*kmsg.ProduceResponse](c, loud, ids[3])
	assert.EqualValues(t, 1, produced.Topics[0].Partitions[0].BaseOffset, "effects are in the order of requests, too")
	frames.Receive[*kmsg.ApiVersionsResponse](c, apiVersions(3), ids[4])
}

// TestRandomMixesAreAnsweredInOrder is the repetition of O-PV-4. MAINSTEM_MIXES
// says how many requests each of 20 connections sends.
func TestRandomMixesAreAnsweredInOrder(t *testing.T) {
	node := harness.Start(t)
	frames.Dial(t, node.Address).Create(4, "mix", "quiet")
	requests := number(t, "MAINSTEM_MIXES", 250)
	for i := range 20 {
		t.Run(fmt.Sprint("connection ", i), func(t *testing.T) {
			t.Parallel()
			mix(t, frames.Dial(t, node.Address), rand.New(rand.NewPCG(uint64(i), 4)), requests)
		})
	}
}

// mix sends random requests, at most five ahead of their answers.
func mix(t *testing.T, c *frames.Conn, rng *rand.Rand, requests int) {
	type sent struct {
		req kmsg.Request
		id  int32
	}
	var waiting []sent
	receive := func(left int) {
		for len(waiting) > left {
			s := waiting[0]
			waiting = waiting[1:]
			correlation, rest, err := c.Next()
			require.NoError(t, err)
			require.Equal(t, s.id, correlation, "answer to %T", s.req)
			require.NotEmpty(t, rest)
		}
	}
	batch := frames.NewBatch(frames.Values(strings.Repeat("x", 100))...).Seal()
	for range requests {
		var req kmsg.Request
		switch rng.IntN(5) {
		case 0:
			req = parked("quiet", time.Duration(rng.IntN(4))*time.Millisecond)
		case 1:
			req = kmsg.NewPtrMetadataRequest()
			req.SetVersion(int16(rng.IntN(14)))
		case 2:
			c.Send(frames.Produce(9, 0, "mix", batch))
			continue
		case 3:
			req = frames.Produce(int16(3+rng.IntN(10)), -1, "mix", nil, batch)
		case 4:
			req = apiVersions(int16(rng.IntN(5)))
		}
		waiting = append(waiting, sent{req, c.Send(req)})
		receive(4)
	}
	receive(0)
}
