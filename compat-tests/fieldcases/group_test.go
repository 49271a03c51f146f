package fieldcases

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestFirstVersionOfJoinGroupWaitsForTheSession is O-GR-1: JoinGroup v0 has no
// rebalance timeout, so members have their session's time to join again.
func TestFirstVersionOfJoinGroupWaitsForTheSession(t *testing.T) {
	t.Parallel()
	node := harness.Start(t, "group.initial.rebalance.delay.ms=50")
	m1 := &joiner{c: dialCoordinator(t, node.Address, groupCoordinator, "g"), group: "g", session: 10 * time.Second}
	m2 := &joiner{c: frames.Dial(t, node.Address), group: "g", session: 10 * time.Second}
	alone := m1.join(t)
	require.Equal(t, alone.LeaderID, m1.member)
	require.Zero(t, m1.sync(t, alone.Members).ErrorCode)
	require.Zero(t, m1.heartbeat())

	second := m2.c.Send(m2.request())
	require.Eventually(t, func() bool { return m1.heartbeat() == 27 }, 30*time.Second, 10*time.Millisecond)
	// A rebalance timeout of -1 or 0 would have thrown the first out by now.
	time.Sleep(500 * time.Millisecond)
	require.EqualValues(t, 27, m1.heartbeat())
	first := m1.join(t)
	other := frames.Receive[*kmsg.JoinGroupResponse](m2.c, m2.request(), second)
	require.Zero(t, other.ErrorCode)
	m2.member, m2.generation = other.MemberID, other.Generation
	assert.Equal(t, first.Generation, other.Generation)
	assert.Equal(t, first.LeaderID, other.LeaderID)
	assert.EqualValues(t, 2, first.Generation)
	leader, follower, list := m1, m2, first.Members
	if other.LeaderID == m2.member {
		leader, follower, list = m2, m1, other.Members
	}
	assert.Len(t, list, 2)
	assert.Len(t, append(first.Members, other.Members...), 2, "the leader alone gets the members")
	waiting := kmsg.NewPtrSyncGroupRequest()
	waiting.Group, waiting.MemberID, waiting.Generation = "g", follower.member, follower.generation
	correlation := follower.c.Send(waiting)
	require.Equal(t, leader.member, string(leader.sync(t, list).MemberAssignment))
	got := frames.Receive[*kmsg.SyncGroupResponse](follower.c, waiting, correlation)
	require.Equal(t, follower.member, string(got.MemberAssignment))
	for range 10 {
		require.Zero(t, m1.heartbeat())
		require.Zero(t, m2.heartbeat())
		time.Sleep(50 * time.Millisecond)
	}
}

// TestMemberIDsThatNobodyUsesHoldNothingUp is O-GR-2: ids that were handed out and
// never used block no rebalance, are no members, and are forgotten.
func TestMemberIDsThatNobodyUsesHoldNothingUp(t *testing.T) {
	t.Parallel()
	node := harness.Start(t, "group.initial.rebalance.delay.ms=50", "group.min.session.timeout.ms=100")
	const session = 2 * time.Second
	var last string
	abandon := func(n int) {
		for range n {
			j := &joiner{c: frames.Dial(t, node.Address), version: 5, group: "g", session: session}
			resp := loaded(t, func() (*kmsg.JoinGroupResponse, int16) {
				r := frames.Ask[*kmsg.JoinGroupResponse](j.c, j.request())
				return r, r.ErrorCode
			})
			require.EqualValues(t, 79, resp.ErrorCode)
			require.NotEmpty(t, resp.MemberID)
			require.NotEqual(t, last, resp.MemberID)
			last = resp.MemberID
			require.NoError(t, j.c.Close())
		}
	}
	dialCoordinator(t, node.Address, groupCoordinator, "g")
	abandon(1000)
	abandoned := time.Now()
	real := &joiner{c: frames.Dial(t, node.Address), version: 5, group: "g", session: 30 * time.Second}
	began := time.Now()
	resp := real.join(t)
	assert.Less(t, time.Since(began), session, "a pending id must not be waited for")
	require.Zero(t, real.sync(t, resp.Members).ErrorCode)
	described, err := admin(t, node.Address).DescribeGroups(limited(t), "g")
	require.NoError(t, err)
	assert.Equal(t, "Stable", described["g"].State)
	assert.Len(t, described["g"].Members, 1)

	time.Sleep(time.Until(abandoned.Add(session + 200*time.Millisecond)))
	late := &joiner{c: frames.Dial(t, node.Address), version: 5, group: "g", session: session, member: last}
	assert.EqualValues(t, 25, frames.Ask[*kmsg.JoinGroupResponse](late.c, late.request()).ErrorCode, "its time is over")
	assert.EqualValues(t, 1, unknownMembers(t, node))
	assert.Zero(t, real.heartbeat())

	if rounds := number(t, "MAINSTEM_ABANDONED_ROUNDS", 0); rounds > 0 {
		before := memoryOf(t, node).resident
		for range rounds {
			abandon(1000)
		}
		time.Sleep(session + time.Second)
		assert.Less(t, memoryOf(t, node).resident, before+64<<20)
	}
}

// offsetOf is what is committed of partition 0 of topic t; -1 is nothing.
func offsetOf(t testing.TB, adm *kadm.Client, group string) int64 {
	t.Helper()
	offsets, err := adm.FetchOffsets(limited(t), group)
	require.NoError(t, err)
	o, ok := offsets.Lookup("t", 0)
	if !ok {
		return -1
	}
	return o.At
}

// TestOffsetsExpireByTheRequest is case (d) of O-GR-3, the one that needs no
// minutes: versions 2 to 4 of OffsetCommit carry a retention of their own, and a
// restart in between does not change it.
func TestOffsetsExpireByTheRequest(t *testing.T) {
	t.Parallel()
	node := harness.Start(t, "offsets.retention.check.interval.ms=200")
	frames.Dial(t, node.Address).Create(1, "t")
	for version := int16(2); version <= 4; version++ {
		group := fmt.Sprint("v", version)
		short := &joiner{c: dialCoordinator(t, node.Address, groupCoordinator, group), group: group}
		require.Zero(t, short.commit(t, version, 5, 2*time.Second))
		long := &joiner{c: short.c, group: group + "-long"}
		require.Zero(t, long.commit(t, version, 6, time.Hour))
		standard := &joiner{c: short.c, group: group + "-standard"}
		require.Zero(t, standard.commit(t, version, 7, 0))
	}
	restart(t, node)
	adm := admin(t, node.Address)
	for version := 2; version <= 4; version++ {
		group := fmt.Sprint("v", version)
		require.Eventually(t, func() bool { return offsetOf(t, adm, group) == -1 }, 10*time.Second, 50*time.Millisecond, group)
		assert.EqualValues(t, 6, offsetOf(t, adm, group+"-long"))
		assert.EqualValues(t, 7, offsetOf(t, adm, group+"-standard"))
	}
	groups, err := adm.ListGroups(limited(t))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"v2-long", "v2-standard", "v3-long", "v3-standard", "v4-long", "v4-standard"}, groups.Groups())
}

// TestOffsetsExpireOnceTheGroupIsEmpty is the rest of O-GR-3, with the shortest
// retention that there is: a minute. MAINSTEM_SLOW=1 runs it.
func TestOffsetsExpireOnceTheGroupIsEmpty(t *testing.T) {
	if number(t, "MAINSTEM_SLOW", 0) == 0 {
		t.Skip("MAINSTEM_SLOW=1 runs this test of three minutes; the machine's own tests take it at virtual time")
	}
	t.Parallel()
	node := harness.Start(t, "offsets.retention.minutes=1", "offsets.retention.check.interval.ms=500", "group.initial.rebalance.delay.ms=50")
	frames.Dial(t, node.Address).Create(1, "t")
	enter := func(group string) *joiner {
		j := &joiner{c: dialCoordinator(t, node.Address, groupCoordinator, group), version: 5, group: group, session: 5 * time.Minute}
		require.Zero(t, j.sync(t, j.join(t).Members).ErrorCode)
		require.Zero(t, j.commit(t, 7, 5, 0))
		return j
	}
	quiet, leaving := enter("quiet"), enter("leaving")
	alone := &joiner{c: quiet.c, group: "alone"}
	require.Zero(t, alone.commit(t, 7, 5, 0))
	standalone := time.Now()
	adm := admin(t, node.Address)
	gone := func(group string) func() bool { return func() bool { return offsetOf(t, adm, group) == -1 } }

	time.Sleep(20 * time.Second)
	require.Zero(t, leaving.leave())
	left := time.Now()
	time.Sleep(20 * time.Second)
	restart(t, node)
	require.Eventually(t, gone("alone"), 40*time.Second, 200*time.Millisecond)
	assert.InDelta(t, 60, time.Since(standalone).Seconds(), 3, "the age of a standalone commit")
	assert.EqualValues(t, 5, offsetOf(t, adm, "leaving"))
	require.Eventually(t, gone("leaving"), 40*time.Second, 200*time.Millisecond)
	assert.InDelta(t, 60, time.Since(left).Seconds(), 3, "the restart must not move the clock")
	assert.EqualValues(t, 5, offsetOf(t, adm, "quiet"), "its member lives")
	groups, err := adm.ListGroups(limited(t))
	require.NoError(t, err)
	assert.Equal(t, []string{"quiet"}, groups.Groups())
}
