package admin

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/controller/placement"
	"github.com/mainstem/mainstem/protocol"
)

// alterPartitionReassignments moves partitions to other replicas, or takes such a
// move back.
func (h *Handlers) alterPartitionReassignments(c *protocol.Call, req *kmsg.AlterPartitionAssignmentsRequest, answer *kmsg.AlterPartitionAssignmentsResponse) {
	ctx, cancel := deadline(c, req.TimeoutMillis)
	defer cancel()
	if answer.AllowReplicationFactorChange = req.Version == 0 || req.AllowReplicationFactorChange; len(req.Topics) == 0 {
		answer.ErrorMessage = new(string) // As Kafka answers.
		return
	}
	m := mover{h: h, mayResize: answer.AllowReplicationFactorChange}
	image := h.opts.Controller.Image()
	for _, t := range req.Topics {
		if topic := image.Topic(t.Topic); topic != nil {
			for _, p := range t.Partitions {
				if hasPartition(topic, p.Partition) {
					m.refs = append(m.refs, controller.PartitionRef{Topic: topic.ID, Partition: p.Partition})
					m.targets = append(m.targets, p.Replicas)
				}
			}
		}
	}
	errs := h.opts.Controller.ChangePartitions(ctx, m.refs, m.move)
	for _, t := range req.Topics {
		row := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		row.Topic = t.Topic
		topic := image.Topic(t.Topic)
		for _, asked := range t.Partitions {
			var err error
			switch {
			case topic == nil:
				err = refuse(kerr.UnknownTopicOrPartition, "topic %q does not exist", clip(t.Topic))
			case !hasPartition(topic, asked.Partition):
				err = refuse(kerr.UnknownTopicOrPartition, "topic %q has no partition %d", t.Topic, asked.Partition)
			default:
				err, errs = errs[0], errs[1:]
				h.logMove(t.Topic, asked, err)
			}
			p := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			p.Partition = asked.Partition
			if p.ErrorCode, p.ErrorMessage = code(c, err); errors.Is(err, kerr.NoReassignmentInProgress) {
				p.ErrorMessage = nil // As Kafka answers: the code says it.
			}
			row.Partitions = append(row.Partitions, p)
		}
		answer.Topics = append(answer.Topics, row)
	}
}

func (h *Handlers) logMove(topic string, asked kmsg.AlterPartitionAssignmentsRequestTopicPartition, err error) {
	if err == nil {
		h.opts.Logger.Info("reassignment accepted", zap.String("topic", topic), zap.Int32("partition", asked.Partition),
			zap.Int32s("to", asked.Replicas), zap.Bool("cancelled", asked.Replicas == nil))
	}
}

// mover are the moves of one request.
type mover struct {
	h         *Handlers
	refs      []controller.PartitionRef
	targets   [][]int32 // nil: the move that is under way is taken back
	mayResize bool
}

// move is the partition's next state on the way to its target.
func (m *mover) move(n int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
	target := m.targets[n]
	if target == nil {
		return m.revert(n, image, p)
	}
	if err := checkTarget(image, target); err != nil {
		return p, err
	}
	if size := placement.Size(&p); !m.mayResize && size != len(target) {
		return p, refuse(kerr.InvalidReplicationFactor, "the partition has %d replica(s) and would have %d, which the request does not allow", size, len(target))
	}
	return placement.Reassign(image, p, target), nil
}

func (m *mover) revert(n int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
	next, lossy, err := placement.Revert(image, p)
	if err != nil || !lossy {
		return next, err
	}
	if topic := image.TopicByID(m.refs[n].Topic); m.h.opts.Live.Topic(topic.Configs).UncleanLeaderElection {
		return next, nil
	}
	return p, refuse(kerr.InvalidReplicaAssignment, "no replica that the partition had before is in sync: to go back to them would be an unclean election")
}

// checkTarget judges the replicas that a partition is to have. They need not be alive: it is moved when they are.
func checkTarget(image *meta.Image, target []int32) error {
	if len(target) == 0 {
		return refuse(kerr.InvalidReplicaAssignment, "the list of replicas is empty")
	}
	for i, id := range target {
		if image.Broker(id) == nil {
			return refuse(kerr.InvalidReplicaAssignment, "broker %d is not registered", id)
		}
		if slices.Contains(target[:i], id) {
			return refuse(kerr.InvalidReplicaAssignment, "broker %d is in the list of replicas twice", id)
		}
	}
	return nil
}
