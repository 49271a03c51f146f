package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

type syncPromise = coordinator.Promise[*kmsg.SyncGroupResponse]

// sync serves a SyncGroup.
func (g *Classic) sync(t *coordinator.Turn, _ Client, req *kmsg.SyncGroupRequest, p *syncPromise) {
	x, err := g.find(req.MemberID, req.InstanceID)
	switch {
	case err != nil:
	case req.Generation != g.generation:
		err = kerr.IllegalGeneration
	case req.ProtocolType != nil && *req.ProtocolType != g.kindOfMembers,
		req.Protocol != nil && *req.Protocol != g.protocolName():
		err = kerr.InconsistentGroupProtocol
	case g.st == statePreparing:
		err = kerr.RebalanceInProgress
	case g.st == stateEmpty:
		err = kerr.UnknownMemberID
	}
	if err != nil {
		refuseSync(p, err)
		return
	}
	delete(g.unsynced, x.id)
	if g.st == stateStable {
		if len(g.unsynced) == 0 {
			t.Stop(&g.syncTimer)
		}
		g.touch(t, x, x.session)
		coordinator.Deliver(t, p, g.synced(x))
		return
	}
	if g.leader == x.id && !g.mayAssign(req.GroupAssignment) {
		// Kafka says the same of a record that is too large.
		refuseSync(p, kerr.UnknownServerError)
		return
	}
	if x.sync != nil {
		refuseSync(x.sync, kerr.RebalanceInProgress)
	}
	x.sync = p
	if g.leader == x.id {
		g.assign(t, req.GroupAssignment)
	}
}

// mayAssign tells whether the members' assignments are small enough to be kept.
func (g *Classic) mayAssign(assignments []kmsg.SyncGroupRequestGroupAssignment) bool {
	sum := 0
	for i := range assignments {
		if g.members[assignments[i].MemberID] != nil {
			sum += len(assignments[i].MemberAssignment)
		}
	}
	limit := g.m.settings().MaxBytes
	return limit <= 0 || sum <= limit
}

// assign takes over what the leader has decided; who it has left out gets nothing.
func (g *Classic) assign(t *coordinator.Turn, assignments []kmsg.SyncGroupRequestGroupAssignment) {
	for _, x := range g.order {
		x.assignment = nil
	}
	for i := range assignments {
		if x := g.members[assignments[i].MemberID]; x != nil {
			x.assignment = append([]byte{}, assignments[i].MemberAssignment...)
		}
	}
	g.moveTo(t, stateStable)
	g.write(t)
	for _, x := range g.order {
		if x.sync != nil {
			g.touch(t, x, x.session)
			coordinator.Deliver(t, x.sync, g.synced(x))
			x.sync = nil
		}
	}
	if len(g.unsynced) == 0 {
		t.Stop(&g.syncTimer)
	}
}

// synced is the answer to a member's SyncGroup.
func (g *Classic) synced(x *member) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	kind, protocol := g.kindOfMembers, g.protocolName()
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &kind, &protocol, x.assignment
	return resp
}

// takeBack ends a generation that was not completed. What members were assigned
// before is not forgotten: they may hold it all the time, if they are cooperative.
func (g *Classic) takeBack(err error) {
	for _, x := range g.order {
		g.answerSyncError(x, err)
	}
}

func (g *Classic) answerSyncError(x *member, err error) {
	if x.sync != nil {
		refuseSync(x.sync, err)
		x.sync = nil
	}
}

func refuseSync(p *syncPromise, err error) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ErrorCode = codeOf(err)
	p.Keep(resp)
}

// heartbeat serves a Heartbeat.
func (g *Classic) heartbeat(t *coordinator.Turn, req *kmsg.HeartbeatRequest) error {
	x, err := g.find(req.MemberID, req.InstanceID)
	if err != nil {
		return err
	}
	if req.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	switch g.st {
	case statePreparing:
		g.touch(t, x, x.session)
		return kerr.RebalanceInProgress
	case stateCompleting, stateStable:
		g.touch(t, x, x.session)
		return nil
	}
	return kerr.UnknownMemberID
}

// leave takes members out, as far as they are there, and gives each its answer.
func (g *Classic) leave(t *coordinator.Turn, _ Client, members []kmsg.LeaveGroupRequestMember) []error {
	errs := make([]error, len(members))
	before := len(g.members)
	for i := range members {
		errs[i] = g.leaveOne(t, &members[i])
	}
	switch {
	case len(g.members) < before:
		g.membersLeft(t)
	case g.st == statePreparing:
		g.tryComplete(t)
	}
	return errs
}

// leaveOne takes one member out. An administrator names a static member by its
// instance id alone.
func (g *Classic) leaveOne(t *coordinator.Turn, who *kmsg.LeaveGroupRequestMember) error {
	id := who.MemberID
	if id == "" {
		if who.InstanceID == nil {
			return kerr.UnknownMemberID
		}
		owner, ok := g.static[*who.InstanceID]
		if !ok {
			return kerr.UnknownMemberID
		}
		id = owner
	} else if g.dropExpected(t, id) {
		return nil
	}
	x, err := g.find(id, who.InstanceID)
	if err != nil {
		return err
	}
	g.remove(t, x)
	return nil
}
