package group

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxString is the longest string that is taken: keys of records say a length in
	// an int16, and so do old versions of requests and answers.
	maxString = math.MaxInt16
	// maxOwner is the longest that may be part of a member's id, which is made of the
	// client's or the instance's id, a dash and a UUID.
	maxOwner = maxString - 1 - 36
	// maxNames bounds the names that are held once for all that mention them. It is
	// but a saving of memory: it begins anew when there are too many, whoever made
	// them up.
	maxNames = 100_000
)

// tooLong tells whether one of the strings cannot be kept.
func tooLong(strings ...string) bool {
	for _, s := range strings {
		if len(s) > maxString {
			return true
		}
	}
	return false
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// checkGroupID refuses the ids of which no group can be made.
func checkGroupID(id string) error {
	if id == "" || tooLong(id) {
		return kerr.InvalidGroupID
	}
	return nil
}

// checkJoinStrings refuses what a JoinGroup says at too great length.
func checkJoinStrings(req *kmsg.JoinGroupRequest) error {
	if tooLong(req.MemberID, req.ProtocolType) || len(deref(req.InstanceID)) > maxOwner {
		return kerr.InvalidRequest
	}
	for i := range req.Protocols {
		if tooLong(req.Protocols[i].Name) {
			return kerr.InvalidRequest
		}
	}
	return nil
}

// clientPart is the part of a member's id that says whose it is.
func clientPart(client string) string { return client[:min(len(client), maxOwner)] }

// bytesOf is what a member says under all of its protocols.
func bytesOf(protocols []memberProtocol) (n int) {
	for i := range protocols {
		n += len(protocols[i].name) + len(protocols[i].metadata)
	}
	return n
}

// joinBytes is what a JoinGroup says under all of its protocols.
func joinBytes(req *kmsg.JoinGroupRequest) (n int) {
	for i := range req.Protocols {
		n += len(req.Protocols[i].Name) + len(req.Protocols[i].Metadata)
	}
	return n
}

// fits tells whether the group stays small enough when a member says so much. The
// whole group is one record, and one answer to its leader.
func (g *Classic) fits(req *kmsg.JoinGroupRequest) bool {
	before := 0
	if x := g.members[g.memberOf(req)]; x != nil {
		before = bytesOf(x.protocols)
	}
	limit := g.m.settings().MaxBytes
	return limit <= 0 || g.bytes-before+joinBytes(req) <= limit
}

// checkNames refuses a subscription that is too large for a record.
func (m *Machine) checkNames(names []string) error {
	sum := 0
	for _, name := range names {
		sum += len(name)
	}
	if limit := m.settings().MaxBytes; limit > 0 && sum > limit {
		return refuse(kerr.InvalidRequest, "SubscribedTopicNames of %d bytes are too large.", sum)
	}
	return nil
}

// fits tells whether the group could become a classic one when a member of the
// classic protocol says so much.
func (g *Consumer) fits(req *kmsg.JoinGroupRequest) bool {
	limit := g.m.settings().MaxBytes
	if limit <= 0 {
		return true
	}
	sum := joinBytes(req)
	for _, x := range g.members {
		same := *x.id == req.MemberID || req.InstanceID != nil && x.instance != nil && *x.instance == *req.InstanceID
		if x.classic != nil && !same {
			sum += bytesOf(x.classic.protocols)
		}
	}
	return sum <= limit
}
