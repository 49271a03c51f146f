package group

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// groupValueVersion is the version of a classic group's value that is written.
const groupValueVersion = 3

// write appends the group as it is: its members with their assignments, or none.
func (g *Classic) write(t *coordinator.Turn) {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupValueVersion
	v.ProtocolType = g.kindOfMembers
	v.Generation = g.generation
	v.Protocol = g.protocol
	if g.leader != "" {
		v.Leader = &g.leader
	}
	v.CurrentStateTimestamp = millisOf(g.since)
	v.Members = make([]kmsg.GroupMetadataValueMember, 0, len(g.order))
	for _, x := range g.order {
		m := kmsg.NewGroupMetadataValueMember()
		m.MemberID, m.InstanceID, m.ClientID, m.ClientHost = x.id, x.instance, x.clientID, x.host
		m.RebalanceTimeoutMillis = int32(x.rebalance.Milliseconds())
		m.SessionTimeoutMillis = int32(x.session.Milliseconds())
		m.Subscription, m.Assignment = x.metadataFor(g.protocolName()), x.assignment
		v.Members = append(v.Members, m)
	}
	t.Append(groupKey(g.id), v.AppendTo(nil))
}

// groupKey is the key of a classic group's record.
func groupKey(id string) []byte {
	k := kmsg.GroupMetadataKey{Version: keyClassic, Group: id}
	return k.AppendTo(nil)
}

// replayClassic takes in a classic group's record.
func (m *Machine) replayClassic(key, value []byte) error {
	id, rest, err := takeString(key[2:])
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("key of a classic group: %w", errMalformed)
	}
	if value == nil {
		if _, ok := m.groups[string(id)].(*Classic); ok {
			delete(m.groups, string(id))
		}
		return nil
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return fmt.Errorf("value of a classic group: %w", err)
	}
	g := m.newClassic(string(id))
	g.kindOfMembers, g.generation, g.protocol = v.ProtocolType, v.Generation, v.Protocol
	if v.CurrentStateTimestamp >= 0 {
		g.since = time.UnixMilli(v.CurrentStateTimestamp)
	}
	for i := range v.Members {
		g.add(g.replayMember(&v.Members[i]))
	}
	if v.Leader != nil {
		g.leader = *v.Leader
	}
	if len(g.members) > 0 {
		g.st, g.before = stateStable, stateStable
	}
	g.readTopics()
	m.groups[g.id] = g
	return nil
}

// replayMember makes a member of what a record says.
func (g *Classic) replayMember(r *kmsg.GroupMetadataValueMember) *member {
	x := &member{
		id: r.MemberID, instance: r.InstanceID, clientID: r.ClientID, host: r.ClientHost,
		session:    time.Duration(r.SessionTimeoutMillis) * time.Millisecond,
		rebalance:  time.Duration(r.RebalanceTimeoutMillis) * time.Millisecond,
		protocols:  []memberProtocol{{g.protocolName(), append([]byte{}, r.Subscription...)}},
		assignment: append([]byte{}, r.Assignment...),
	}
	if r.RebalanceTimeoutMillis < 0 {
		x.rebalance = x.session
	}
	x.timer.Fire = func(t *coordinator.Turn) { g.sessionTime(t, x) }
	return x
}

// readTopics finds out what topics the members are subscribed to, as far as they
// say it in the way of consumers.
func (g *Classic) readTopics() {
	g.topics = nil
	if g.kindOfMembers != consumerType {
		return
	}
	topics := make(map[string]struct{})
	for _, x := range g.order {
		if !addSubscription(topics, x.metadataFor(g.protocolName())) {
			return
		}
	}
	g.topics = topics
}

// addSubscription adds the topics of a consumer's subscription: an int16 version,
// an array of names, and what is of no interest here.
func addSubscription(topics map[string]struct{}, metadata []byte) bool {
	if len(metadata) < 6 || int16(binary.BigEndian.Uint16(metadata)) < 0 {
		return false
	}
	n := int32(binary.BigEndian.Uint32(metadata[2:]))
	rest := metadata[6:]
	if n < 0 || int(n) > len(rest)/2 {
		return false
	}
	for range n {
		name, r, err := takeString(rest)
		if err != nil {
			return false
		}
		topics[string(name)], rest = struct{}{}, r
	}
	return true
}

func millisOf(at time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return at.UnixMilli()
}
