package admin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
)

// open runs a real controller over an embedded etcd in dir.
func open(t *testing.T, dir, clusterID string) *controller.Client {
	t.Helper()
	c, err := controller.Open(t.Context(), controller.Options{Dir: dir, NodeID: 1, WantClusterID: clusterID, HasData: clusterID != ""})
	require.NoError(t, err)
	require.NoError(t, c.Register(t.Context(), broker(1, "rack1")))
	return c
}

// over is a world whose metadata is in etcd.
func over(t *testing.T, c *controller.Client) *world {
	t.Helper()
	w := newWorld(t, "")
	w.opts.Controller = c
	return w
}

func TestChangesAreVisibleWhenTheyAreAnsweredAndSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, "")
	// What the broker does with each image: it is done before a change is answered.
	applied := map[string]int{}
	c.Subscribe(func(image *meta.Image, _ meta.Delta) {
		for topic := range image.Topics() {
			applied[topic.Name] = len(topic.Partitions)
		}
	})
	w := over(t, c)
	w.create(9999, "big")
	assert.Equal(t, 9999, applied["big"])
	w.create(2, "t")
	assert.Equal(t, []int32{1}, w.show(12, false, "t").Topics[0].Partitions[1].Replicas)
	assert.Equal(t, int16(36), w.codes(createRequest(newTopicSpec{"t", 1, 1, nil}))["t"])
	parts := kmsg.NewPtrCreatePartitionsRequest()
	parts.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: 5}}
	require.Zero(t, w.ask(parts).(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
	assert.Equal(t, 5, applied["t"])
	w.mustAlter(topicType, "t", "cleanup.policy=compact", "retention.ms=1000")
	w.mustAlter(brokerType, "", "log.retention.ms=5000")
	w.mustAlter(brokerType, "1", "message.max.bytes=6000")
	w.mustAlter(groupType, "g", "consumer.session.timeout.ms=50000")
	code, _ := w.alter(topicType, "t", "retention.ms=2000", "cleanup.policy=compactt")
	assert.Equal(t, int16(40), code)
	w.show(12, true, "automatic")
	w.creator.wg.Wait()
	id := c.Image().Topic("t").ID
	w.Close()
	require.NoError(t, c.Close(context.Background()))

	c = open(t, dir, c.ClusterID())
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	w = over(t, c)
	image := c.Image()
	require.NotNil(t, image.Topic("t"))
	assert.Equal(t, id, image.Topic("t").ID)
	assert.Equal(t, map[string]string{"cleanup.policy": "compact", "retention.ms": "1000"}, image.Topic("t").Configs)
	assert.NotNil(t, image.Topic("automatic"))
	require.NoError(t, w.live.Apply(
		image.Configs(meta.Resource{Type: meta.ResourceBroker}), image.Configs(meta.Resource{Type: meta.ResourceBroker, Name: "1"})))
	assert.Equal(t, int64(5000), w.live.Topic(nil).RetentionMs)
	assert.Equal(t, 6000, w.live.Values().MessageMaxBytes)
	assert.Equal(t, "50000", *w.configsOf(groupType, "g")["consumer.session.timeout.ms"].Value)

	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version = 6
	del.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: id}}
	require.Zero(t, w.ask(del).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
	assert.Equal(t, int16(3), w.show(12, false, "t").Topics[0].ErrorCode)
	w.create(1, "t")
	assert.NotEqual(t, id, c.Image().Topic("t").ID)
	assert.Empty(t, c.Image().Topic("t").Configs)
}
