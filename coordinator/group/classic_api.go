package group

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// JoinGroup serves a JoinGroup. The answer comes when the group's rebalance is
// over; whoever waits for it may give up at any time.
func (m *Machine) JoinGroup(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, p *joinPromise) {
	s := m.settings()
	session := time.Duration(req.SessionTimeoutMillis) * time.Millisecond
	err := checkGroupID(req.Group)
	if err == nil {
		err = checkJoinStrings(req)
	}
	switch {
	case err != nil:
		refuseJoin(p, req.MemberID, err)
		return
	case session < s.MinSessionTimeout || session > s.MaxSessionTimeout:
		refuseJoin(p, req.MemberID, kerr.InvalidSessionTimeout)
		return
	}
	g := m.groups[req.Group]
	if g == nil {
		if req.MemberID != "" {
			refuseJoin(p, req.MemberID, kerr.UnknownMemberID)
			return
		}
		created := m.newClassic(req.Group)
		created.since = t.Now()
		created.write(t)
		m.groups[req.Group], g = created, created
	}
	g.join(t, c, req, p)
}

// SyncGroup serves a SyncGroup.
func (m *Machine) SyncGroup(t *coordinator.Turn, c Client, req *kmsg.SyncGroupRequest, p *syncPromise) {
	g, err := m.named(req.Group)
	if err != nil {
		refuseSync(p, err)
		return
	}
	g.sync(t, c, req, p)
}

// Heartbeat serves a Heartbeat. It tells of nothing that is not committed, so it
// waits for nothing.
func (m *Machine) Heartbeat(t *coordinator.Turn, req *kmsg.HeartbeatRequest, p *coordinator.Promise[int16]) {
	g, err := m.named(req.Group)
	if err == nil {
		err = g.heartbeat(t, req)
	}
	p.Keep(codeOf(err))
}

// Left is the answer to a LeaveGroup: a code for the whole, and one for each
// member.
type Left struct {
	Code    int16
	Members []int16
}

// LeaveGroup serves a LeaveGroup.
func (m *Machine) LeaveGroup(t *coordinator.Turn, c Client, id string, members []kmsg.LeaveGroupRequestMember, p *coordinator.Promise[Left]) {
	if id == "" {
		p.Keep(Left{Code: kerr.InvalidGroupID.Code})
		return
	}
	left := Left{Members: make([]int16, len(members))}
	g := m.groups[id]
	if g == nil {
		for i := range members {
			left.Members[i] = kerr.UnknownMemberID.Code
		}
		p.Keep(left)
		return
	}
	for i, err := range g.leave(t, c, members) {
		left.Members[i] = codeOf(err)
	}
	coordinator.Deliver(t, p, left)
}

// named is a group that must be there for its members to ask for something.
func (m *Machine) named(id string) (group, error) {
	if id == "" {
		return nil, kerr.InvalidGroupID
	}
	if g, ok := m.groups[id]; ok {
		return g, nil
	}
	return nil, kerr.UnknownMemberID
}

// newID is the random part of a member's id: a UUID.
func (m *Machine) newID() string {
	if m.opts.NewID != nil {
		return m.opts.NewID()
	}
	var u [16]byte
	_, _ = rand.Read(u[:]) // It never fails.
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	b := make([]byte, 0, 36)
	for i, n := range []int{4, 2, 2, 2, 6} {
		if i > 0 {
			b = append(b, '-')
		}
		at := [...]int{0, 4, 6, 8, 10}[i]
		b = hex.AppendEncode(b, u[at:at+n])
	}
	return string(b)
}
