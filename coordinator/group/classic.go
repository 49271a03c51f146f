package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// classicState is a state of a classic group.
type classicState uint8

// The states. A deleted group is Dead; nobody finds it any more.
const (
	stateEmpty classicState = iota
	statePreparing
	stateCompleting
	stateStable
	stateDead
)

// String is the state's name as tools show it.
func (s classicState) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// consumerType is the protocol type of members that subscribe to topics.
const consumerType = "consumer"

// Classic is a group whose members assign partitions among themselves, or one
// that nobody has joined.
type Classic struct {
	m  *Machine
	id string

	st classicState
	// before is the state that the group was in before st.
	before classicState
	// since is when st began, zero if that is not known.
	since      time.Time
	generation int32
	// kindOfMembers is the protocol type, "" as long as nobody has joined.
	kindOfMembers string
	// protocol is what the members have agreed on in this generation, nil if there
	// are none.
	protocol *string
	leader   string

	members map[string]*member
	// order has the members in the order in which they came.
	order []*member
	// static has the member ids of static members, by instance id.
	static map[string]string
	// votes counts the members that know a protocol, bytes what they say.
	votes map[string]int
	bytes int
	// joining counts the members that wait in a JoinGroup.
	joining int
	// expected are the ids that were handed out and not used yet (KIP-394).
	expected map[string]*coordinator.Timer
	// unsynced are the members whose SyncGroup has not come in this generation.
	unsynced map[string]struct{}
	// topics are those that members are subscribed to; nil if that is not known.
	topics map[string]struct{}

	// grown says that a member came since the initial delay began anew.
	grown bool
	// remaining is how long the initial delay may be extended.
	remaining time.Duration
	joinTimer coordinator.Timer
	syncTimer coordinator.Timer
}

func (m *Machine) newClassic(id string) *Classic {
	g := &Classic{m: m, id: id}
	g.joinTimer.Fire = g.joinTime
	g.syncTimer.Fire = g.syncTime
	return g
}

// member is a member of a classic group.
type member struct {
	id              string
	instance        *string
	clientID, host  string
	rebalance       time.Duration
	session         time.Duration
	protocols       []memberProtocol
	assignment      []byte
	join            *joinPromise // waits for the end of the rebalance
	sync            *syncPromise // waits for the leader's assignment
	timer           coordinator.Timer
	deadline        time.Time // of the session
	fresh           bool      // has not got through its first rebalance
	skipsAssignment bool      // understands JoinGroup's SkipAssignment
}

// memberProtocol is a protocol that a member knows, with what it tells others.
type memberProtocol struct {
	name     string
	metadata []byte
}

// metadataFor is what the member says under a protocol.
func (x *member) metadataFor(protocol string) []byte {
	for i := range x.protocols {
		if x.protocols[i].name == protocol {
			return x.protocols[i].metadata
		}
	}
	return nil
}

// knows tells whether the member said the same before.
func (x *member) knows(protocols []memberProtocol) bool {
	return slices.EqualFunc(x.protocols, protocols, func(a, b memberProtocol) bool {
		return a.name == b.name && slices.Equal(a.metadata, b.metadata)
	})
}

// moveTo changes the state.
func (g *Classic) moveTo(t *coordinator.Turn, st classicState) {
	g.before, g.st, g.since = g.st, st, t.Now()
}

// add takes a member in; the first leads.
func (g *Classic) add(x *member) {
	if g.members == nil {
		g.members = make(map[string]*member)
		g.votes = make(map[string]int)
	}
	if g.leader == "" {
		g.leader = x.id
	}
	g.members[x.id] = x
	g.order = append(g.order, x)
	if x.instance != nil {
		if g.static == nil {
			g.static = make(map[string]string)
		}
		g.static[*x.instance] = x.id
	}
	g.vote(x, 1)
	g.dropExpected(nil, x.id)
}

// vote counts the member's protocols, or takes them out of the count.
func (g *Classic) vote(x *member, by int) {
	g.bytes += by * bytesOf(x.protocols)
	for i := range x.protocols {
		name := x.protocols[i].name
		if g.votes[name] += by; g.votes[name] <= 0 {
			delete(g.votes, name)
		}
	}
}

// remove takes a member out. A JoinGroup of it that waits is answered: its sender
// may join again.
func (g *Classic) remove(t *coordinator.Turn, x *member) {
	t.Stop(&x.timer)
	g.answerJoinError(x, kerr.UnknownMemberID)
	g.answerSyncError(x, kerr.UnknownMemberID)
	delete(g.members, x.id)
	g.order = slices.Delete(g.order, slices.Index(g.order, x), slices.Index(g.order, x)+1)
	if x.instance != nil && g.static[*x.instance] == x.id {
		delete(g.static, *x.instance)
	}
	g.vote(x, -1)
	delete(g.unsynced, x.id)
	if g.leader == x.id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0].id
		}
	}
}

// find is the member of an id, checked against the instance id that it came with.
func (g *Classic) find(memberID string, instance *string) (*member, error) {
	if instance != nil {
		switch owner, ok := g.static[*instance]; {
		case !ok:
			return nil, kerr.UnknownMemberID
		case owner != memberID:
			return nil, kerr.FencedInstanceID
		}
	}
	x := g.members[memberID]
	if x == nil {
		return nil, kerr.UnknownMemberID
	}
	return x, nil
}

// agrees tells whether a member with these protocols could be in the group.
func (g *Classic) agrees(protocolType string, protocols []memberProtocol) bool {
	if g.st == stateEmpty {
		return protocolType != "" && len(protocols) > 0
	}
	if protocolType != g.kindOfMembers {
		return false
	}
	return slices.ContainsFunc(protocols, func(p memberProtocol) bool { return g.votes[p.name] == len(g.members) })
}

// choose is the protocol of the next generation: of those that all members know,
// the one that most name first. A tie goes to the one that was named earlier.
func (g *Classic) choose() *string {
	var names []string
	votes := make(map[string]int)
	for _, x := range g.order {
		for i := range x.protocols {
			if name := x.protocols[i].name; g.votes[name] == len(g.members) {
				if votes[name] == 0 {
					names = append(names, name)
				}
				votes[name]++
				break
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	best := names[0]
	for _, name := range names[1:] {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return &best
}

// rebalanceTimeout is how long a rebalance waits: the longest that a member allows.
func (g *Classic) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for _, x := range g.order {
		longest = max(longest, x.rebalance)
	}
	return longest
}

// protocolName is the protocol of this generation, "" if there is none.
func (g *Classic) protocolName() string {
	if g.protocol == nil {
		return ""
	}
	return *g.protocol
}

// touch begins the member's session anew.
func (g *Classic) touch(t *coordinator.Turn, x *member, session time.Duration) {
	x.deadline = t.Now().Add(session)
	// A timer that goes off too early is set again then: heartbeats move the
	// deadline only.
	if !x.timer.IsSet() || x.timer.At().After(x.deadline) {
		t.Set(&x.timer, x.deadline)
	}
}

// newMember makes a member of what a JoinGroup says.
func (g *Classic) newMember(id string, c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol) *member {
	x := &member{id: id, instance: req.InstanceID, clientID: c.ID, host: c.Host}
	x.timer.Fire = func(t *coordinator.Turn) { g.sessionTime(t, x) }
	x.update(c, req, protocols)
	return x
}

// update takes over what a JoinGroup says anew.
func (x *member) update(c Client, req *kmsg.JoinGroupRequest, protocols []memberProtocol) {
	x.session = time.Duration(req.SessionTimeoutMillis) * time.Millisecond
	x.rebalance = time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond
	if c.Version == 0 {
		x.rebalance = x.session
	}
	x.protocols = protocols
	x.skipsAssignment = c.Version >= 9
}
