package group

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
)

// answered gives what a promise was kept with.
func answered[A any](t *testing.T, p *coordinator.Promise[A]) A {
	t.Helper()
	synctest.Wait()
	require.True(t, p.Ready())
	a, err := p.Wait(t.Context(), nil)
	require.NoError(t, err)
	return a
}

func (s *stage) joinAs(req *kmsg.JoinGroupRequest, client string) *joinPromise {
	return coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *joinPromise) {
		m.JoinGroup(t, Client{ID: client, Version: 3}, req, p)
	})
}

func joinOf(group string, metadata int) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType = group, "other"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 60_000
	r := kmsg.NewJoinGroupRequestProtocol()
	r.Name, r.Metadata = "p", make([]byte, metadata)
	req.Protocols = append(req.Protocols, r)
	return req
}

func (s *stage) commitAs(group string) []int16 {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Codes) {
		m.CommitOffsets(t, Client{Version: 9}, req, []Offset{{Topic: "t"}}, p)
	})
	return answered(s.t, p)
}

func (s *stage) commitInTxnAs(group string, metadata *string, list ...Offset) []int16 {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Group, req.Generation, req.ProducerID = group, -1, 5
	for i := range list {
		list[i].Metadata = metadata
	}
	p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Codes) {
		m.CommitTxnOffsets(t, Client{Version: 5}, req, list, p)
	})
	return answered(s.t, p)
}

func (s *stage) groups() (ids []string) {
	p := coordinator.Ask(s.shard(), func(m *Machine, _ *coordinator.Turn, p *coordinator.Promise[[]string]) {
		for id := range m.groups {
			ids = append(ids, id)
		}
		p.Keep(ids)
	})
	return answered(s.t, p)
}

// What keys of records cannot say is refused before anything is made of it; what
// they can say is read again.
func TestStringsThatRecordsCannotHoldAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		owner := strings.Repeat("i", maxOwner+1)
		fits, long := strings.Repeat("g", maxString), strings.Repeat("g", maxString+1)

		require.Equal(t, []int16{kerr.InvalidGroupID.Code}, s.commitAs(long))
		require.Equal(t, []int16{kerr.InvalidGroupID.Code}, s.commitInTxnAs(long, nil, Offset{Topic: "t"}))
		require.Equal(t, kerr.InvalidGroupID.Code, answered(t, s.joinAs(joinOf(long, 1), "c")).ErrorCode)
		for _, change := range []func(r *kmsg.JoinGroupRequest){
			func(r *kmsg.JoinGroupRequest) { r.InstanceID = &owner },
			func(r *kmsg.JoinGroupRequest) { r.ProtocolType = long },
			func(r *kmsg.JoinGroupRequest) { r.Protocols[0].Name = long },
			func(r *kmsg.JoinGroupRequest) { r.MemberID = long },
		} {
			req := joinOf("g", 1)
			change(req)
			require.Equal(t, kerr.InvalidRequest.Code, answered(t, s.joinAs(req, "c")).ErrorCode)
		}
		for _, change := range []func(r *kmsg.ConsumerGroupHeartbeatRequest){
			func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group = long },
			func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID = long },
			func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = &long },
		} {
			req := join("g", "m", "t")
			change(req)
			require.Equal(t, kerr.InvalidRequest.Code, answered(t, s.beatAs(req)).ErrorCode)
		}
		req := join("g", "m", "t")
		req.SubscribedTopicRegex = &long
		require.Equal(t, kerr.InvalidRegularExpression.Code, answered(t, s.beatAs(req)).ErrorCode)
		require.Empty(t, s.groups())
		require.Empty(t, s.log.Entries(0))

		require.Equal(t, []int16{0}, s.commitAs(fits))
		client := strings.Repeat("c", 32767)
		waits := s.joinAs(joinOf("g", 1), client)
		time.Sleep(5 * time.Second)
		require.Zero(t, answered(t, waits).ErrorCode)
		s.lead()
		require.ElementsMatch(t, []string{fits, "g"}, s.groups())
		require.Empty(t, s.lines, "every record can be read")
	})
}

func (s *stage) beatAs(req *kmsg.ConsumerGroupHeartbeatRequest) *ConsumerHeartbeatPromise {
	return coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *ConsumerHeartbeatPromise) {
		m.ConsumerHeartbeat(t, Client{Version: 1}, req, p)
	})
}

// A group is one record, and its leader's answer: its members' words are bounded
// together, whatever each of them says.
func TestWhatMembersSayIsBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		s.set.MaxBytes = 1000
		require.Equal(t, kerr.GroupMaxSizeReached.Code, answered(t, s.joinAs(joinOf("g", 1000), "a")).ErrorCode)
		a := s.joinAs(joinOf("g", 600), "a")
		require.Equal(t, kerr.GroupMaxSizeReached.Code, answered(t, s.joinAs(joinOf("g", 600), "b")).ErrorCode)
		b := s.joinAs(joinOf("g", 300), "b")
		time.Sleep(10 * time.Second)
		first := answered(t, a)
		require.Zero(t, first.ErrorCode)
		require.Zero(t, answered(t, b).ErrorCode)

		again := joinOf("g", 700) // In place of what it said before.
		again.MemberID = first.MemberID
		require.Equal(t, kerr.GroupMaxSizeReached.Code, answered(t, s.joinAs(again, "a")).ErrorCode)
		again.Protocols[0].Metadata = make([]byte, 650)
		s.joinAs(again, "a")
		synctest.Wait()
		require.Equal(t, kerr.GroupMaxSizeReached.Code, answered(t, s.joinAs(joinOf("g", 100), "c")).ErrorCode)

		require.Zero(t, first.ErrorCode)
		sync := kmsg.NewPtrSyncGroupRequest()
		time.Sleep(11 * time.Second) // b is out.
		sync.Group, sync.MemberID, sync.Generation = "g", first.MemberID, first.Generation+1
		assignment := kmsg.NewSyncGroupRequestGroupAssignment()
		assignment.MemberID, assignment.MemberAssignment = first.MemberID, make([]byte, 1001)
		sync.GroupAssignment = append(sync.GroupAssignment, assignment)
		ask := func() int16 {
			return answered(t, coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *syncPromise) {
				m.SyncGroup(t, Client{Version: 5}, sync, p)
			})).ErrorCode
		}
		require.Equal(t, kerr.UnknownServerError.Code, ask())
		sync.GroupAssignment[0].MemberAssignment = make([]byte, 1000)
		require.Zero(t, ask())

		require.Zero(t, answered(t, s.beatAs(join("mixed", "m", "t"))).ErrorCode)
		subscription := kmsg.NewConsumerMemberMetadata()
		subscription.Topics = []string{strings.Repeat("t", 600)}
		mixed := joinOf("mixed", 0)
		mixed.ProtocolType, mixed.Protocols[0].Metadata = consumerType, subscription.AppendTo(nil)
		require.Zero(t, answered(t, s.joinAs(mixed, "a")).ErrorCode)
		require.Equal(t, kerr.GroupMaxSizeReached.Code, answered(t, s.joinAs(mixed, "b")).ErrorCode)

		names := join("n", "m", strings.Repeat("t", 600), strings.Repeat("u", 600))
		require.Equal(t, kerr.InvalidRequest.Code, answered(t, s.beatAs(names)).ErrorCode)
	})
}

// A commit of which nothing is kept makes no group.
func TestRefusedCommitsLeaveNoGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		long := strings.Repeat("m", 21)
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.Generation = "plain", -1
		p := coordinator.Ask(s.shard(), func(m *Machine, t *coordinator.Turn, p *Codes) {
			m.CommitOffsets(t, Client{Version: 9}, req, []Offset{{Topic: "t", Metadata: &long}}, p)
		})
		require.Equal(t, []int16{kerr.OffsetMetadataTooLarge.Code}, answered(t, p))
		require.Equal(t, []int16{kerr.OffsetMetadataTooLarge.Code}, s.commitInTxnAs("txn", &long, Offset{Topic: "t"}))
		s.log.Refuse(kerr.InvalidProducerEpoch)
		require.Equal(t, []int16{kerr.InvalidProducerEpoch.Code}, s.commitInTxnAs("txn", nil, Offset{Topic: "t"}))
		require.Empty(t, s.groups())
	})
}

// However many offsets a transaction commits at once, and however long their
// group's id: batches stay small.
func TestOffsetsOfATransactionAreWrittenInSmallBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		list := make([]Offset, 200)
		for i := range list {
			list[i] = Offset{Topic: "t", Partition: int32(i), Epoch: -1}
		}
		group := strings.Repeat("g", 20_000)
		for _, code := range s.commitInTxnAs(group, nil, list...) {
			require.Zero(t, code)
		}
		entries := s.log.Entries(0)
		require.Greater(t, len(entries), 5)
		n := 0
		for i := range entries {
			require.Less(t, len(entries[i].Records)*20_000, 1<<20)
			n += len(entries[i].Records)
		}
		require.Equal(t, len(list), n)
	})
}

// Names are held once for all that mention them, but not for ever.
func TestNamesThatClientsMakeUpAreForgotten(t *testing.T) {
	m := testMachine()
	for i := range maxNames + 10 {
		m.name("name-" + strings.Repeat("x", i%7) + time.Duration(i).String())
	}
	require.LessOrEqual(t, len(m.names), maxNames)
}
