package admin

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

func (h *Handlers) createPartitions(c *protocol.Call, req *kmsg.CreatePartitionsRequest, answer *kmsg.CreatePartitionsResponse) {
	image := h.opts.Controller.Image()
	ctx, cancel := deadline(c, req.TimeoutMillis)
	defer cancel()
	q := h.mutations(c, growStrictSince)
	times := map[string]int{}
	total := 0
	for _, t := range req.Topics {
		times[t.Topic]++
		if topic := image.Topic(t.Topic); topic != nil {
			total += max(0, int(t.Count)-len(topic.Partitions))
		}
	}
	for _, t := range req.Topics {
		n := times[t.Topic]
		if n == 0 {
			continue // Its row is there.
		}
		times[t.Topic] = 0
		var err error
		switch {
		case n > 1:
			err = refuse(kerr.InvalidRequest, "the topic name is in the request more than once")
		case total >= maxPartitions:
			err = refuse(kerr.PolicyViolation, "the request asks for %d more partitions; one request may ask for %d at most", total, maxPartitions-1)
		default:
			err = h.addPartitions(ctx, image, t, &q, req.ValidateOnly)
		}
		row := kmsg.NewCreatePartitionsResponseTopic()
		row.Topic = t.Topic
		if row.ErrorCode, row.ErrorMessage = code(c, err); errors.Is(err, kerr.UnknownTopicOrPartition) {
			row.ErrorMessage = nil // As Kafka answers: the code says it.
		}
		answer.Topics = append(answer.Topics, row)
	}
	c.Throttle(q.Throttle())
}

func (h *Handlers) addPartitions(ctx context.Context, image *meta.Image, t kmsg.CreatePartitionsRequestTopic, q *quota.Mutations, validateOnly bool) error {
	topic := image.Topic(t.Topic)
	if topic == nil {
		return refuse(kerr.UnknownTopicOrPartition, "topic %q does not exist", clip(t.Topic))
	}
	have, replicas := len(topic.Partitions), len(topic.Partitions[0].Replicas)
	more := int(t.Count) - have
	switch {
	case more == 0:
		return refuse(kerr.InvalidPartitions, "Topic already has %d partition(s).", have)
	case more < 0:
		return refuse(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", t.Topic, have, t.Count)
	}
	for i := range topic.Partitions {
		if p := &topic.Partitions[i]; len(p.Adding)+len(p.Removing) > 0 {
			return refuse(kerr.ReassignmentInProgress, "partition %d of topic %q is being reassigned; try again when that is done", i, t.Topic)
		}
	}
	assignments, err := extend(image, t, more, have, replicas)
	if err == nil && !q.Take(more) {
		err = errThrottled
	}
	if err != nil || validateOnly {
		return err
	}
	if err := h.opts.Controller.CreatePartitions(ctx, topic.ID, have, assignments); err != nil {
		return err
	}
	h.opts.Logger.Info("partitions added", zap.String("topic", t.Topic), zap.Int("from", have), zap.Int32("to", t.Count))
	return nil
}

// extend places more partitions of a topic, or takes the client's placement.
func extend(image *meta.Image, t kmsg.CreatePartitionsRequestTopic, more, have, replicas int) ([][]int32, error) {
	if t.Assignment == nil {
		return place(candidates(image), more, replicas, image.PartitionCount())
	}
	if len(t.Assignment) != more {
		return nil, refuse(kerr.InvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", more, len(t.Assignment))
	}
	assignments := make([][]int32, more)
	for i, a := range t.Assignment {
		if err := checkReplicas(image, a.Replicas, replicas); err != nil {
			return nil, err
		}
		assignments[i] = a.Replicas
	}
	return assignments, nil
}
