package groups

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator"
)

func findRequest(kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKeys = kind, keys
	if len(keys) > 0 {
		req.CoordinatorKey = keys[0]
	}
	return req
}

func TestCoordinatorsAreFoundOnceTheirTopicIsThere(t *testing.T) {
	r := newRig(t)
	early := ask[*kmsg.FindCoordinatorResponse](r, findRequest(0, "g"), 4)
	require.Equal(t, kerr.CoordinatorNotAvailable.Code, early.Coordinators[0].ErrorCode)
	require.Equal(t, int32(-1), early.Coordinators[0].NodeID)
	early = ask[*kmsg.FindCoordinatorResponse](r, findRequest(1, "t"), 2)
	require.Equal(t, kerr.CoordinatorNotAvailable.Code, early.ErrorCode)
	require.Equal(t, []string{OffsetsTopic, TransactionsTopic}, r.created)

	r.lead()
	for version := int16(0); version <= 6; version++ {
		resp := ask[*kmsg.FindCoordinatorResponse](r, findRequest(0, "g", "h", ""), version)
		if version < 4 {
			require.Equal(t, int32(replicatest.NodeID), resp.NodeID)
			require.Equal(t, "here", resp.Host)
			require.Equal(t, int32(9), resp.Port)
			continue
		}
		require.Len(t, resp.Coordinators, 3)
		for _, c := range resp.Coordinators {
			require.Zero(t, c.ErrorCode)
			require.Equal(t, "here", c.Host)
			require.Empty(t, *c.ErrorMessage)
		}
	}
	for _, kind := range []int8{2, 9, -1} {
		resp := ask[*kmsg.FindCoordinatorResponse](r, findRequest(kind, "g"), 6)
		require.Equal(t, kerr.InvalidRequest.Code, resp.Coordinators[0].ErrorCode)
	}
}

func TestACoordinatorThatCannotBeReachedIsNotNamed(t *testing.T) {
	r := newRig(t)
	r.Broker(meta.Broker{ID: 2, Listeners: []meta.Endpoint{{Name: "OTHER", Host: "there", Port: 9}}})
	r.Create(replicatest.Topic{Name: OffsetsTopic, Replicas: []int32{2}})
	resp := ask[*kmsg.FindCoordinatorResponse](r, findRequest(0, "g"), 6)
	require.Equal(t, kerr.CoordinatorNotAvailable.Code, resp.Coordinators[0].ErrorCode)
	heartbeat := kmsg.NewPtrHeartbeatRequest()
	heartbeat.Group = "g"
	require.Equal(t, kerr.NotCoordinator.Code, ask[*kmsg.HeartbeatResponse](r, heartbeat, 4).ErrorCode)
}

func TestOtherBrokersAreAskedWhileNobodyCoordinatesHere(t *testing.T) {
	r := newRig(t)
	commit := ask[*kmsg.OffsetCommitResponse](r, commitRequest("g", "wire", 0, 1), 8)
	require.Equal(t, kerr.NotCoordinator.Code, commit.Topics[0].Partitions[0].ErrorCode)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.MemberID = "g", "me"
	joined := ask[*kmsg.JoinGroupResponse](r, join, 6)
	require.Equal(t, kerr.NotCoordinator.Code, joined.ErrorCode)
	require.Empty(t, joined.MemberID)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group = "g"
	require.Equal(t, kerr.NotCoordinator.Code, ask[*kmsg.SyncGroupResponse](r, sync, 3).ErrorCode)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "g"
	require.Equal(t, kerr.NotCoordinator.Code, ask[*kmsg.LeaveGroupResponse](r, leave, 2).ErrorCode)
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{"g"}
	require.Equal(t, kerr.NotCoordinator.Code, ask[*kmsg.DescribeGroupsResponse](r, describe, 5).Groups[0].ErrorCode)
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{"g"}
	require.Equal(t, kerr.NotCoordinator.Code, ask[*kmsg.DeleteGroupsResponse](r, del, 2).Groups[0].ErrorCode)
	list := ask[*kmsg.ListGroupsResponse](r, kmsg.NewPtrListGroupsRequest(), 5)
	require.Zero(t, list.ErrorCode, "nothing is led here, so nothing is listed")
	require.Empty(t, list.Groups)
}

func TestMembersOfEachVersionGetThroughARebalance(t *testing.T) {
	r := newRig(t).lead()
	for version := int16(0); version <= 9; version++ {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.ProtocolType = "v"+string(rune('0'+version)), "consumer"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = "range", []byte("not a subscription")
		req.Protocols = append(req.Protocols, p)
		resp := ask[*kmsg.JoinGroupResponse](r, req, version)
		if version >= 4 {
			require.Equal(t, kerr.MemberIDRequired.Code, resp.ErrorCode)
			req.MemberID = resp.MemberID
			resp = ask[*kmsg.JoinGroupResponse](r, req, version)
		}
		require.Zero(t, resp.ErrorCode)
		require.Equal(t, "range", *resp.Protocol)
		require.Len(t, resp.Members, 1)
		require.Equal(t, "not a subscription", string(resp.Members[0].ProtocolMetadata))

		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.MemberID, beat.Generation = req.Group, resp.MemberID, resp.Generation
		require.Zero(t, ask[*kmsg.HeartbeatResponse](r, beat, min(version, 4)).ErrorCode)

		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = req.Group, resp.MemberID
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = resp.MemberID
		leave.Members = append(leave.Members, m, kmsg.NewLeaveGroupRequestMember())
		left := ask[*kmsg.LeaveGroupResponse](r, leave, min(version, 5))
		require.Zero(t, left.ErrorCode)
		if version >= 3 {
			require.Zero(t, left.Members[0].ErrorCode)
			require.Equal(t, kerr.UnknownMemberID.Code, left.Members[1].ErrorCode)
		}
	}
}

func TestSyncMustNameTheProtocolFromVersion5On(t *testing.T) {
	r := newRig(t).lead()
	id := r.join("g")
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = "g", id, 1
	require.Equal(t, kerr.InconsistentGroupProtocol.Code, ask[*kmsg.SyncGroupResponse](r, req, 5).ErrorCode)
	kind, protocol := "consumer", "range"
	req.ProtocolType, req.Protocol = &kind, &protocol
	require.Zero(t, ask[*kmsg.SyncGroupResponse](r, req, 5).ErrorCode)
}

func TestAParkedJoinEndsWhenItsClientHangsUp(t *testing.T) {
	r := newRig(t, "group.initial.rebalance.delay.ms=60000").lead()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.ProtocolType = 3, "g", "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 120_000
	req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: "range"})
	ctx, hangUp := context.WithCancel(t.Context())
	answer := r.begin(ctx, req)
	time.AfterFunc(10*time.Millisecond, hangUp)
	require.Equal(t, kerr.NotCoordinator.Code, answer().(*kmsg.JoinGroupResponse).ErrorCode)
}

func TestGroupsAreDescribedListedAndDeleted(t *testing.T) {
	r := newRig(t).lead()
	r.join("full")
	r.commit("empty", "wire", 0, 1)

	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups, describe.IncludeAuthorizedOperations = []string{"full", "empty", "none"}, true
	for version := int16(0); version <= 6; version++ {
		resp := ask[*kmsg.DescribeGroupsResponse](r, describe, version)
		require.Equal(t, "Stable", resp.Groups[0].State)
		require.Equal(t, "/10.0.0.1", resp.Groups[0].Members[0].ClientHost)
		require.Equal(t, "test", resp.Groups[0].Members[0].ClientID)
		require.Equal(t, "Empty", resp.Groups[1].State)
		require.Equal(t, "Dead", resp.Groups[2].State)
		if version >= 3 {
			require.Equal(t, int32(3400), resp.Groups[0].AuthorizedOperations)
		}
		want := int16(0)
		if version >= 6 {
			want = kerr.GroupIDNotFound.Code
		}
		require.Equal(t, want, resp.Groups[2].ErrorCode)
	}

	names := func(states, kinds []string) (out []string) {
		list := kmsg.NewPtrListGroupsRequest()
		list.StatesFilter, list.TypesFilter = states, kinds
		for _, g := range ask[*kmsg.ListGroupsResponse](r, list, 5).Groups {
			out = append(out, g.Group)
		}
		return out
	}
	require.ElementsMatch(t, []string{"full", "empty"}, names(nil, nil))
	require.Equal(t, []string{"full"}, names([]string{"STABLE"}, nil))
	require.ElementsMatch(t, []string{"full", "empty"}, names(nil, []string{"Classic"}))
	require.Empty(t, names([]string{"Banana"}, nil))

	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{"full", "empty", "none", "empty"}
	var codes []int16
	for _, g := range ask[*kmsg.DeleteGroupsResponse](r, del, 2).Groups {
		codes = append(codes, g.ErrorCode)
	}
	require.Equal(t, []int16{kerr.NonEmptyGroup.Code, 0, kerr.GroupIDNotFound.Code, kerr.GroupIDNotFound.Code}, codes)
	require.Equal(t, []string{"full"}, names(nil, nil))
}

func TestAListIsAnErrorWhileAPartIsNotLoaded(t *testing.T) {
	r := newRig(t).lead()
	part := coordinator.Partition("g", offsetPartitions)
	r.logs[part].Fail(kerr.NotEnoughReplicas)
	lost := ask[*kmsg.OffsetCommitResponse](r, commitRequest("g", "wire", 0, 1), 8)
	require.Equal(t, kerr.CoordinatorNotAvailable.Code, lost.Topics[0].Partitions[0].ErrorCode)
	require.Equal(t, kerr.CoordinatorLoadInProgress.Code, ask[*kmsg.ListGroupsResponse](r, kmsg.NewPtrListGroupsRequest(), 5).ErrorCode)
	r.commit("other", "wire", 0, 1) // Other parts go on.
	require.NotEqual(t, part, coordinator.Partition("other", offsetPartitions))
	r.logs[part].Fail(nil)
}

func TestAddressesAreShownAsKafkaDoes(t *testing.T) {
	for addr, want := range map[string]string{
		"10.1.2.3":      "/10.1.2.3",
		"::1":           "/0:0:0:0:0:0:0:1",
		"fe80::1":       "/fe80:0:0:0:0:0:0:1",
		"2001:db8::a:b": "/2001:db8:0:0:0:0:a:b",
	} {
		require.Equal(t, want, hostOf(&net.TCPAddr{IP: net.ParseIP(addr), Port: 1}))
	}
	require.Equal(t, "/fe80:0:0:0:0:0:0:1%eth0", hostOf(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 1}))
	require.Equal(t, "/pipe", hostOf(&net.UnixAddr{Name: "pipe", Net: "unix"}))
}
