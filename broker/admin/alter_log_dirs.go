package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// alterReplicaLogDirs moves replicas between directories. There is one, so a
// replica of this broker is in it already.
func (h *Handlers) alterReplicaLogDirs(c *protocol.Call, req *kmsg.AlterReplicaLogDirsRequest, answer *kmsg.AlterReplicaLogDirsResponse) {
	type replica struct {
		topic     string
		partition int32
	}
	wanted := map[replica]string{} // The last one counts.
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			for _, i := range t.Partitions {
				wanted[replica{t.Topic, i}] = d.Dir
			}
		}
	}
	image := h.opts.Controller.Image()
	rows := map[string]int{}
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			for _, i := range t.Partitions {
				dir, ok := wanted[replica{t.Topic, i}]
				if !ok {
					continue // Its row is there.
				}
				delete(wanted, replica{t.Topic, i})
				at, ok := rows[t.Topic]
				if !ok {
					at = len(answer.Topics)
					rows[t.Topic] = at
					row := kmsg.NewAlterReplicaLogDirsResponseTopic()
					row.Topic = t.Topic
					answer.Topics = append(answer.Topics, row)
				}
				p := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				p.Partition = i
				p.ErrorCode, _ = code(c, h.moveReplica(image, dir, t.Topic, i))
				answer.Topics[at].Partitions = append(answer.Topics[at].Partitions, p)
			}
		}
	}
}

// moveReplica judges one move.
func (h *Handlers) moveReplica(image *meta.Image, dir, name string, i int32) error {
	if len(name) > meta.MaxTopicName {
		return kerr.InvalidTopicException
	}
	if dir != h.opts.LogDir {
		return kerr.LogDirNotFound
	}
	topic := image.Topic(name)
	if topic == nil || i < 0 || int(i) >= len(topic.Partitions) {
		return kerr.UnknownTopicOrPartition
	}
	if _, _, here := h.opts.Size(topic.ID, i); !here {
		return kerr.NotLeaderForPartition
	}
	return nil
}
