package txns

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/coordinator/journaltest"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// groupsOf stands in for the coordinators of groups.
type groupsOf struct {
	mu      sync.Mutex
	err     error // of markers
	markers []coordinator.Marker
	commits int
}

func (g *groupsOf) OffsetsPartition(id string) (int32, bool) {
	return int32(len(id) % 2), id != "unmade"
}

func (g *groupsOf) CommitTxnOffsets(_ group.Client, _ *kmsg.TxnOffsetCommitRequest, list []group.Offset, check func() error) *group.Codes {
	p := coordinator.NewPromise[[]int16]()
	if err := check(); err != nil {
		p.Fail(err)
		return p
	}
	g.mu.Lock()
	g.commits++
	g.mu.Unlock()
	p.Keep(make([]int16, len(list)))
	return p
}

func (g *groupsOf) EndTxn(_ int32, m coordinator.Marker) *coordinator.Promise[struct{}] {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := coordinator.NewPromise[struct{}]()
	if g.err != nil {
		p.Fail(g.err)
		return p
	}
	g.markers = append(g.markers, m)
	p.Keep(struct{}{})
	return p
}

func (g *groupsOf) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *groupsOf) written() []coordinator.Marker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]coordinator.Marker(nil), g.markers...)
}

// rig is the handlers over a real store; the transactions' state is in memory.
type rig struct {
	*replicatest.Node
	t      testing.TB
	h      *Handlers
	apis   map[int16]protocol.API
	groups *groupsOf
	logs   []*journaltest.Log
	nextID atomic.Int64
}

func newRig(t testing.TB, overrides ...string) *rig {
	t.Helper()
	r := &rig{Node: replicatest.Open(t, replicatest.Options{Overrides: overrides}), t: t, groups: &groupsOf{}}
	r.Create(replicatest.Topic{Name: TransactionsTopic, Partitions: 2}, replicatest.Topic{Name: OffsetsTopic, Partitions: 2},
		replicatest.Topic{Name: "t", Partitions: 3})
	r.logs = []*journaltest.Log{{}, {}}
	r.handle()
	t.Cleanup(func() { r.h.Close() })
	return r
}

// handle makes the handlers anew, as after a restart.
func (r *rig) handle() {
	r.h = New(Options{
		Replicas: r.Set, Live: r.Live, Groups: r.groups, CreateTopic: func(string) {},
		ProducerIDs: func(context.Context) (int64, int, error) { return r.nextID.Add(10) - 10, 10, nil },
	})
	r.apis = make(map[int16]protocol.API)
	for _, a := range r.h.APIs() {
		r.apis[a.Key] = a
	}
	for i := range r.logs {
		r.lead(int32(i))
	}
}

// lead has a partition of the transactions' state led anew.
func (r *rig) lead(i int32) {
	r.t.Helper()
	r.h.runtime.Resign(i)
	j, epoch := r.logs[i].Lead()
	r.h.runtime.Lead(i, epoch, j)
	require.Eventually(r.t, func() bool { return r.h.runtime.Shard(i).Serving() }, 10*time.Second, time.Millisecond)
}

// do handles a request without sockets.
func (r *rig) do(req kmsg.Request) kmsg.Response {
	r.t.Helper()
	api, ok := r.apis[req.Key()]
	require.True(r.t, ok)
	c := &protocol.Call{Ctx: r.t.Context(), Key: req.Key(), Version: req.GetVersion(), Request: req}
	return c.Outcome(api.Submit(c)).Msg
}

// init asks for the producer of an id.
func (r *rig) init(id string) coordinator.Producer {
	r.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 5, &id, 60_000
	resp := r.do(req).(*kmsg.InitProducerIDResponse)
	require.Zero(r.t, resp.ErrorCode)
	return coordinator.Producer{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}
}

// add adds partitions for a client of version 2.
func (r *rig) add(id string, p coordinator.Producer, places ...txn.Place) {
	r.t.Helper()
	for _, err := range r.h.Enlist(id, p, places, 0).Wait(r.t.Context(), nil) {
		require.NoError(r.t, err)
	}
}

// write appends a transactional batch of one record to a partition of t.
func (r *rig) write(partition int32, p coordinator.Producer, sequence int32) {
	r.t.Helper()
	b := batch.NewBuilder(batch.Spec{Transactional: true, Producer: &batch.Producer{ID: p.ID, Epoch: p.Epoch, Sequence: sequence}})
	b.Append(time.Now().UnixMilli(), nil, []byte("v"))
	whole, err := b.Batch()
	require.NoError(r.t, err)
	part := r.Partition("t", partition)
	epoch, err := part.Writable(true)
	require.NoError(r.t, err)
	a, err := part.Append(whole, epoch, log.Client)
	require.NoError(r.t, err)
	require.NoError(r.t, r.Set.Commit(a.Ticket))
}

func (r *rig) end(id string, p coordinator.Producer, commit bool) *kmsg.EndTxnResponse {
	r.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = 5, id, p.ID, p.Epoch, commit
	return r.do(req).(*kmsg.EndTxnResponse)
}

// state is what DescribeTransactions says of an id.
func (r *rig) state(id string) string {
	r.t.Helper()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	return r.do(req).(*kmsg.DescribeTransactionsResponse).TransactionStates[0].State
}

func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	require.Eventually(r.t, is, 10*time.Second, time.Millisecond, what)
}

// open tells whether a transaction is open on a partition of t.
func (r *rig) open(partition int32) bool {
	p := r.Partition("t", partition)
	return p.LastStable() < p.Log().End()
}
