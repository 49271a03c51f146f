package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

func (h *Handlers) metadata(c *protocol.Call, req *kmsg.MetadataRequest, answer *kmsg.MetadataResponse) {
	if asksIllegalIDs(req) {
		refuseMetadata(req, answer)
		return
	}
	t := newTopology(h.opts.Controller.Image(), c.Conn.Listener)
	answer.ControllerID = t.controller()
	id := t.image.ClusterID()
	answer.ClusterID = &id
	for _, b := range t.living {
		row := kmsg.NewMetadataResponseBroker()
		e := t.ends[b.ID]
		row.NodeID, row.Host, row.Port, row.Rack = b.ID, e.Host, e.Port, rackOf(b)
		answer.Brokers = append(answer.Brokers, row)
	}
	answer.AuthorizedOperations = notAsked
	if req.IncludeClusterAuthorizedOperations {
		answer.AuthorizedOperations = clusterOperations
	}
	m := metadataWriter{topology: t, req: req, answer: answer}
	if all := req.Topics == nil || req.Version == 0 && len(req.Topics) == 0; all {
		m.all()
	} else {
		h.creator.want(h.affordable(c, m.named(h.opts.Live.Values().AutoCreateTopics)))
	}
	for i := range answer.Topics {
		if code := answer.Topics[i].ErrorCode; code != 0 {
			c.ErrorCode(kerr.ErrorForCode(code)) // Counted.
		}
	}
}

// asksIllegalIDs finds topics without a name: before version 12 ids do not
// work, and later a topic has at least one of the two.
func asksIllegalIDs(req *kmsg.MetadataRequest) bool {
	if req.Version < 10 {
		return false
	}
	for _, t := range req.Topics {
		none := t.TopicID == meta.TopicID{}
		if req.Version < 12 && (t.Topic == nil || !none) || t.Topic == nil && none {
			return true
		}
	}
	return false
}

func refuseMetadata(req *kmsg.MetadataRequest, answer *kmsg.MetadataResponse) {
	answer.ControllerID, answer.AuthorizedOperations = -1, notAsked
	for _, t := range req.Topics {
		row := kmsg.NewMetadataResponseTopic()
		row.ErrorCode, row.TopicID, row.Topic = kerr.InvalidRequest.Code, t.TopicID, t.Topic
		if row.Topic == nil {
			row.Topic = new(string)
		}
		answer.Topics = append(answer.Topics, row)
	}
}

// metadataWriter fills in the topics of an answer.
type metadataWriter struct {
	*topology
	req    *kmsg.MetadataRequest
	answer *kmsg.MetadataResponse
}

func (m *metadataWriter) all() {
	m.answer.Topics = make([]kmsg.MetadataResponseTopic, 0, m.image.TopicCount())
	for topic := range m.image.Topics() {
		m.answer.Topics = append(m.answer.Topics, m.topic(topic))
	}
}

// named fills in the topics that were asked for, each once, and returns those
// that are to be created.
func (m *metadataWriter) named(autoCreate bool) (missing []string) {
	autoCreate = autoCreate && (m.req.Version < 4 || m.req.AllowAutoTopicCreation)
	done := make(map[meta.TopicID]bool, len(m.req.Topics))
	absent := map[string]bool{}
	for _, t := range m.req.Topics {
		topic, row := m.find(t)
		switch {
		case topic != nil:
			if !done[topic.ID] {
				done[topic.ID] = true
				m.answer.Topics = append(m.answer.Topics, m.topic(topic))
			}
		case row.Topic != nil && absent[*row.Topic], row.Topic == nil && done[row.TopicID]:
		default:
			m.answer.Topics = append(m.answer.Topics, row)
			if row.Topic == nil {
				done[row.TopicID] = true
				continue
			}
			absent[*row.Topic] = true
			if autoCreate && row.ErrorCode == kerr.UnknownTopicOrPartition.Code && m.image.Colliding(*row.Topic) == nil {
				missing = append(missing, *row.Topic)
			}
		}
	}
	return missing
}

// find looks a topic up, by id if there is one. Without a topic it returns the
// row that says so.
func (m *metadataWriter) find(t kmsg.MetadataRequestTopic) (*meta.Topic, kmsg.MetadataResponseTopic) {
	row := kmsg.NewMetadataResponseTopic()
	row.AuthorizedOperations = m.operations()
	if (t.TopicID != meta.TopicID{}) {
		row.TopicID, row.ErrorCode = t.TopicID, kerr.UnknownTopicID.Code
		return m.image.TopicByID(t.TopicID), row
	}
	name := ""
	if t.Topic != nil {
		name = *t.Topic
	}
	row.Topic, row.IsInternal, row.ErrorCode = &name, isInternal(name), kerr.UnknownTopicOrPartition.Code
	if !meta.LegalTopicName(name) {
		row.ErrorCode = kerr.InvalidTopicException.Code
	}
	return m.image.Topic(name), row
}

func (m *metadataWriter) operations() int32 {
	if m.req.IncludeTopicAuthorizedOperations {
		return topicOperations
	}
	return notAsked
}

func (m *metadataWriter) topic(t *meta.Topic) kmsg.MetadataResponseTopic {
	row := kmsg.NewMetadataResponseTopic()
	row.Topic, row.TopicID, row.IsInternal, row.AuthorizedOperations = &t.Name, t.ID, t.Internal, m.operations()
	row.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i := range t.Partitions {
		row.Partitions[i] = m.partition(int32(i), &t.Partitions[i])
	}
	return row
}

func (m *metadataWriter) partition(i int32, p *meta.Partition) kmsg.MetadataResponseTopicPartition {
	row := kmsg.NewMetadataResponseTopicPartition()
	row.Partition, row.LeaderEpoch = i, p.LeaderEpoch
	row.Replicas, row.ISR, row.OfflineReplicas = p.Replicas, p.ISR, m.offline(p)
	leader, problem := m.leader(p)
	row.Leader = leader
	if m.req.Version == 0 && len(row.OfflineReplicas) > 0 {
		// The oldest clients cannot bear a replica that is not among the brokers.
		row.Replicas, row.ISR = m.reachableOf(p.Replicas), m.reachableOf(p.ISR)
		row.ErrorCode = kerr.ReplicaNotAvailable.Code
	}
	if problem == kerr.ListenerNotFound.Code && m.req.Version < 6 {
		problem = kerr.LeaderNotAvailable.Code // Older clients do not know the other.
	}
	if problem != 0 {
		row.ErrorCode = problem
	}
	return row
}

func (t *topology) reachableOf(ids []int32) []int32 {
	var list []int32
	for _, id := range ids {
		if t.reachable(id) {
			list = append(list, id)
		}
	}
	return list
}
