package group

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/mainstem/mainstem/coordinator"
)

// Member is a member of a group of any kind, and where it reads.
type Member struct {
	Group, State   string
	Kind           Kind
	ID, Instance   string
	ClientID, Host string
	Reads          []Reading
}

// Reading is a partition that a member reads.
type Reading struct {
	Topic     string
	Partition int32
	// Committed is the group's offset, -1 if there is none.
	Committed int64
}

// Members tells of the members of all groups, by group.
func (m *Machine) Members(t *coordinator.Turn, p *coordinator.Promise[[]Member]) {
	var all []Member
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		for _, x := range g.seen() {
			x.Group, x.Kind, x.State = id, g.kind(), g.state()
			for i := range x.Reads {
				r := &x.Reads[i]
				r.Committed = -1
				if c, ok := m.offsets[id].get(r.Topic, r.Partition); ok {
					r.Committed = c.offset
				}
			}
			all = append(all, x)
		}
	}
	coordinator.Deliver(t, p, all)
}

// seen are the members of a classic group; what those of other protocols than
// "consumer" read is theirs to know.
func (g *Classic) seen() []Member {
	out := make([]Member, len(g.order))
	for i, x := range g.order {
		out[i] = Member{ID: x.id, ClientID: x.clientID, Host: x.host}
		if x.instance != nil {
			out[i].Instance = *x.instance
		}
		if g.kindOfMembers == consumerType && g.st == stateStable {
			out[i].Reads = readings(x.assignment)
		}
	}
	return out
}

// readings reads a consumer's assignment: an int16 version, an array of topics with
// an array of partitions each, and what is of no interest here. Of garbage it gives
// what comes before it.
func readings(b []byte) (out []Reading) {
	if len(b) < 6 {
		return nil
	}
	topics, rest := int32(binary.BigEndian.Uint32(b[2:])), b[6:]
	for range topics {
		name, r, err := takeString(rest)
		if err != nil || len(r) < 4 {
			return out
		}
		n := int32(binary.BigEndian.Uint32(r))
		if rest = r[4:]; n < 0 || int(n) > len(rest)/4 {
			return out
		}
		for range n {
			out = append(out, Reading{Topic: string(name), Partition: int32(binary.BigEndian.Uint32(rest))})
			rest = rest[4:]
		}
	}
	return out
}
