package fieldcases

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// describe asks Metadata for topics; create is the flag of versions from 4 on.
func describe(version int16, create bool, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = version, create
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func metadata(c *frames.Conn, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	return frames.Ask[*kmsg.MetadataResponse](c, req)
}

// TestDescribingATopicDoesNotCreateIt is O-ME-1: a topic is made only where the
// broker's setting and the request's flag both want it.
func TestDescribingATopicDoesNotCreateIt(t *testing.T) {
	node := harness.Start(t, "num.partitions=3")
	c := frames.Dial(t, node.Address)
	assert.EqualValues(t, 3, metadata(c, describe(4, false, "nope")).Topics[0].ErrorCode)
	for _, illegal := range []string{"a b", strings.Repeat("n", 250), "..", ""} {
		assert.EqualValues(t, 17, metadata(c, describe(4, true, illegal)).Topics[0].ErrorCode, "%q", illegal)
	}
	for name, req := range map[string]*kmsg.MetadataRequest{"wanted": describe(4, true, "wanted"), "old": describe(1, false, "old")} {
		assert.Contains(t, []int16{3, 5}, metadata(c, req).Topics[0].ErrorCode, "the first answer")
		require.Eventually(t, func() bool {
			topic := metadata(c, describe(4, false, name)).Topics[0]
			return topic.ErrorCode == 0 && len(topic.Partitions) == 3
		}, frames.Patience, 5*time.Millisecond, name)
	}
	c.Create(1, "a.b")
	assert.EqualValues(t, 3, metadata(c, describe(4, true, "a_b")).Topics[0].ErrorCode, "it collides with a.b")
	// All creations that were asked for before this one are done when it is.
	metadata(c, describe(4, true, "last"))
	require.Eventually(t, func() bool { return slices.Contains(topics(t, node.Address), "last") }, frames.Patience, 10*time.Millisecond)
	assert.Equal(t, []string{"a.b", "last", "old", "wanted"}, topics(t, node.Address))
}

// TestAutoCreationThatIsOffCreatesNothing is the rest of O-ME-1.
func TestAutoCreationThatIsOffCreatesNothing(t *testing.T) {
	node := harness.Start(t, "auto.create.topics.enable=false")
	c := frames.Dial(t, node.Address)
	for _, req := range []*kmsg.MetadataRequest{describe(4, true, "nope"), describe(12, true, "nope"), describe(1, false, "nope")} {
		assert.EqualValues(t, 3, metadata(c, req).Topics[0].ErrorCode)
	}
	batch := frames.NewBatch(frames.Values("v")...).Seal()
	assert.EqualValues(t, 3, c.Append("nope", 0, batch).ErrorCode)
	c.Create(1, "by-hand")
	assert.Equal(t, []string{"by-hand"}, topics(t, node.Address))
}

// TestControllerIsAListedBrokerThatCreatesTopics is O-ME-2: -1 makes admin
// clients ask for metadata for ever.
func TestControllerIsAListedBrokerThatCreatesTopics(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	for version := int16(1); version <= 13; version++ {
		resp := metadata(c, describe(version, false, "nope"))
		require.Len(t, resp.Brokers, 1)
		assert.Equal(t, resp.Brokers[0].NodeID, resp.ControllerID, "version %d", version)
		assert.Equal(t, node.Address, address(resp.Brokers[0]))
	}
	_, err := admin(t, node.Address).CreateTopic(limited(t), 1, 1, nil, "by-admin")
	require.NoError(t, err, "the admin client goes to the controller")
}
