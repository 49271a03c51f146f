package admin

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func offsets() map[string]func(r *rig) {
	return map[string]func(r *rig){
		"ListStartOffsets":         listStartOffsets,
		"ListEndOffsets":           listEndOffsets,
		"ListCommittedOffsets":     listCommittedOffsets,
		"ListMaxTimestampOffsets":  listMaxTimestampOffsets,
		"ListOffsetsAfterMilli":    listOffsetsAfterMilli,
		"ListLocalLogStartOffsets": listLocalLogStartOffsets,
		"ListLatestRemoteOffsets":  listLatestRemoteOffsets,
		"OffsetForLeaderEpoch":     func(r *rig) { offsetForLeaderEpoch(r, r.adm.OffsetForLeaderEpoch) },
		"OffetForLeaderEpoch":      func(r *rig) { offsetForLeaderEpoch(r, r.adm.OffetForLeaderEpoch) },
	}
}

// at requires the offset of partition 0 of a topic.
func (r *rig) at(want int64, topic string, got kadm.ListedOffsets, err error) kadm.ListedOffset {
	r.Helper()
	require.NoError(r, err)
	o, ok := got.Lookup(topic, 0)
	require.True(r, ok)
	require.NoError(r, o.Err)
	assert.Equal(r, want, o.Offset)
	return o
}

// five is a topic with five records, of the seconds 1 to 5 of 1970.
func (r *rig) five() string {
	r.Helper()
	topic := r.topic(1)
	r.write(topic, 1, 5)
	return topic
}

func listStartOffsets(r *rig) {
	topic, upTo := r.five(), kadm.Offsets{}
	upTo.AddOffset(topic, 0, 2, -1)
	_, err := r.adm.DeleteRecords(r.ctx, upTo)
	require.NoError(r, err)
	got, err := r.adm.ListStartOffsets(r.ctx, topic)
	r.at(2, topic, got, err)
}

func listEndOffsets(r *rig) {
	topic := r.five()
	got, err := r.adm.ListEndOffsets(r.ctx, topic, "not-there")
	r.at(5, topic, got, err)
	for _, o := range got["not-there"] {
		assert.ErrorIs(r, o.Err, kerr.UnknownTopicOrPartition)
	}
}

func listCommittedOffsets(r *rig) {
	topic := r.five()
	end := r.open(topic)
	got, err := r.adm.ListCommittedOffsets(r.ctx, topic)
	r.at(5, topic, got, err)
	end()
	r.marked(topic)
	got, err = r.adm.ListCommittedOffsets(r.ctx, topic)
	r.at(7, topic, got, err)
}

func listMaxTimestampOffsets(r *rig) {
	topic := r.five()
	got, err := r.adm.ListMaxTimestampOffsets(r.ctx, topic)
	assert.EqualValues(r, 5000, r.at(4, topic, got, err).Timestamp)
}

func listOffsetsAfterMilli(r *rig) {
	topic := r.five()
	got, err := r.adm.ListOffsetsAfterMilli(r.ctx, 2500, topic)
	assert.EqualValues(r, 3000, r.at(2, topic, got, err).Timestamp)
	got, err = r.adm.ListOffsetsAfterMilli(r.ctx, 9000, topic)
	r.at(5, topic, got, err)
}

func listLocalLogStartOffsets(r *rig) {
	topic := r.five()
	got, err := r.adm.ListLocalLogStartOffsets(r.ctx, topic)
	r.at(0, topic, got, err)
}

// listLatestRemoteOffsets: nothing is in a remote tier.
func listLatestRemoteOffsets(r *rig) {
	topic := r.five()
	got, err := r.adm.ListLatestRemoteOffsets(r.ctx, topic)
	r.at(-1, topic, got, err)
}

func offsetForLeaderEpoch(r *rig, ask func(ctx context.Context, req kadm.OffsetForLeaderEpochRequest) (kadm.OffsetsForLeaderEpochs, error)) {
	topic := r.five()
	described, err := r.adm.ListTopics(r.ctx, topic)
	require.NoError(r, err)
	epoch := described[topic].Partitions[0].LeaderEpoch
	req := kadm.OffsetForLeaderEpochRequest{}
	req.Add(topic, 0, epoch)
	got, err := ask(r.ctx, req)
	require.NoError(r, err)
	require.NoError(r, got[topic][0].Err)
	assert.EqualValues(r, 5, got[topic][0].EndOffset)
	assert.Equal(r, epoch, got[topic][0].LeaderEpoch)
}
