package group

import (
	"slices"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// Codes promises an error code for each of a request's offsets, in their order.
type Codes = coordinator.Promise[[]int16]

// Offset is an offset that is to be committed.
type Offset struct {
	Topic     string
	TopicID   TopicID
	Partition int32
	Offset    int64
	Epoch     int32 // the leader epoch, -1 for none
	Metadata  *string
}

func (o *Offset) place() place { return place{o.Topic, o.Partition} }

// at is the offset as it is kept.
func (o *Offset) at(now, expires int64) committed {
	c := committed{offset: o.Offset, at: now, expires: expires, topicID: o.TopicID, epoch: o.Epoch}
	if o.Metadata != nil {
		c.metadata = *o.Metadata
	}
	return c
}

// requiresKnownGroup is the version of OffsetCommit from which a member of a group
// that is not there is told so.
const requiresKnownGroup = 9

// CommitOffsets serves an OffsetCommit of offsets whose partitions are known to
// exist, and answers with a code for each.
func (m *Machine) CommitOffsets(t *coordinator.Turn, c Client, req *kmsg.OffsetCommitRequest, list []Offset, p *Codes) {
	_, known := m.groups[req.Group]
	g, err := m.committingGroup(c, req)
	by := commitBy{memberID: req.MemberID, instanceID: req.InstanceID, epoch: req.Generation, version: c.Version}
	if err == nil {
		err = g.checkCommit(t, by)
	}
	if err != nil {
		p.Keep(allCodes(list, err))
		return
	}
	now, expires := t.NowMillis(), int64(-1)
	if req.RetentionTimeMillis >= 0 {
		expires = now + req.RetentionTimeMillis
	}
	codes := m.checkOffsets(list)
	checkEach(g, by, list, codes)
	if !known && !slices.Contains(codes, 0) {
		delete(m.groups, req.Group) // Nothing is kept for it.
	}
	for i := range list {
		if codes[i] == 0 {
			at, offset := list[i].place(), list[i].at(now, expires)
			t.Append(offsetKey(req.Group, at), offset.value())
			m.supersede(req.Group, at, 0)
			m.put(req.Group, at, offset)
		}
	}
	coordinator.Deliver(t, p, codes)
}

// committingGroup is the group that offsets are committed for. Who is no member
// may commit for a group that is not there: it becomes a place for offsets.
func (m *Machine) committingGroup(c Client, req *kmsg.OffsetCommitRequest) (group, error) {
	if g, ok := m.groups[req.Group]; ok {
		return g, nil
	}
	switch {
	case tooLong(req.Group):
		return nil, kerr.InvalidGroupID
	case req.Generation < 0:
		g := m.newClassic(req.Group)
		m.groups[req.Group] = g
		return g, nil
	case c.Version >= requiresKnownGroup:
		return nil, kerr.GroupIDNotFound
	}
	return nil, kerr.IllegalGeneration
}

// checkOffsets is the code of each offset by itself.
func (m *Machine) checkOffsets(list []Offset) []int16 {
	codes := make([]int16, len(list))
	limit := m.settings().OffsetMetadataMax
	for i := range list {
		if s := list[i].Metadata; s != nil && len(*s) > limit && len(utf16.Encode([]rune(*s))) > limit {
			codes[i] = kerr.OffsetMetadataTooLarge.Code
		}
	}
	return codes
}

func allCodes(list []Offset, err error) []int16 {
	codes := make([]int16, len(list))
	for i := range codes {
		codes[i] = codeOf(err)
	}
	return codes
}
