package group

import (
	"github.com/twmb/franz-go/pkg/kbin"

	"github.com/mainstem/mainstem/coordinator"
)

// writeEpoch appends the group's epoch.
func (g *Consumer) writeEpoch(t *coordinator.Turn) {
	b := kbin.AppendInt32(newValue(), g.epoch)
	if g.hash == 0 {
		b = append(b, noTags)
	} else {
		b = appendTag(b, kbin.AppendInt64(nil, g.hash))
	}
	if g.oldRecords {
		t.Append(consumerKey(keyOldTopics, g.id), nil)
		g.oldRecords = false
	}
	t.Append(consumerKey(keyGroupEpoch, g.id), b)
}

// writeTargetEpoch appends the epoch that the target is for.
func (g *Consumer) writeTargetEpoch(t *coordinator.Turn) {
	b := kbin.AppendInt32(newValue(), g.targetEpoch)
	if g.assignedAt == 0 {
		b = append(b, noTags)
	} else {
		b = appendTag(b, kbin.AppendInt64(nil, g.assignedAt))
	}
	t.Append(consumerKey(keyTargetEpoch, g.id), b)
}

// writeMember appends what a member says of itself.
func (g *Consumer) writeMember(t *coordinator.Turn, x *consumerMember) {
	b := kbin.AppendCompactNullableString(newValue(), x.instance)
	b = kbin.AppendCompactNullableString(b, x.rack)
	b = kbin.AppendCompactString(b, x.clientID)
	b = kbin.AppendCompactString(b, x.host)
	b = appendNames(b, x.names)
	b = kbin.AppendCompactNullableString(b, x.regex)
	b = kbin.AppendInt32(b, int32(x.rebalance.Milliseconds()))
	b = kbin.AppendCompactNullableString(b, x.assignor)
	if x.classic == nil {
		b = append(b, noTags)
	} else {
		b = appendTag(b, appendClassic(x.classic))
	}
	t.Append(consumerKey(keyMember, g.id, *x.id), b)
}

// writeTarget appends what a member is meant to have.
func (g *Consumer) writeTarget(t *coordinator.Turn, x *consumerMember) {
	b := appendSet(newValue(), x.target, nil)
	t.Append(consumerKey(keyTarget, g.id, *x.id), append(b, noTags))
}

// writeCurrent appends how far a member has got.
func (g *Consumer) writeCurrent(t *coordinator.Turn, x *consumerMember) {
	b := kbin.AppendInt32(newValue(), x.epoch)
	b = kbin.AppendInt32(b, x.previous)
	b = append(b, byte(x.state))
	since := func(at partitionID) int32 { return g.owners[at].since }
	b = appendSet(b, x.assigned, since)
	b = appendSet(b, x.revoking, since)
	t.Append(consumerKey(keyCurrent, g.id, *x.id), append(b, noTags))
}

// writePattern appends which topics match an expression.
func (g *Consumer) writePattern(t *coordinator.Turn, expression string, p *pattern) {
	b := appendNames(newValue(), p.topics)
	b = kbin.AppendInt64(b, p.version)
	b = kbin.AppendInt64(b, p.at)
	t.Append(patternKey(g.id, expression), append(b, noTags))
}

// buryMember appends the tombstones of a member's records.
func (g *Consumer) buryMember(t *coordinator.Turn, x *consumerMember) {
	for _, kind := range [...]int16{keyCurrent, keyTarget, keyMember} {
		t.Append(consumerKey(kind, g.id, *x.id), nil)
	}
}

// bury appends the tombstones of all of the group's records; the one that the group
// begins with is the last.
func (g *Consumer) bury(t *coordinator.Turn) {
	list := g.sortedMembers()
	for _, kind := range [...]int16{keyCurrent, keyTarget} {
		for _, x := range list {
			t.Append(consumerKey(kind, g.id, *x.id), nil)
		}
	}
	t.Append(consumerKey(keyTargetEpoch, g.id), nil)
	for _, x := range list {
		t.Append(consumerKey(keyMember, g.id, *x.id), nil)
	}
	for expression := range g.patterns {
		t.Append(patternKey(g.id, expression), nil)
	}
	if g.oldRecords {
		t.Append(consumerKey(keyOldTopics, g.id), nil)
	}
	t.Append(consumerKey(keyGroupEpoch, g.id), nil)
}
