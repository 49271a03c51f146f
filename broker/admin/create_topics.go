package admin

import (
	"crypto/rand"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// maxPartitions is the number of partitions that one request may not reach, so
// that a typing error does not take the cluster down.
const maxPartitions = 10_000

// topicPlan is one topic of a request on its way.
type topicPlan struct {
	controller.NewTopic
	err error
}

func (h *Handlers) createTopics(c *protocol.Call, req *kmsg.CreateTopicsRequest, answer *kmsg.CreateTopicsResponse) {
	image := h.opts.Controller.Image()
	plans := h.planTopics(image, req)
	q := h.mutations(c, createStrictSince)
	for i := range plans {
		if p := &plans[i]; p.err == nil && !q.Take(len(p.Assignments)) {
			p.err = errThrottled
		}
	}
	if req.ValidateOnly {
		for i := range plans {
			plans[i].ID = newTopicID()
		}
	} else {
		ctx, cancel := deadline(c, req.TimeoutMillis)
		defer cancel()
		h.commitTopics(ctx, plans)
	}
	c.Throttle(q.Throttle())
	for i := range plans {
		answer.Topics = append(answer.Topics, h.createdRow(c, req.Version, &plans[i]))
	}
}

// planTopics makes one plan for each name of the request.
func (h *Handlers) planTopics(image *meta.Image, req *kmsg.CreateTopicsRequest) []topicPlan {
	times := map[string]int{}
	total := 0
	for _, t := range req.Topics {
		times[t.Topic]++
		total += h.partitionsAsked(t)
	}
	var plans []topicPlan
	claimed := map[string]string{} // Folded names of this request.
	for _, t := range req.Topics {
		n := times[t.Topic]
		if n == 0 {
			continue // Its row is there.
		}
		times[t.Topic] = 0
		p := topicPlan{NewTopic: controller.NewTopic{Name: t.Topic, Internal: isInternal(t.Topic)}}
		switch {
		case n > 1:
			p.err = refuse(kerr.InvalidRequest, "the topic name is in the request more than once")
		case total >= maxPartitions:
			p.err = refuse(kerr.PolicyViolation, "the request asks for %d partitions; one request may ask for %d at most", total, maxPartitions-1)
		default:
			p.err = h.planTopic(image, t, claimed, &p.NewTopic)
		}
		plans = append(plans, p)
	}
	return plans
}

func (h *Handlers) partitionsAsked(t kmsg.CreateTopicsRequestTopic) int {
	switch {
	case len(t.ReplicaAssignment) > 0:
		return len(t.ReplicaAssignment)
	case t.NumPartitions == -1:
		return h.opts.Live.Values().NumPartitions
	}
	return int(max(0, t.NumPartitions))
}

// planTopic checks all about one topic and places its partitions.
func (h *Handlers) planTopic(image *meta.Image, t kmsg.CreateTopicsRequestTopic, claimed map[string]string, p *controller.NewTopic) error {
	if err := checkNewName(image, t.Topic, claimed); err != nil {
		return err
	}
	var err error
	if p.Configs, err = h.newTopicConfigs(t.Configs); err != nil {
		return err
	}
	if p.Assignments, err = h.assign(image, t); err != nil {
		return err
	}
	claimed[meta.Fold(t.Topic)] = t.Topic
	return nil
}

// checkNewName judges the name of a topic to be made.
func checkNewName(image *meta.Image, name string, claimed map[string]string) error {
	if err := checkTopicName(name); err != nil {
		return err
	}
	if name == clusterMetadata {
		return refuse(kerr.InvalidRequest, "Creation of internal topic %s is prohibited.", name)
	}
	if image.Topic(name) != nil {
		return refuse(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	if o := image.Colliding(name); o != nil {
		return refuse(kerr.InvalidTopicException, "Topic '%s' collides with existing topic: %s", name, o.Name)
	}
	if o, ok := claimed[meta.Fold(name)]; ok {
		return refuse(kerr.InvalidTopicException, "Topic '%s' collides with topic of the same request: %s", name, o)
	}
	return nil
}

func (h *Handlers) newTopicConfigs(configs []kmsg.CreateTopicsRequestTopicConfig) (map[string]string, error) {
	if len(configs) == 0 {
		return nil, nil
	}
	set := make(map[string]string, len(configs))
	for _, e := range configs {
		if e.Value == nil {
			return nil, refuse(kerr.InvalidConfig, "config %q has no value", clip(e.Name))
		}
		set[e.Name] = *e.Value
	}
	if err := h.opts.Live.ValidateTopic(set); err != nil {
		return nil, invalid(kerr.InvalidConfig, err)
	}
	return set, nil
}

// assign places the partitions of a new topic, or takes the client's placement.
func (h *Handlers) assign(image *meta.Image, t kmsg.CreateTopicsRequestTopic) ([][]int32, error) {
	if len(t.ReplicaAssignment) > 0 {
		return takeAssignment(image, t)
	}
	partitions, replicas := int(t.NumPartitions), int(t.ReplicationFactor)
	switch {
	case replicas < -1 || replicas == 0:
		return nil, refuse(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	case partitions < -1 || partitions == 0:
		return nil, refuse(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	if partitions == -1 {
		partitions = h.opts.Live.Values().NumPartitions
	}
	if replicas == -1 {
		replicas = h.opts.Live.Values().DefaultReplicationFactor
	}
	return place(candidates(image), partitions, replicas, image.PartitionCount())
}

func takeAssignment(image *meta.Image, t kmsg.CreateTopicsRequestTopic) ([][]int32, error) {
	const refused = "A manual partition assignment was specified, but %s was not set to -1."
	switch {
	case t.ReplicationFactor != -1:
		return nil, refuse(kerr.InvalidRequest, refused, "replication factor")
	case t.NumPartitions != -1:
		return nil, refuse(kerr.InvalidRequest, refused, "numPartitions")
	}
	assignments := make([][]int32, len(t.ReplicaAssignment))
	want := 0
	for _, a := range t.ReplicaAssignment {
		if a.Partition < 0 || int(a.Partition) >= len(assignments) || assignments[a.Partition] != nil {
			return nil, refuse(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence, each once")
		}
		if err := checkReplicas(image, a.Replicas, want); err != nil {
			return nil, err
		}
		want = len(a.Replicas)
		assignments[a.Partition] = a.Replicas
	}
	return assignments, nil
}

// createdRow is the row of one topic in the answer.
func (h *Handlers) createdRow(c *protocol.Call, version int16, p *topicPlan) kmsg.CreateTopicsResponseTopic {
	row := kmsg.NewCreateTopicsResponseTopic()
	row.Topic = p.Name
	row.NumPartitions, row.ReplicationFactor = -1, -1
	row.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
	if p.err != nil {
		row.ErrorCode, row.ErrorMessage = code(c, p.err)
		return row
	}
	row.TopicID = p.ID
	row.NumPartitions = int32(len(p.Assignments))
	row.ReplicationFactor = int16(len(p.Assignments[0]))
	if version >= 5 {
		row.Configs = h.opts.Live.CreatedTopic(p.Configs)
	}
	return row
}

// newTopicID makes up an id as the controller does, for answers that create nothing.
func newTopicID() (id meta.TopicID) {
	_, _ = rand.Read(id[:]) // It never fails.
	return id
}
