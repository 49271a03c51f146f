package groups

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/coordinator/journaltest"
	"github.com/mainstem/mainstem/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the handlers of one broker, whose coordinators write to memory.
type rig struct {
	*replicatest.Node
	t    *testing.T
	h    *Handlers
	apis map[int16]protocol.API
	logs []*journaltest.Log

	mu      sync.Mutex
	created []string
}

const offsetPartitions = 5

// newRig makes a broker with the topic "wire" of three partitions; without says
// that there is no __consumer_offsets yet.
func newRig(t *testing.T, overrides ...string) *rig {
	t.Helper()
	r := &rig{Node: replicatest.Open(t, replicatest.Options{
		Overrides: append([]string{"group.initial.rebalance.delay.ms=0"}, overrides...),
	}), t: t}
	r.h = New(Options{Replicas: r.Set, Live: r.Live, CreateTopic: func(name string) {
		r.mu.Lock()
		r.created = append(r.created, name)
		r.mu.Unlock()
	}})
	t.Cleanup(r.h.Close)
	r.apis = make(map[int16]protocol.API)
	for _, a := range r.h.APIs() {
		r.apis[a.Key] = a
	}
	r.Broker(meta.Broker{ID: replicatest.NodeID, Listeners: []meta.Endpoint{{Name: "PLAINTEXT", Host: "here", Port: 9}}})
	r.Create(replicatest.Topic{Name: "wire", Partitions: 3})
	return r
}

// lead makes the offsets topic and its coordinators.
func (r *rig) lead() *rig {
	r.t.Helper()
	r.Create(replicatest.Topic{Name: OffsetsTopic, Partitions: offsetPartitions})
	for i := range int32(offsetPartitions) {
		log := &journaltest.Log{}
		r.logs = append(r.logs, log)
		j, epoch := log.Lead()
		r.h.Runtime().Lead(i, epoch, j)
	}
	for i := range int32(offsetPartitions) {
		require.Eventually(r.t, func() bool { return r.h.Runtime().Shard(i).Serving() }, 10*time.Second, time.Millisecond)
	}
	return r
}

// begin submits a request and returns how to get its answer.
func (r *rig) begin(ctx context.Context, req kmsg.Request) func() kmsg.Response {
	r.t.Helper()
	api, ok := r.apis[req.Key()]
	require.True(r.t, ok)
	require.True(r.t, req.GetVersion() >= api.Min && req.GetVersion() <= api.Max)
	client := "test"
	c := &protocol.Call{
		Ctx: ctx, Key: req.Key(), Version: req.GetVersion(), ClientID: &client,
		Conn: &protocol.ConnInfo{Listener: "PLAINTEXT", Remote: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7}},
	}
	c.Request = kmsg.RequestForKey(req.Key())
	c.Request.SetVersion(req.GetVersion())
	require.NoError(r.t, c.Request.ReadFrom(req.AppendTo(nil)))
	finish := api.Submit(c)
	require.NotNil(r.t, finish)
	return func() kmsg.Response {
		r.t.Helper()
		answer := c.Outcome(finish).Msg
		require.NotNil(r.t, answer)
		answer.SetVersion(req.GetVersion())
		resp := req.ResponseKind()
		require.NoError(r.t, resp.ReadFrom(answer.AppendTo(nil)), "the answer has the request's layout")
		return resp
	}
}

// ask serves a request.
func ask[A kmsg.Response](r *rig, req kmsg.Request, version int16) A {
	r.t.Helper()
	req.SetVersion(version)
	return r.begin(r.t.Context(), req)().(A)
}

// commit commits an offset without a member, and wants it to work.
func (r *rig) commit(group, topic string, partition int32, offset int64) {
	r.t.Helper()
	resp := ask[*kmsg.OffsetCommitResponse](r, commitRequest(group, topic, partition, offset), 9)
	require.Zero(r.t, resp.Topics[0].Partitions[0].ErrorCode)
}

func commitRequest(group, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = group
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// join has a member of the old kind join and sync a group alone.
func (r *rig) join(group string) (memberID string) {
	r.t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = group, "consumer", 10_000, 10_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", []byte{0, 0, 0, 0, 0, 1, 0, 4, 'w', 'i', 'r', 'e', 255, 255, 255, 255}
	req.Protocols = append(req.Protocols, p)
	joined := ask[*kmsg.JoinGroupResponse](r, req, 3)
	require.Zero(r.t, joined.ErrorCode)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = group, joined.MemberID, joined.Generation
	a := kmsg.NewSyncGroupRequestGroupAssignment()
	a.MemberID, a.MemberAssignment = joined.MemberID, []byte("all")
	sync.GroupAssignment = append(sync.GroupAssignment, a)
	synced := ask[*kmsg.SyncGroupResponse](r, sync, 3)
	require.Equal(r.t, "all", string(synced.MemberAssignment))
	return joined.MemberID
}
