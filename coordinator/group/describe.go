package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// Listed is a group in a list.
type Listed struct {
	ID, ProtocolType, State string
	Kind                    Kind
}

// List tells of all groups, in the order in which Kafka's tables have them: there
// are tests of clients that expect it.
func (m *Machine) List(t *coordinator.Turn, p *coordinator.Promise[[]Listed]) {
	list := make([]Listed, 0, len(m.groups))
	for _, id := range slices.SortedFunc(maps.Keys(m.groups), byTableOrder) {
		g := m.groups[id]
		list = append(list, Listed{ID: id, ProtocolType: g.protocolType(), State: g.state(), Kind: g.kind()})
	}
	coordinator.Deliver(t, p, list)
}

// byTableOrder is the order of a hash table whose slots are the highest bits of the
// hash multiplied by the golden ratio.
func byTableOrder(a, b string) int {
	const ratio = 0x9E3779B9
	return cmp.Or(cmp.Compare(uint32(coordinator.Hash(a))*ratio, uint32(coordinator.Hash(b))*ratio), strings.Compare(a, b))
}

// tellsUnknown is the version of DescribeGroups from which a group that is not
// there is an error.
const tellsUnknown = 6

// DescribeClassic tells all about a classic group.
func (m *Machine) DescribeClassic(t *coordinator.Turn, c Client, id string, p *coordinator.Promise[kmsg.DescribeGroupsResponseGroup]) {
	row := kmsg.NewDescribeGroupsResponseGroup()
	row.Group = id
	g, ok := m.groups[id].(*Classic)
	if !ok {
		row.State = stateDead.String()
		if c.Version >= tellsUnknown {
			text := fmt.Sprintf("Group %s not found.", id)
			if m.groups[id] != nil {
				text = fmt.Sprintf("Group %s is not a classic group.", id)
			}
			row.ErrorCode, row.ErrorMessage = kerr.GroupIDNotFound.Code, &text
		}
		coordinator.Deliver(t, p, row)
		return
	}
	row.State, row.ProtocolType = g.state(), g.kindOfMembers
	if g.st == stateStable {
		row.Protocol = g.protocolName()
	}
	for _, x := range g.order {
		r := kmsg.NewDescribeGroupsResponseGroupMember()
		r.MemberID, r.InstanceID, r.ClientID, r.ClientHost = x.id, x.instance, x.clientID, x.host
		r.ProtocolMetadata, r.MemberAssignment = []byte{}, []byte{}
		if g.st == stateStable {
			r.ProtocolMetadata, r.MemberAssignment = x.metadataFor(g.protocolName()), x.assignment
		}
		row.Members = append(row.Members, r)
	}
	coordinator.Deliver(t, p, row)
}
