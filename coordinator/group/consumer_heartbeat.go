package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// ConsumerHeartbeatPromise promises the answer to a ConsumerGroupHeartbeat.
type ConsumerHeartbeatPromise = coordinator.Promise[*kmsg.ConsumerGroupHeartbeatResponse]

// ownMemberID is the version of ConsumerGroupHeartbeat from which members choose
// their ids.
const ownMemberID = 1

// refusal is an error with words for the client.
type refusal struct {
	code *kerr.Error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.code }

func refuse(code *kerr.Error, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// ConsumerHeartbeat serves a ConsumerGroupHeartbeat. One that has nothing new to
// say, while nothing has changed, costs no record.
func (m *Machine) ConsumerHeartbeat(t *coordinator.Turn, c Client, req *kmsg.ConsumerGroupHeartbeatRequest, p *ConsumerHeartbeatPromise) {
	s := m.consumer(req.Group)
	err := checkHeartbeat(c, req, s)
	if err == nil {
		err = m.checkNames(req.SubscribedTopicNames)
	}
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	switch {
	case err != nil:
	case req.MemberEpoch == epochLeave || req.MemberEpoch == epochStaticLeave:
		err = m.consumerLeave(t, req, resp)
	default:
		resp.HeartbeatIntervalMillis = int32(s.HeartbeatInterval.Milliseconds())
		err = m.consumerBeat(t, c, req, s, resp)
	}
	if err != nil {
		text := err.Error()
		*resp = kmsg.NewConsumerGroupHeartbeatResponse()
		resp.ErrorCode, resp.ErrorMessage = codeOf(err), &text
		p.Keep(resp)
		return
	}
	coordinator.Deliver(t, p, resp)
}

// checkHeartbeat tells what is wrong with a request by itself.
func checkHeartbeat(c Client, req *kmsg.ConsumerGroupHeartbeatRequest, s *ConsumerSettings) error {
	empty := func(p *string) bool { return p != nil && strings.TrimSpace(*p) == "" }
	bad := kerr.InvalidRequest
	switch {
	case empty(&req.Group):
		return refuse(bad, "GroupId can't be empty.")
	case c.Version >= ownMemberID && empty(&req.MemberID), req.MemberEpoch != epochJoin && empty(&req.MemberID):
		return refuse(bad, "MemberId can't be empty.")
	case empty(req.InstanceID):
		return refuse(bad, "InstanceId can't be empty.")
	case tooLong(req.Group, req.MemberID, deref(req.InstanceID)):
		return refuse(bad, "GroupId, MemberId or InstanceId is too long.")
	case empty(req.RackID):
		return refuse(bad, "RackId can't be empty.")
	case req.MemberEpoch < epochStaticLeave:
		return refuse(bad, "MemberEpoch is invalid.")
	case req.MemberEpoch == epochStaticLeave && req.InstanceID == nil:
		return refuse(bad, "InstanceId can't be null.")
	}
	if req.MemberEpoch == epochJoin {
		switch {
		case req.RebalanceTimeoutMillis == -1:
			return refuse(bad, "RebalanceTimeoutMs must be provided in first request.")
		case req.Topics == nil || len(req.Topics) > 0:
			return refuse(bad, "TopicPartitions must be empty when (re-)joining.")
		case req.SubscribedTopicNames == nil && req.SubscribedTopicRegex == nil:
			return refuse(bad, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
		}
	}
	if req.ServerAssignor != nil && !slices.Contains(s.Assignors, *req.ServerAssignor) {
		return refuse(kerr.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.",
			*req.ServerAssignor, strings.Join(s.Assignors, ", "))
	}
	return nil
}

// consumerBeat serves a heartbeat of a member that joins or stays.
func (m *Machine) consumerBeat(t *coordinator.Turn, c Client, req *kmsg.ConsumerGroupHeartbeatRequest, s *ConsumerSettings,
	resp *kmsg.ConsumerGroupHeartbeatResponse,
) error {
	g, x, err := m.beatingMember(t, req, s)
	if err != nil {
		return err
	}
	before := x.assigned
	news := g.hear(t, x, c, req)
	g.advance(t, x, s, news, ownedOf(req.Topics))
	g.touch(t, x)
	resp.MemberID, resp.MemberEpoch = x.id, x.epoch
	full := req.MemberEpoch == epochJoin || req.RebalanceTimeoutMillis != -1 && req.Topics != nil &&
		(req.SubscribedTopicNames != nil || req.SubscribedTopicRegex != nil)
	if full || !before.Equal(x.assigned) {
		resp.Assignment = assignmentOf(x.assigned)
	}
	return nil
}

// beatingMember finds who heartbeats, or lets it in.
func (m *Machine) beatingMember(t *coordinator.Turn, req *kmsg.ConsumerGroupHeartbeatRequest, s *ConsumerSettings) (*Consumer, *consumerMember, error) {
	join := req.MemberEpoch == epochJoin
	if req.SubscribedTopicRegex != nil {
		if err := m.checkPattern(req.Group, *req.SubscribedTopicRegex); err != nil {
			return nil, nil, err
		}
	}
	g, err := m.consumerGroup(t, req.Group, req.MemberID, join, s)
	if err != nil {
		return nil, nil, err
	}
	if err := g.checkRoom(req.MemberID, s); err != nil {
		return nil, nil, err
	}
	if !join {
		x, err := g.find(req.MemberID, req.InstanceID)
		if err == nil {
			err = x.checkEpoch(req)
		}
		return g, x, err
	}
	id := req.MemberID
	if id == "" {
		id = m.newUUID()
	}
	x, err := g.joining(t, id, req.InstanceID)
	return g, x, err
}

// checkRoom refuses new members of a full group.
func (g *Consumer) checkRoom(memberID string, s *ConsumerSettings) error {
	if len(g.members) >= s.MaxSize && g.members[memberID] == nil {
		return refuse(kerr.GroupMaxSizeReached, "The consumer group has reached its maximum capacity of %d members.", s.MaxSize)
	}
	return nil
}

// find is a member, checked against the instance id that it comes with.
func (g *Consumer) find(memberID string, instance *string) (*consumerMember, error) {
	if instance == nil {
		if x := g.members[memberID]; x != nil {
			return x, nil
		}
		return nil, refuse(kerr.UnknownMemberID, "Member %s is not a member of group %s.", memberID, g.id)
	}
	x := g.static[*instance]
	switch {
	case x == nil:
		return nil, refuse(kerr.UnknownMemberID, "Instance id %s is unknown.", *instance)
	case *x.id != memberID:
		return nil, refuse(kerr.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", memberID, *instance, *x.id)
	}
	return x, nil
}

// joining is the member that joins under an id: a new one, one that begins anew
// and is believed to hold nothing, or a static one that comes back, maybe with
// another id. Static members that have not left are not replaced.
func (g *Consumer) joining(t *coordinator.Turn, id string, instance *string) (*consumerMember, error) {
	if instance != nil {
		if old := g.static[*instance]; old != nil {
			if old.classic == nil && old.epoch != epochStaticLeave && *old.id != id {
				return nil, refuse(kerr.UnreleasedInstanceID, "Static member %s with instance id %s cannot join the group"+
					" because the instance id is owned by %s member.", id, *instance, *old.id)
			}
			g.takeOver(t, old, id)
			return old, nil
		}
	}
	if x := g.members[id]; x != nil {
		return x, nil
	}
	x := g.newMember(id)
	g.add(x)
	return x, nil
}

// takeOver has a static member go on under another id: it keeps what it was
// assigned, in a session of its own.
func (g *Consumer) takeOver(t *coordinator.Turn, x *consumerMember, id string) {
	if *x.id != id {
		g.buryMember(t, x)
		if other := g.members[id]; other != nil {
			g.buryMember(t, other)
			g.drop(t, other)
		}
		g.rename(x, id)
	}
	x.epoch, x.previous, x.limit = epochJoin, epochJoin, time.Time{}
	g.writeMember(t, x)
	g.writeTarget(t, x)
	g.writeCurrent(t, x)
}

// checkEpoch fences who is not in the epoch that it is believed to be in. The one
// before is accepted from a member that holds nothing but what it may: the answer
// with the new epoch was lost.
func (x *consumerMember) checkEpoch(req *kmsg.ConsumerGroupHeartbeatRequest) error {
	const fenced = "The consumer group member has a %s member epoch (%d) than the one known by the group coordinator (%d)." +
		" The member must abandon all its partitions and rejoin."
	switch {
	case req.MemberEpoch > x.epoch:
		return refuse(kerr.FencedMemberEpoch, fenced, "greater", req.MemberEpoch, x.epoch)
	case req.MemberEpoch < x.epoch:
		if req.MemberEpoch != x.previous || req.Topics == nil || len(ownedOf(req.Topics).Minus(x.assigned)) > 0 {
			return refuse(kerr.FencedMemberEpoch, fenced, "smaller", req.MemberEpoch, x.epoch)
		}
	}
	return nil
}

// hear takes over what a member says; it tells what that changes.
func (g *Consumer) hear(t *coordinator.Turn, x *consumerMember, c Client, req *kmsg.ConsumerGroupHeartbeatRequest) change {
	says := said{
		instance: req.InstanceID, rack: req.RackID, regex: req.SubscribedTopicRegex, assignor: req.ServerAssignor,
		clientID: c.ID, host: c.Host, rebalance: -1,
	}
	if req.RebalanceTimeoutMillis != -1 {
		says.rebalance = max(0, time.Duration(req.RebalanceTimeoutMillis)*time.Millisecond)
	}
	if req.SubscribedTopicNames != nil {
		says.names = sortedNames(req.SubscribedTopicNames)
	}
	return g.learn(t, x, &says)
}

// said is what a member says of itself. nil is nothing new.
type said struct {
	instance, rack, regex, assignor *string
	names                           []string
	rebalance                       time.Duration // below zero for nothing new
	clientID, host                  string
	classic                         *classicPart
}

// news tells whether there is anything new in it.
func (s *said) news(x *consumerMember) bool {
	return s.clientID != x.clientID || s.host != x.host || differs(s.instance, x.instance) || differs(s.rack, x.rack) ||
		differs(s.assignor, x.assignor) || differs(s.regex, x.regex) || s.names != nil && !slices.Equal(s.names, x.names) ||
		s.rebalance >= 0 && s.rebalance != x.rebalance || !s.classic.equal(x.classic)
}

// change is what news of a member change.
type change struct {
	// topics says that the group may read other topics from now on.
	topics bool
	// subscription says that the member is subscribed to something else.
	subscription bool
}

// learn takes over what a member says, with a record if anything is new.
func (g *Consumer) learn(t *coordinator.Turn, x *consumerMember, s *said) (news change) {
	if !s.news(x) {
		return news
	}
	news.topics = s.names != nil && !slices.Equal(s.names, x.names)
	g.unindex(x)
	old := x.pattern()
	set(&x.instance, s.instance)
	set(&x.rack, s.rack)
	set(&x.assignor, s.assignor)
	set(&x.regex, s.regex)
	if s.names != nil {
		x.names = g.m.shared(s.names)
	}
	if s.rebalance >= 0 {
		x.rebalance = s.rebalance
	}
	if x.classic != nil && s.classic == nil {
		x.limit = time.Time{} // It need not rejoin or sync any more.
	}
	x.clientID, x.host, x.classic = s.clientID, s.host, s.classic
	g.index(x)
	g.writeMember(t, x)
	news.subscription = news.topics
	if old != x.pattern() {
		g.dropPattern(t, old)
		news.subscription = true
		news.topics = g.resolveSoon(t, x.pattern()) || news.topics
	}
	return news
}

// differs tells whether something new is said.
func differs(said, known *string) bool {
	return said != nil && (known == nil || *said != *known)
}

func set(known **string, said *string) {
	if said != nil {
		*known = said
	}
}

func (c *classicPart) equal(o *classicPart) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.session == o.session && slices.EqualFunc(c.protocols, o.protocols, sameProtocol)
}

// sortedNames are the names, each once.
func sortedNames(names []string) []string {
	if slices.IsSorted(names) {
		return slices.Compact(append(make([]string, 0, len(names)), names...))
	}
	out := slices.Sorted(slices.Values(names))
	return slices.Compact(out)
}

// shared holds each name once.
func (m *Machine) shared(names []string) []string {
	for i := range names {
		names[i] = m.name(names[i])
	}
	return slices.Clip(names)
}

// ownedOf is what a member says that it holds; nil if it says nothing of it, and
// not nil if it holds nothing.
func ownedOf(topics []kmsg.ConsumerGroupHeartbeatRequestTopic) assign.Set {
	if topics == nil {
		return nil
	}
	of := make(map[TopicID][]int32, len(topics))
	for i := range topics {
		of[topics[i].TopicID] = append(of[topics[i].TopicID], topics[i].Partitions...)
	}
	if s := assign.NewSet(of); s != nil {
		return s
	}
	return assign.Set{}
}

func assignmentOf(s assign.Set) *kmsg.ConsumerGroupHeartbeatResponseAssignment {
	a := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	a.Topics = make([]kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic, len(s))
	for i := range s {
		a.Topics[i].TopicID, a.Topics[i].Partitions = s[i].Topic, s[i].Partitions
	}
	return &a
}
