package groups

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// consumerAPIs are those of groups whose members the broker assigns partitions to.
func (h *Handlers) consumerAPIs() []protocol.API {
	return []protocol.API{
		{Key: int16(kmsg.ConsumerGroupHeartbeat), Max: 1, Submit: h.consumerHeartbeat},
		{Key: int16(kmsg.ConsumerGroupDescribe), Max: 1, Submit: h.consumerDescribe},
	}
}

// consumerHeartbeat answers ConsumerGroupHeartbeat.
func (h *Handlers) consumerHeartbeat(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.ConsumerGroupHeartbeatRequest)
	if h.withoutConsumers() {
		resp := req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
		resp.ErrorCode, _ = c.ErrorCode(kerr.UnsupportedVersion)
		return c.Answer(resp)
	}
	who := clientOf(c)
	p := coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *group.ConsumerHeartbeatPromise) {
		m.ConsumerHeartbeat(t, who, req, p)
	})
	return finish(c, p, func(resp *kmsg.ConsumerGroupHeartbeatResponse, err error) kmsg.Response {
		if err != nil {
			resp = req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
			resp.ErrorCode = code(c, err)
		} else {
			count(c, resp.ErrorCode)
		}
		resp.Version = req.Version
		return resp
	})
}

// consumerDescribe answers ConsumerGroupDescribe.
func (h *Handlers) consumerDescribe(c *protocol.Call) protocol.Finish {
	type row = kmsg.ConsumerGroupDescribeResponseGroup
	req := c.Request.(*kmsg.ConsumerGroupDescribeRequest)
	promises := make([]*coordinator.Promise[row], len(req.Groups))
	disabled := h.withoutConsumers()
	for i, id := range req.Groups {
		if disabled {
			promises[i] = coordinator.NewPromise[row]()
			promises[i].Fail(kerr.UnsupportedVersion)
			continue
		}
		promises[i] = coordinator.Ask(h.shard(id), func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[row]) {
			m.DescribeConsumer(t, id, p)
		})
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
		resp.Groups = slices.Grow(resp.Groups, len(promises))
		for i, p := range promises {
			got, err := p.Wait(c.Ctx, c.Draining())
			if err != nil {
				got = kmsg.NewConsumerGroupDescribeResponseGroup()
				got.Group, got.ErrorCode = req.Groups[i], code(c, err)
			} else {
				count(c, got.ErrorCode)
			}
			if req.IncludeAuthorizedOperations && got.ErrorCode == 0 {
				got.AuthorizedOperations = groupOperations
			}
			resp.Groups = append(resp.Groups, got)
		}
		return protocol.Reply{Msg: resp}
	}
}
