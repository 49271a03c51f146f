package fieldcases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

// Types of coordinators in FindCoordinator.
const (
	groupCoordinator int8 = iota
	txnCoordinator
)

// dialCoordinator connects to the broker once it coordinates this key.
func dialCoordinator(t testing.TB, address string, kind int8, key string) *frames.Conn {
	t.Helper()
	c := frames.Dial(t, address)
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorType, req.CoordinatorKeys = 4, kind, []string{key}
	require.Eventually(t, func() bool {
		found := frames.Ask[*kmsg.FindCoordinatorResponse](c, req).Coordinators
		return len(found) == 1 && found[0].ErrorCode == 0
	}, frames.Patience, 20*time.Millisecond, "coordinator of %s", key)
	return c
}

// loaded repeats a request while the coordinator's partition is not served yet:
// 14, 15 and 16 say so.
func loaded[R any](t testing.TB, ask func() (R, int16)) R {
	t.Helper()
	deadline := time.Now().Add(frames.Patience)
	for {
		answer, code := ask()
		if code != 14 && code != 15 && code != 16 {
			return answer
		}
		if time.Now().After(deadline) {
			t.Fatalf("the coordinator still answers %d", code)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// joiner is a member of a classic group that is driven request by request.
type joiner struct {
	c       *frames.Conn
	version int16
	group   string
	session time.Duration

	member     string
	generation int32
}

// request is the JoinGroup of the member as it is now.
func (j *joiner) request() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = j.version, j.group, j.member, "consumer"
	req.SessionTimeoutMillis = int32(j.session.Milliseconds())
	req.RebalanceTimeoutMillis = req.SessionTimeoutMillis
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "range"
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{"t"}
	protocol.Metadata = subscription.AppendTo(nil)
	req.Protocols = append(req.Protocols, protocol)
	return req
}

// join joins, by the id that the coordinator hands out first from version 4 on,
// and takes over member id and generation.
func (j *joiner) join(t testing.TB) *kmsg.JoinGroupResponse {
	t.Helper()
	resp := loaded(t, func() (*kmsg.JoinGroupResponse, int16) {
		r := frames.Ask[*kmsg.JoinGroupResponse](j.c, j.request())
		return r, r.ErrorCode
	})
	if resp.ErrorCode == 79 {
		j.member = resp.MemberID
		resp = frames.Ask[*kmsg.JoinGroupResponse](j.c, j.request())
	}
	require.Zero(t, resp.ErrorCode, "join of %s", j.group)
	j.member, j.generation = resp.MemberID, resp.Generation
	return resp
}

// sync sends SyncGroup; a leader gives an empty assignment to each of these members.
func (j *joiner) sync(t testing.TB, members []kmsg.JoinGroupResponseMember) *kmsg.SyncGroupResponse {
	t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = min(j.version, 3), j.group, j.member, j.generation
	for _, m := range members {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = m.MemberID, []byte(m.MemberID)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return frames.Ask[*kmsg.SyncGroupResponse](j.c, req)
}

func (j *joiner) heartbeat() int16 {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = min(j.version, 3), j.group, j.member, j.generation
	return frames.Ask[*kmsg.HeartbeatResponse](j.c, req).ErrorCode
}

func (j *joiner) leave() int16 {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group, req.MemberID = min(j.version, 2), j.group, j.member
	return frames.Ask[*kmsg.LeaveGroupResponse](j.c, req).ErrorCode
}

// commit is an OffsetCommit of partition 0 of topic t. retention counts in
// versions 2 to 4; member and generation are those of a standalone consumer when
// j.member is empty.
func (j *joiner) commit(t testing.TB, version int16, offset int64, retention time.Duration) int16 {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID, req.Generation = version, j.group, j.member, j.generation
	if j.member == "" {
		req.Generation = -1
	}
	req.RetentionTimeMillis = -1
	if retention > 0 {
		req.RetentionTimeMillis = retention.Milliseconds()
	}
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return loaded(t, func() (int16, int16) {
		code := frames.Ask[*kmsg.OffsetCommitResponse](j.c, req).Topics[0].Partitions[0].ErrorCode
		return code, code
	})
}
