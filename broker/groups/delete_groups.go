package groups

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// deleteGroups answers DeleteGroups.
func (h *Handlers) deleteGroups(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.DeleteGroupsRequest)
	promises := make([]*coordinator.Promise[int16], len(req.Groups))
	for i, id := range req.Groups {
		promises[i] = coordinator.Ask(h.shard(id),
			func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[int16]) { m.DeleteGroup(t, id, p) })
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
		for i, p := range promises {
			row := kmsg.NewDeleteGroupsResponseGroup()
			row.Group = req.Groups[i]
			n, err := p.Wait(c.Ctx, c.Draining())
			if row.ErrorCode = n; err != nil {
				row.ErrorCode = code(c, err)
			} else {
				count(c, n)
			}
			resp.Groups = append(resp.Groups, row)
		}
		return protocol.Reply{Msg: resp}
	}
}

// offsetDelete answers OffsetDelete.
func (h *Handlers) offsetDelete(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.OffsetDeleteRequest)
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	if req.Group == "" {
		resp.ErrorCode, _ = c.ErrorCode(kerr.InvalidGroupID)
		return c.Answer(resp)
	}
	var list []group.TopicPartitions
	var rows []int // of each topic in list: its place in the answer
	for i := range req.Topics {
		t, err := h.named(0, req.Topics[i].Topic, group.TopicID{})
		row := kmsg.NewOffsetDeleteResponseTopic()
		row.Topic = req.Topics[i].Topic
		known := group.TopicPartitions{Topic: row.Topic}
		for _, rp := range req.Topics[i].Partitions {
			p := kmsg.NewOffsetDeleteResponseTopicPartition()
			p.Partition = rp.Partition
			if refused := exists(t, rp.Partition, err); refused != nil {
				p.ErrorCode, _ = c.ErrorCode(refused)
			} else {
				known.Partitions = append(known.Partitions, rp.Partition)
			}
			row.Partitions = append(row.Partitions, p)
		}
		if len(known.Partitions) > 0 {
			list, rows = append(list, known), append(rows, len(resp.Topics))
		}
		resp.Topics = append(resp.Topics, row)
	}
	p := coordinator.Ask(h.shard(req.Group),
		func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[group.OffsetsDeleted]) {
			m.DeleteOffsets(t, req.Group, list, p)
		})
	return finish(c, p, func(got group.OffsetsDeleted, err error) kmsg.Response {
		if err != nil {
			got.Code = code(c, err)
		} else {
			count(c, got.Code)
			count(c, got.Topics...)
		}
		if resp.ErrorCode = got.Code; got.Code != 0 {
			resp.Topics = nil
			return resp
		}
		for i, n := range got.Topics {
			for j := range resp.Topics[rows[i]].Partitions {
				if p := &resp.Topics[rows[i]].Partitions[j]; p.ErrorCode == 0 {
					p.ErrorCode = n
				}
			}
		}
		return resp
	})
}
