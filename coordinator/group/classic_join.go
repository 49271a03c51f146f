package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// newMemberTimeout bounds how long a new member waits in its first JoinGroup: it
// has no id to heartbeat with, and may be gone.
const newMemberTimeout = 5 * time.Minute

// needsMemberID is the version of JoinGroup from which a dynamic member asks for
// an id before it joins (KIP-394).
const needsMemberID = 4

type joinPromise = coordinator.Promise[*kmsg.JoinGroupResponse]

// join serves a JoinGroup.
func (g *Classic) join(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, p *joinPromise) {
	if !g.hasRoom(req.MemberID) {
		if x := g.members[req.MemberID]; x != nil {
			g.remove(t, x)
			g.membersLeft(t)
		}
		refuseJoin(p, "", kerr.GroupMaxSizeReached)
		return
	}
	if !g.fits(req) {
		refuseJoin(p, req.MemberID, kerr.GroupMaxSizeReached)
		return
	}
	protocols := protocolsOf(req)
	if !g.agrees(req.ProtocolType, protocols) {
		refuseJoin(p, req.MemberID, kerr.InconsistentGroupProtocol)
		return
	}
	if req.MemberID == "" {
		g.joinNew(t, c, req, protocols, p)
		return
	}
	g.joinAgain(t, c, req, protocols, p)
}

// hasRoom tells whether the group is small enough for the member. While members
// rejoin, those that have count: a group that is too large loses the last ones.
func (g *Classic) hasRoom(memberID string) bool {
	x := g.members[memberID]
	limit := g.m.settings().MaxSize
	switch g.st {
	case statePreparing:
		return x != nil && x.join != nil || g.joining < limit
	case stateCompleting, stateStable:
		return x != nil || len(g.members) < limit
	}
	return true
}

// memberOf is the id of the member in whose place the request's will be, "" if it
// is a new one.
func (g *Classic) memberOf(req *kmsg.JoinGroupRequest) string {
	if req.MemberID == "" && req.InstanceID != nil {
		return g.static[*req.InstanceID]
	}
	return req.MemberID
}

// joinNew lets somebody in who has no member id yet.
func (g *Classic) joinNew(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol, p *joinPromise) {
	if req.InstanceID != nil {
		id := *req.InstanceID + "-" + g.m.newID()
		if old, ok := g.static[*req.InstanceID]; ok {
			g.replaceStatic(t, g.members[old], id, c, req, protocols, p)
			return
		}
		g.admit(t, g.newMember(id, c, req, protocols), req.ProtocolType, p)
		return
	}
	id := clientPart(c.ID) + "-" + g.m.newID()
	if c.Version >= needsMemberID {
		g.expect(t, id, time.Duration(req.SessionTimeoutMillis)*time.Millisecond)
		resp := joinResponse(id)
		resp.ErrorCode = kerr.MemberIDRequired.Code
		coordinator.Deliver(t, p, resp)
		return
	}
	g.admit(t, g.newMember(id, c, req, protocols), req.ProtocolType, p)
}

// joinAgain serves a member that has an id.
func (g *Classic) joinAgain(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol, p *joinPromise) {
	if _, ok := g.expected[req.MemberID]; ok && req.InstanceID == nil {
		g.dropExpected(t, req.MemberID)
		g.admit(t, g.newMember(req.MemberID, c, req, protocols), req.ProtocolType, p)
		return
	}
	x, err := g.find(req.MemberID, req.InstanceID)
	if err != nil {
		refuseJoin(p, req.MemberID, err)
		return
	}
	same := x.knows(protocols)
	switch {
	case g.st == stateEmpty:
		refuseJoin(p, req.MemberID, kerr.UnknownMemberID)
	case g.st == stateCompleting && same, g.st == stateStable && same && g.leader != x.id:
		// It has missed the answer, or wants to know the generation: nothing changes.
		coordinator.Deliver(t, p, g.joined(x, g.st == stateCompleting))
	default:
		g.rejoin(x, c, req, protocols, p)
		g.memberJoined(t)
	}
}

// admit takes a new member in.
func (g *Classic) admit(t *coordinator.Turn, x *member, protocolType string, p *joinPromise) {
	if g.st == statePreparing && g.before == stateEmpty {
		g.grown = true
	}
	if len(g.members) == 0 {
		g.kindOfMembers = protocolType
	}
	x.fresh = true
	g.add(x)
	g.park(x, p)
	g.touch(t, x, newMemberTimeout)
	g.memberJoined(t)
}

// rejoin takes over what a member says anew, and parks it.
func (g *Classic) rejoin(x *member, c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol, p *joinPromise) {
	g.vote(x, -1)
	x.update(c, req, protocols)
	g.vote(x, 1)
	g.park(x, p)
}

// park has the member wait for the end of the rebalance. A JoinGroup that waited
// before was given up by its client; it is not answered twice.
func (g *Classic) park(x *member, p *joinPromise) {
	if x.join == nil {
		g.joining++
	} else {
		refuseJoin(x.join, x.id, kerr.RebalanceInProgress)
	}
	x.join = p
}

// replaceStatic gives a static member that comes without its id, after a restart,
// a new one. As long as the group stays with its protocol nobody else notices.
func (g *Classic) replaceStatic(t *coordinator.Turn, x *member, id string, c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol, p *joinPromise) {
	leader := g.leader
	g.rename(x, id)
	g.rejoin(x, c, req, protocols, p)
	g.touch(t, x, x.session)
	if g.st != stateStable {
		g.memberJoined(t)
		return
	}
	if next := g.choose(); next == nil || *next != g.protocolName() {
		g.memberJoined(t)
		return
	}
	g.write(t)
	leads := g.leader == id
	resp := g.joined(x, leads && x.skipsAssignment)
	resp.SkipAssignment = leads && x.skipsAssignment
	if !x.skipsAssignment {
		// It must not take itself for the leader: it would assign again.
		resp.LeaderID = leader
	}
	g.unpark(x)
	coordinator.Deliver(t, p, resp)
}

// rename gives a static member another id. Whoever waits under the old one is
// another instance with the same name, and is fenced.
func (g *Classic) rename(x *member, id string) {
	g.answerJoinError(x, kerr.FencedInstanceID)
	g.answerSyncError(x, kerr.FencedInstanceID)
	if g.leader == x.id {
		g.leader = id
	}
	if _, ok := g.unsynced[x.id]; ok {
		delete(g.unsynced, x.id)
		g.unsynced[id] = struct{}{}
	}
	delete(g.members, x.id)
	x.id = id
	g.members[id] = x
	g.static[*x.instance] = id
}

// expect notes an id that was handed out; it lasts for a session.
func (g *Classic) expect(t *coordinator.Turn, id string, session time.Duration) {
	if g.expected == nil {
		g.expected = make(map[string]*coordinator.Timer)
	}
	timer := &coordinator.Timer{Fire: func(t *coordinator.Turn) {
		delete(g.expected, id)
		if g.st == statePreparing {
			g.tryComplete(t)
		}
	}}
	g.expected[id] = timer
	t.Set(timer, t.Now().Add(session))
}

// dropExpected forgets an id that was handed out, and tells whether it was.
func (g *Classic) dropExpected(t *coordinator.Turn, id string) bool {
	timer, ok := g.expected[id]
	if ok {
		if t != nil {
			t.Stop(timer)
		}
		delete(g.expected, id)
	}
	return ok
}

// joined is the answer to a member's JoinGroup in this generation. Only who is to
// assign partitions is told the members.
func (g *Classic) joined(x *member, withMembers bool) *kmsg.JoinGroupResponse {
	resp := joinResponse(x.id)
	resp.Generation = g.generation
	kind, protocol := g.kindOfMembers, g.protocolName()
	resp.ProtocolType, resp.Protocol = &kind, &protocol
	resp.LeaderID = g.leader
	if !withMembers || g.leader != x.id {
		return resp
	}
	resp.Members = make([]kmsg.JoinGroupResponseMember, 0, len(g.order))
	for _, y := range g.order {
		m := kmsg.NewJoinGroupResponseMember()
		m.MemberID, m.InstanceID, m.ProtocolMetadata = y.id, y.instance, y.metadataFor(protocol)
		resp.Members = append(resp.Members, m)
	}
	return resp
}

// unpark takes the member out of those that wait.
func (g *Classic) unpark(x *member) {
	if x.join != nil {
		x.join = nil
		g.joining--
	}
}

func (g *Classic) answerJoinError(x *member, err error) {
	if x.join != nil {
		refuseJoin(x.join, x.id, err)
		g.unpark(x)
	}
}

func joinResponse(memberID string) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.MemberID = memberID
	return resp
}

// refuseJoin answers with an error.
func refuseJoin(p *joinPromise, memberID string, err error) {
	resp := joinResponse(memberID)
	resp.ErrorCode = codeOf(err)
	p.Keep(resp)
}

// protocolsOf copies what a member says: the request's memory is not kept.
func protocolsOf(req *kmsg.JoinGroupRequest) []memberProtocol {
	out := make([]memberProtocol, len(req.Protocols))
	for i := range req.Protocols {
		out[i] = memberProtocol{req.Protocols[i].Name, append([]byte{}, req.Protocols[i].Metadata...)}
	}
	return out
}
