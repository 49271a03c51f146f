package groups

import (
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// describeGroups answers DescribeGroups.
func (h *Handlers) describeGroups(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.DescribeGroupsRequest)
	who := clientOf(c)
	promises := make([]*coordinator.Promise[kmsg.DescribeGroupsResponseGroup], len(req.Groups))
	for i, id := range req.Groups {
		promises[i] = coordinator.Ask(h.shard(id),
			func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[kmsg.DescribeGroupsResponseGroup]) {
				m.DescribeClassic(t, who, id, p)
			})
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
		for i, p := range promises {
			row, err := p.Wait(c.Ctx, c.Draining())
			if err != nil {
				row = kmsg.NewDescribeGroupsResponseGroup()
				row.Group, row.ErrorCode = req.Groups[i], code(c, err)
			} else {
				count(c, row.ErrorCode)
			}
			if req.IncludeAuthorizedOperations && row.ErrorCode == 0 {
				row.AuthorizedOperations = groupOperations
			}
			resp.Groups = append(resp.Groups, row)
		}
		return protocol.Reply{Msg: resp}
	}
}

// listGroups answers ListGroups: the groups that this broker coordinates.
func (h *Handlers) listGroups(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.ListGroupsRequest)
	var promises []*coordinator.Promise[[]group.Listed]
	for _, s := range h.runtime.Shards() {
		promises = append(promises, coordinator.Ask(s,
			func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[[]group.Listed]) { m.List(t, p) }))
	}
	return func() protocol.Reply {
		resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
		for _, p := range promises {
			list, err := p.Wait(c.Ctx, c.Draining())
			if err != nil && !errors.Is(err, kerr.NotCoordinator) {
				resp.ErrorCode, resp.Groups = code(c, err), nil
				break
			}
			for i := range list {
				if chosen(req.StatesFilter, list[i].State) && chosen(req.TypesFilter, string(list[i].Kind)) {
					row := kmsg.NewListGroupsResponseGroup()
					row.Group, row.ProtocolType = list[i].ID, list[i].ProtocolType
					row.GroupState, row.GroupType = list[i].State, string(list[i].Kind)
					resp.Groups = append(resp.Groups, row)
				}
			}
		}
		return protocol.Reply{Msg: resp}
	}
}

// chosen tells whether a filter lets something through; an empty one lets all.
func chosen(filter []string, s string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, s) })
}
