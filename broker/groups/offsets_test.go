package groups

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator/group"
)

func fetchGroup(name string, topics ...kmsg.OffsetFetchRequestGroupTopic) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = name, topics
	return g
}

func fetchTopic(name string, id group.TopicID, partitions ...int32) kmsg.OffsetFetchRequestGroupTopic {
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = name, id, partitions
	return t
}

func TestOffsetsAreCommittedAndFetchedInEachVersion(t *testing.T) {
	r := newRig(t).lead()
	wire := r.Set.Topic("wire").ID
	offset := int64(10)
	for version := int16(2); version <= 10; version++ {
		offset++
		req := commitRequest("g", "wire", 1, offset)
		req.Topics[0].TopicID = wire
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: 3}, kmsg.OffsetCommitRequestTopicPartition{Partition: -1})
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: "nope", TopicID: group.TopicID{9}, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{}}})
		resp := ask[*kmsg.OffsetCommitResponse](r, req, version)
		unknown := kerr.UnknownTopicOrPartition.Code
		require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
		require.Equal(t, unknown, resp.Topics[0].Partitions[1].ErrorCode)
		require.Equal(t, unknown, resp.Topics[0].Partitions[2].ErrorCode)
		if version >= 10 {
			unknown = kerr.UnknownTopicID.Code
			require.Equal(t, wire, resp.Topics[0].TopicID)
		}
		require.Equal(t, unknown, resp.Topics[1].Partitions[0].ErrorCode)

		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Group, fetch.Topics = "g", []kmsg.OffsetFetchRequestTopic{{Topic: "wire", Partitions: []int32{0, 1, 77}}, {Topic: "nope", Partitions: []int32{0}}}
		fetch.Groups = []kmsg.OffsetFetchRequestGroup{
			fetchGroup("g", fetchTopic("wire", wire, 0, 1, 77), fetchTopic("nope", group.TopicID{9}, 0)), fetchGroup("unknown", fetchTopic("wire", wire, 0)),
		}
		got := ask[*kmsg.OffsetFetchResponse](r, fetch, version)
		if version < 8 {
			rows := got.Topics[0].Partitions
			require.Equal(t, []int64{-1, offset, -1}, []int64{rows[0].Offset, rows[1].Offset, rows[2].Offset})
			require.Empty(t, *rows[0].Metadata)
			require.Zero(t, got.Topics[1].Partitions[0].ErrorCode, "a topic that does not exist has no offset")
			continue
		}
		require.Len(t, got.Groups, 2)
		rows := got.Groups[0].Topics[0].Partitions
		require.Equal(t, []int64{-1, offset, -1}, []int64{rows[0].Offset, rows[1].Offset, rows[2].Offset})
		want := int16(0)
		if version >= 10 {
			want = kerr.UnknownTopicID.Code
			require.Equal(t, wire, got.Groups[0].Topics[0].TopicID)
		}
		require.Equal(t, want, got.Groups[0].Topics[1].Partitions[0].ErrorCode)
		require.Equal(t, int64(-1), got.Groups[1].Topics[0].Partitions[0].Offset)
	}
}

func TestAllOffsetsOfAGroupAreFetched(t *testing.T) {
	r := newRig(t).lead()
	r.commit("g", "wire", 2, 5)
	r.commit("g", "wire", 0, 3)
	for version := int16(2); version <= 10; version++ {
		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Group, fetch.Groups = "g", []kmsg.OffsetFetchRequestGroup{fetchGroup("g")}
		fetch.Groups[0].Topics, fetch.Topics = nil, nil
		got := ask[*kmsg.OffsetFetchResponse](r, fetch, version)
		if version < 8 {
			require.Len(t, got.Topics, 1)
			require.Len(t, got.Topics[0].Partitions, 2)
			continue
		}
		require.Len(t, got.Groups[0].Topics, 1)
		require.Equal(t, int64(3), got.Groups[0].Topics[0].Partitions[0].Offset)
		require.Equal(t, int64(5), got.Groups[0].Topics[0].Partitions[1].Offset)
	}
	// An empty list asks for nothing.
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Groups = []kmsg.OffsetFetchRequestGroup{fetchGroup("g")}
	fetch.Groups[0].Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	require.Empty(t, ask[*kmsg.OffsetFetchResponse](r, fetch, 9).Groups[0].Topics)
}

func TestOffsetsGoWithTheirTopic(t *testing.T) {
	r := newRig(t).lead()
	r.commit("g", "wire", 2, 5)
	gone := r.Image.Topic("wire")
	r.Delete("wire")
	r.h.Forget([]*meta.Topic{gone})
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Groups = []kmsg.OffsetFetchRequestGroup{fetchGroup("g")}
	fetch.Groups[0].Topics = nil
	require.Empty(t, ask[*kmsg.OffsetFetchResponse](r, fetch, 9).Groups[0].Topics)
}

func TestOffsetsAreDeletedUnlessSomebodyReads(t *testing.T) {
	r := newRig(t).lead()
	r.commit("g", "wire", 0, 5)
	r.join("g")
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = "g"
	row := kmsg.NewOffsetDeleteRequestTopic()
	row.Topic, row.Partitions = "wire", []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 9}}
	req.Topics = append(req.Topics, row)
	resp := ask[*kmsg.OffsetDeleteResponse](r, req, 0)
	require.Equal(t, kerr.GroupSubscribedToTopic.Code, resp.Topics[0].Partitions[0].ErrorCode)
	require.Equal(t, kerr.UnknownTopicOrPartition.Code, resp.Topics[0].Partitions[1].ErrorCode)

	r.commit("h", "wire", 0, 5)
	req.Group = "h"
	require.Zero(t, ask[*kmsg.OffsetDeleteResponse](r, req, 0).Topics[0].Partitions[0].ErrorCode)
	for group, want := range map[string]*kerr.Error{"": kerr.InvalidGroupID, "none": kerr.GroupIDNotFound} {
		req.Group = group
		resp := ask[*kmsg.OffsetDeleteResponse](r, req, 0)
		require.Equal(t, want.Code, resp.ErrorCode)
	}
}

func TestARequestWithoutOffsetsNeedsNoCoordinator(t *testing.T) {
	r := newRig(t)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = "g"
	require.Empty(t, ask[*kmsg.OffsetCommitResponse](r, req, 10).Topics)
}
