package groups

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

// joinGroup answers JoinGroup once the group's rebalance is over.
func (h *Handlers) joinGroup(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.JoinGroupRequest)
	for i := range req.Protocols {
		req.Protocols[i].Metadata = append([]byte{}, req.Protocols[i].Metadata...)
	}
	who := clientOf(c)
	c.MayPark()
	p := coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[*kmsg.JoinGroupResponse]) {
		m.JoinGroup(t, who, req, p)
	})
	return finish(c, p, func(resp *kmsg.JoinGroupResponse, err error) kmsg.Response {
		if err != nil {
			resp = req.ResponseKind().(*kmsg.JoinGroupResponse)
			resp.ErrorCode = code(c, err)
		} else {
			count(c, resp.ErrorCode)
		}
		resp.Version = req.Version
		if resp.Protocol == nil && req.Version < nullProtocol {
			resp.Protocol = new(string)
		}
		return resp
	})
}

// nullProtocol is the version of JoinGroup from which there may be no protocol.
const nullProtocol = 7

// namesProtocol is the version of SyncGroup from which members say what they take
// for agreed.
const namesProtocol = 5

// syncGroup answers SyncGroup once the leader has assigned.
func (h *Handlers) syncGroup(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.SyncGroupRequest)
	if req.Version >= namesProtocol && (req.ProtocolType == nil || req.Protocol == nil) {
		resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
		resp.ErrorCode, _ = c.ErrorCode(kerr.InconsistentGroupProtocol)
		return c.Answer(resp)
	}
	for i := range req.GroupAssignment {
		req.GroupAssignment[i].MemberAssignment = append([]byte{}, req.GroupAssignment[i].MemberAssignment...)
	}
	who := clientOf(c)
	c.MayPark()
	p := coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[*kmsg.SyncGroupResponse]) {
		m.SyncGroup(t, who, req, p)
	})
	return finish(c, p, func(resp *kmsg.SyncGroupResponse, err error) kmsg.Response {
		if err != nil {
			resp = req.ResponseKind().(*kmsg.SyncGroupResponse)
			resp.ErrorCode = code(c, err)
		} else {
			count(c, resp.ErrorCode)
		}
		resp.Version = req.Version
		return resp
	})
}

// heartbeat answers Heartbeat.
func (h *Handlers) heartbeat(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.HeartbeatRequest)
	p := coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[int16]) {
		m.Heartbeat(t, req, p)
	})
	return finish(c, p, func(n int16, err error) kmsg.Response {
		resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
		if resp.ErrorCode = n; err != nil {
			resp.ErrorCode = code(c, err)
		} else {
			count(c, n)
		}
		return resp
	})
}

// manyMembers is the version of LeaveGroup that names many.
const manyMembers = 3

// leaveGroup answers LeaveGroup.
func (h *Handlers) leaveGroup(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.LeaveGroupRequest)
	members := req.Members
	if req.Version < manyMembers {
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = req.MemberID
		members = []kmsg.LeaveGroupRequestMember{one}
	}
	who := clientOf(c)
	p := coordinator.Ask(h.shard(req.Group), func(m *group.Machine, t *coordinator.Turn, p *coordinator.Promise[group.Left]) {
		m.LeaveGroup(t, who, req.Group, members, p)
	})
	return finish(c, p, func(left group.Left, err error) kmsg.Response {
		resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
		if resp.ErrorCode = left.Code; err != nil {
			resp.ErrorCode = code(c, err)
			return resp
		}
		count(c, left.Code)
		count(c, left.Members...)
		if req.Version < manyMembers {
			if left.Code == 0 {
				resp.ErrorCode = left.Members[0]
			}
			return resp
		}
		for i, n := range left.Members {
			row := kmsg.NewLeaveGroupResponseMember()
			row.MemberID, row.InstanceID, row.ErrorCode = members[i].MemberID, members[i].InstanceID, n
			resp.Members = append(resp.Members, row)
		}
		return resp
	})
}
