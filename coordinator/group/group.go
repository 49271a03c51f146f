package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// Kind is how a group works, as ListGroups names it.
type Kind string

// The kinds of groups.
const (
	KindClassic  Kind = "classic"
	KindConsumer Kind = "consumer"
)

// group is what all kinds of groups have in common.
type group interface {
	kind() Kind
	// state and protocolType are what tools are shown.
	state() string
	protocolType() string
	// join, sync, heartbeat and leave serve members of the classic protocol; leave
	// has an error for each of them.
	join(t *coordinator.Turn, c Client, req *kmsg.JoinGroupRequest, p *joinPromise)
	sync(t *coordinator.Turn, c Client, req *kmsg.SyncGroupRequest, p *syncPromise)
	heartbeat(t *coordinator.Turn, req *kmsg.HeartbeatRequest) error
	leave(t *coordinator.Turn, c Client, members []kmsg.LeaveGroupRequestMember) []error
	// checkCommit tells whether a member may commit offsets, and refreshes its
	// session.
	checkCommit(t *coordinator.Turn, c commitBy) error
	// checkFetch tells whether a member may fetch offsets.
	checkFetch(memberID *string, memberEpoch int32) error
	// checkDelete tells whether the group may be deleted.
	checkDelete() error
	// checkDeleteOffsets tells whether offsets of the group may be deleted.
	checkDeleteOffsets() error
	// reads tells whether a member is subscribed to the topic.
	reads(topic string) bool
	// seen are the members as whoever manages clients sees them.
	seen() []Member
	// empty tells whether the group has no members.
	empty() bool
	// offsetsAge is from when on offsets are kept for their retention only: a
	// fixed time, or their commit if it is zero. ok is false while none expires.
	offsetsAge() (since time.Time, ok bool)
	// bury appends the tombstones of the group's own records, for those that it has.
	bury(t *coordinator.Turn)
	// stop ends the group's timers, when it is deleted or replaced.
	stop(t *coordinator.Turn)
	// loaded starts the group's timers once all records are there.
	loaded(t *coordinator.Turn)
	// resigned fails what the group has parked.
	resigned(err error)
}

// commitBy is who commits offsets.
type commitBy struct {
	memberID   string
	instanceID *string
	// epoch is the generation or member epoch, -1 for none.
	epoch int32
	// version is that of the OffsetCommit request.
	version int16
	// inTxn says that the offsets belong to a transaction.
	inTxn bool
}
