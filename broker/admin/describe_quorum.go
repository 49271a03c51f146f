package admin

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// describeQuorum shows tools that were made for KRaft where the metadata
// stands: every living broker follows etcd, so each is shown as a voter that
// has seen this broker's revision, the first of them as the leader.
func (h *Handlers) describeQuorum(c *protocol.Call, req *kmsg.DescribeQuorumRequest, answer *kmsg.DescribeQuorumResponse) {
	t := newTopology(h.opts.Controller.Image(), c.Conn.Listener)
	answer.ErrorMessage = new(string)
	found := false
	for _, asked := range req.Topics {
		row := kmsg.NewDescribeQuorumResponseTopic()
		row.Topic = asked.Topic
		for _, p := range asked.Partitions {
			part := kmsg.NewDescribeQuorumResponseTopicPartition()
			part.Partition, part.ErrorMessage = p.Partition, new(string)
			if asked.Topic == clusterMetadata && p.Partition == 0 && len(t.living) > 0 {
				found = true
				fillQuorum(&part, t, req.Version)
			} else {
				part.LeaderID, part.LeaderEpoch, part.HighWatermark = 0, 0, 0
				part.ErrorCode, part.ErrorMessage = code(c, refuse(kerr.UnknownTopicOrPartition, "there is no such metadata partition"))
			}
			row.Partitions = append(row.Partitions, part)
		}
		answer.Topics = append(answer.Topics, row)
	}
	if !found {
		return
	}
	for _, b := range t.living {
		answer.Nodes = append(answer.Nodes, quorumNode(b, t.ends[b.ID]))
	}
}

func fillQuorum(part *kmsg.DescribeQuorumResponseTopicPartition, t *topology, version int16) {
	leader := t.living[0]
	part.LeaderID, part.LeaderEpoch = leader.ID, t.image.Openings(leader.ID)
	part.HighWatermark = t.image.Revision()
	now := time.Now().UnixMilli()
	for _, b := range t.living {
		v := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
		v.ReplicaID, v.LogEndOffset = b.ID, t.image.Revision()
		v.LastFetchTimestamp, v.LastCaughtUpTimestamp = -1, -1
		if version > 0 {
			v.LastFetchTimestamp, v.LastCaughtUpTimestamp = now, now
		}
		part.CurrentVoters = append(part.CurrentVoters, v)
	}
}

func quorumNode(b *meta.Broker, e meta.Endpoint) kmsg.DescribeQuorumResponseNode {
	node := kmsg.NewDescribeQuorumResponseNode()
	node.NodeID = b.ID
	l := kmsg.NewDescribeQuorumResponseNodeListener()
	l.Name, l.Host, l.Port = e.Name, e.Host, uint16(e.Port)
	node.Listeners = append(node.Listeners, l)
	return node
}
