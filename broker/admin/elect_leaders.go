package admin

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/controller/placement"
	"github.com/mainstem/mainstem/protocol"
)

// electLeaders gives partitions their preferred leaders, or any living one.
func (h *Handlers) electLeaders(c *protocol.Call, req *kmsg.ElectLeadersRequest, answer *kmsg.ElectLeadersResponse) {
	ctx, cancel := deadline(c, req.TimeoutMillis)
	defer cancel()
	how := placement.Preferred
	if req.Version > 0 {
		how = placement.Election(req.ElectionType)
	}
	if how != placement.Preferred && how != placement.Unclean {
		err := refuse(kerr.InvalidRequest, "election type %d is unknown", int8(how))
		answer.ErrorCode, _ = code(c, err)
		for _, t := range req.Topics {
			answer.Topics = append(answer.Topics, electedRow(t.Topic, t.Partitions, func(int32) error { return err }, c))
		}
		return
	}
	image := h.opts.Controller.Image()
	wanted := req.Topics
	if all := wanted == nil; all {
		for topic := range image.Topics() {
			wanted = append(wanted, kmsg.ElectLeadersRequestTopic{Topic: topic.Name, Partitions: needing(image, topic, how)})
		}
	}
	var refs []controller.PartitionRef
	for _, t := range wanted {
		for _, i := range t.Partitions {
			if topic := image.Topic(t.Topic); hasPartition(topic, i) {
				refs = append(refs, controller.PartitionRef{Topic: topic.ID, Partition: i})
			}
		}
	}
	errs := h.opts.Controller.ChangePartitions(ctx, refs, func(_ int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
		return placement.Elect(image, p, how)
	})
	for _, t := range wanted {
		topic := image.Topic(t.Topic)
		answer.Topics = append(answer.Topics, electedRow(t.Topic, t.Partitions, func(i int32) error {
			switch {
			case topic == nil:
				return refuse(kerr.UnknownTopicOrPartition, "topic %q does not exist", clip(t.Topic))
			case !hasPartition(topic, i):
				return refuse(kerr.UnknownTopicOrPartition, "topic %q has no partition %d", t.Topic, i)
			}
			err := errs[0]
			errs = errs[1:]
			if err == nil {
				h.opts.Logger.Info("leader elected", zap.String("topic", t.Topic), zap.Int32("partition", i))
			}
			return explained(err)
		}, c))
	}
}

// needing are the partitions of a topic that an election would say anything about but that none is needed.
func needing(image *meta.Image, topic *meta.Topic, how placement.Election) []int32 {
	var list []int32
	for i := range topic.Partitions {
		if _, err := placement.Elect(image, topic.Partitions[i], how); !errors.Is(err, kerr.ElectionNotNeeded) {
			list = append(list, int32(i))
		}
	}
	return list
}

func electedRow(name string, partitions []int32, result func(i int32) error, c *protocol.Call) kmsg.ElectLeadersResponseTopic {
	row := kmsg.NewElectLeadersResponseTopic()
	row.Topic = name
	for _, i := range partitions {
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.Partition = i
		p.ErrorCode, p.ErrorMessage = code(c, result(i))
		row.Partitions = append(row.Partitions, p)
	}
	return row
}

// explained gives the bare errors of placement a text.
func explained(err error) error {
	switch {
	case errors.Is(err, kerr.ElectionNotNeeded):
		return refuse(kerr.ElectionNotNeeded, "the partition has a leader that needs no election")
	case errors.Is(err, kerr.PreferredLeaderNotAvailable):
		return refuse(kerr.PreferredLeaderNotAvailable, "the preferred leader is not alive or not in sync")
	case errors.Is(err, kerr.EligibleLeadersNotAvailable):
		return refuse(kerr.EligibleLeadersNotAvailable, "no replica of the partition is alive")
	}
	return err
}

func hasPartition(topic *meta.Topic, i int32) bool {
	return topic != nil && i >= 0 && int(i) < len(topic.Partitions)
}
