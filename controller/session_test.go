package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestRegistrationIsSeenByOthersAndEndsWithClose(t *testing.T) {
	o := external(t)
	watcher := open(t, o)
	o.NodeID = 7
	c := open(t, o)
	require.True(t, c.Fenced())
	b := broker()
	b.Rack, b.CleanlyStopped = "r", true
	require.NoError(t, c.Register(t.Context(), b))
	require.False(t, c.Fenced())
	mine := c.Image().Broker(7)
	require.Equal(t, "r", mine.Rack)
	require.True(t, mine.CleanlyStopped)
	require.Positive(t, mine.Epoch)
	require.NoError(t, watcher.catchUp(t.Context()))
	require.Equal(t, mine, watcher.Image().Broker(7))
	require.False(t, mine.Fenced)
	require.NoError(t, c.Close(t.Context()))
	require.True(t, c.Fenced())
	require.NoError(t, watcher.catchUp(t.Context()))
	require.True(t, watcher.Image().Broker(7).Fenced)
}

func TestSecondLiveBrokerWithTheSameNodeIDIsRefused(t *testing.T) {
	t.Parallel()
	o := external(t)
	o.LeaseTTL = 2 * time.Second
	first := register(t, o)
	o.Dir = t.TempDir()
	second := open(t, o)
	began := time.Now()
	err := second.Register(t.Context(), broker())
	var duplicate *DuplicateNodeError
	require.ErrorAs(t, err, &duplicate)
	require.ErrorContains(t, err, "node id 1 is already in use by a live broker (at 127.0.0.1:9092)")
	require.Less(t, time.Since(began), 6*time.Second)
	require.True(t, second.Fenced())
	require.False(t, first.Fenced())
	require.NoError(t, first.Err())
}

func TestRestartAfterKillTakesItsOwnRegistrationOverAtOnce(t *testing.T) {
	o := external(t)
	first := register(t, o)
	epoch := first.Image().Broker(1).Epoch
	kill(first)
	o.WantClusterID = first.ClusterID()
	began := time.Now()
	second := register(t, o)
	require.Less(t, time.Since(began), 2*time.Second)
	require.Greater(t, second.Image().Broker(1).Epoch, epoch)
	require.False(t, second.Image().Broker(1).Fenced)
}

func TestBrokerThatMovedWaitsForTheOldLeaseToEnd(t *testing.T) {
	t.Parallel()
	o := external(t)
	o.LeaseTTL = 2 * time.Second
	kill(register(t, o))
	o.Dir = t.TempDir()
	log, logs := logged()
	o.Logger = log
	second := open(t, o)
	began := time.Now()
	require.NoError(t, second.Register(t.Context(), broker()))
	require.Greater(t, time.Since(began), time.Second)
	require.True(t, hasLine(logs, "waiting for it to end"))
	require.False(t, second.Fenced())
}

func TestRevokedLeaseIsMadeAnew(t *testing.T) {
	c := register(t, external(t))
	etcd := raw(t)
	epoch := c.Image().Broker(1).Epoch
	for range 20 {
		_, lease := c.session.state()
		_, err := etcd.Revoke(t.Context(), lease)
		require.NoError(t, err)
		eventually(t, func() bool { return c.Image().Broker(1).Epoch > epoch && !c.Image().Broker(1).Fenced && !c.Fenced() }, "registered again")
		epoch = c.Image().Broker(1).Epoch
	}
	require.NoError(t, c.Err())
}

func TestBrokerWhoseNodeIDWasTakenGivesUp(t *testing.T) {
	t.Parallel()
	o := external(t)
	o.LeaseTTL = 2 * time.Second
	first := register(t, o)
	etcd := raw(t)
	lease, err := etcd.Grant(t.Context(), 5)
	require.NoError(t, err)
	_, err = etcd.KeepAlive(t.Context(), lease.ID)
	require.NoError(t, err)
	taken := meta.EncodeLive(meta.Live{Incarnation: newID(), Owner: "elsewhere"})
	_, err = etcd.Put(t.Context(), first.keys.Live(1), string(taken), clientv3.WithLease(lease.ID))
	require.NoError(t, err)
	select {
	case <-first.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("still alive")
	}
	require.ErrorIs(t, first.Err(), ErrSuperseded)
	require.True(t, first.Fenced())
	require.ErrorIs(t, first.RaiseEpochs(t.Context(), 1), ErrSuperseded)
}

// fences collects changes of Fenced.
type fences struct {
	mu  sync.Mutex
	all []bool
}

func (f *fences) add(v bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, v)
}

func (f *fences) get() []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]bool(nil), f.all...)
}

func TestStallOfEtcdFencesFirstAndHealsByItself(t *testing.T) {
	t.Parallel()
	o := external(t)
	p := startProxy(t, o.Endpoints[0])
	o.Endpoints, o.LeaseTTL = []string{p.endpoint}, 2*time.Second
	c := register(t, o)
	var f fences
	c.OnFenceChange(f.add)
	create(t, c, 1, "before")
	watcher := o
	watcher.Endpoints = external(t).Endpoints
	other := open(t, watcher)

	p.stall()
	began := time.Now()
	for !c.Fenced() {
		require.False(t, other.Image().Broker(1).Fenced, "etcd ended the lease before the broker was fenced")
		require.Less(t, time.Since(began), 5*time.Second)
		<-time.After(5 * time.Millisecond)
	}
	require.NotNil(t, c.Image().Topic("before"), "the image stays")
	eventually(t, func() bool { return other.Image().Broker(1).Fenced }, "the lease ends")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := c.CreateTopics(ctx, []NewTopic{{Name: "late", Assignments: onNode1(1)}})[0]
	require.ErrorContains(t, err, "did not answer in time")

	p.resume()
	eventually(t, func() bool { return !c.Fenced() && !other.Image().Broker(1).Fenced }, "registered again")
	create(t, c, 1, "after")
	require.NoError(t, c.Err())
	require.Equal(t, []bool{false, true, false}, append([]bool{false}, f.get()[len(f.get())-2:]...))
}

func TestLostConnectionIsMadeAgain(t *testing.T) {
	o := external(t)
	p := startProxy(t, o.Endpoints[0])
	o.Endpoints = []string{p.endpoint}
	c := register(t, o)
	for range 3 {
		p.cut()
		require.False(t, c.Fenced())
	}
	create(t, c, 1, "after")
	require.False(t, c.Fenced())
}

func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	o := external(t)
	o.LeaseTTL = 3 * time.Second
	c := register(t, o)
	_, lease := c.session.state()
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		require.False(t, c.Fenced())
	}
	_, now := c.session.state()
	require.Equal(t, lease, now)
	require.NotEqual(t, clientv3.NoLease, now)
}
