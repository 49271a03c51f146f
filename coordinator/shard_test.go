package coordinator_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// counter is a machine that adds up the lengths of its records.
type counter struct {
	sum, staged int
	parked      []*coordinator.Promise[int]
	alarm       coordinator.Timer
	alarms      []time.Time
	bad         int
}

func (c *counter) Replay(r coordinator.Record, producer int64) error {
	if len(r.Value) == 0 {
		c.bad++
		return errors.New("no value")
	}
	if producer >= 0 {
		c.staged += len(r.Value)
		return nil
	}
	c.sum += len(r.Value)
	return nil
}

func (c *counter) ReplayEnd(m coordinator.Marker) error {
	if m.Commit {
		c.sum += c.staged
	}
	c.staged = 0
	return nil
}

func (c *counter) Loaded(*coordinator.Turn) {
	c.alarm.Fire = func(t *coordinator.Turn) { c.alarms = append(c.alarms, t.Now()) }
}

func (c *counter) Resigned(err error) {
	for _, p := range c.parked {
		p.Fail(err)
	}
}

type (
	counterShard   = coordinator.Shard[*counter]
	counterPromise = coordinator.Promise[int]
)

// add asks for n to be added; the answer is the sum.
func add(s *counterShard, n int) *counterPromise {
	return coordinator.Ask(s, func(c *counter, t *coordinator.Turn, p *counterPromise) {
		c.sum += n
		t.Append([]byte("add"), make([]byte, n))
		coordinator.Deliver(t, p, c.sum)
	})
}

// sum asks for the sum.
func sum(s *counterShard) *counterPromise {
	return coordinator.Ask(s, func(c *counter, t *coordinator.Turn, p *counterPromise) { coordinator.Deliver(t, p, c.sum) })
}

type rig struct {
	log      journaltest.Log
	runtime  *coordinator.Runtime[*counter]
	resigned []error
}

func newRig() *rig {
	r := &rig{}
	r.runtime = coordinator.New(coordinator.Options[*counter]{
		New:    func(int32) *counter { return &counter{} },
		Events: coordinator.Events{Resigned: func(_ int32, err error) { r.resigned = append(r.resigned, err) }},
	})
	return r
}

func (r *rig) lead() *counterShard {
	j, epoch := r.log.Lead()
	r.runtime.Lead(0, epoch, j)
	synctest.Wait()
	return r.runtime.Shard(0)
}

func value(t *testing.T, p *counterPromise) int {
	t.Helper()
	require.True(t, p.Ready(), "the answer is not there")
	n, err := p.Wait(t.Context(), nil)
	require.NoError(t, err)
	return n
}

func failure(t *testing.T, p *counterPromise) error {
	t.Helper()
	require.True(t, p.Ready(), "the answer is not there")
	_, err := p.Wait(t.Context(), nil)
	require.Error(t, err)
	return err
}

func TestStateIsThereAgainAfterALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		first, second := add(s, 3), add(s, 4)
		synctest.Wait()
		require.Equal(t, 3, value(t, first))
		require.Equal(t, 7, value(t, second))
		s = r.lead()
		got := sum(s)
		synctest.Wait()
		require.Equal(t, 7, value(t, got))
		r.runtime.Close()
	})
}

func TestTurnsThatQueueUpShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		release := r.log.Hold()
		first := add(s, 1)
		synctest.Wait()
		var rest []*counterPromise
		for range 100 {
			rest = append(rest, add(s, 1))
		}
		synctest.Wait()
		require.False(t, first.Ready(), "answered before it is durable")
		release()
		synctest.Wait()
		for i, p := range rest {
			require.Equal(t, i+2, value(t, p))
		}
		require.Equal(t, 2, r.log.Commits())
		r.runtime.Close()
	})
}

func TestAReadWaitsForWhatItHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		release := r.log.Hold()
		add(s, 5)
		seen := sum(s)
		synctest.Wait()
		require.False(t, seen.Ready())
		release()
		synctest.Wait()
		require.Equal(t, 5, value(t, seen))
		r.runtime.Close()
	})
}

func TestAFailedCommitDropsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		release := r.log.Hold()
		kept := add(s, 2)
		synctest.Wait()
		parked := coordinator.Ask(s, func(c *counter, _ *coordinator.Turn, p *counterPromise) { c.parked = append(c.parked, p) })
		synctest.Wait()
		r.log.Fail(kerr.RequestTimedOut)
		release()
		synctest.Wait()
		require.ErrorIs(t, failure(t, kept), kerr.CoordinatorNotAvailable)
		require.ErrorIs(t, failure(t, parked), kerr.CoordinatorNotAvailable)
		require.ErrorIs(t, failure(t, sum(s)), kerr.CoordinatorLoadInProgress)
		require.Len(t, r.resigned, 1)
		<-time.After(5 * time.Second)
		require.Len(t, r.resigned, 1, "that it goes on like this is not told")

		r.log.Fail(nil)
		<-time.After(time.Second)
		synctest.Wait()
		again := sum(s)
		synctest.Wait()
		require.Equal(t, 2, value(t, again), "what was in the log all the same counts")
		r.runtime.Close()
	})
}

func TestAFailedAppendDropsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		r.log.Fail(kerr.NotLeaderForPartition)
		lost, behind := add(s, 2), sum(s)
		synctest.Wait()
		require.ErrorIs(t, failure(t, lost), kerr.NotCoordinator)
		require.ErrorIs(t, failure(t, behind), kerr.NotCoordinator)
		r.log.Fail(nil)
		<-time.After(time.Second)
		synctest.Wait()
		got := sum(s)
		synctest.Wait()
		require.Zero(t, value(t, got))
		r.runtime.Close()
	})
}

func TestALostLeadershipAnswersNobodyWithOldState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		r.log.Lead() // Another broker's.
		stale := sum(s)
		synctest.Wait()
		require.ErrorIs(t, failure(t, stale), kerr.NotCoordinator)
		r.runtime.Resign(0)
		synctest.Wait()
		require.ErrorIs(t, failure(t, sum(s)), kerr.NotCoordinator)
		require.Nil(t, r.runtime.Shard(0))
		require.ErrorIs(t, failure(t, sum(nil)), kerr.NotCoordinator)
		r.runtime.Close()
	})
}

func TestCloseAnswersWhatWasAppended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		release := r.log.Hold()
		p := add(s, 9)
		parked := coordinator.Ask(s, func(c *counter, _ *coordinator.Turn, p *counterPromise) { c.parked = append(c.parked, p) })
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			r.runtime.Close()
			close(closed)
		}()
		synctest.Wait()
		release()
		<-closed
		require.Equal(t, 9, value(t, p))
		require.ErrorIs(t, failure(t, parked), kerr.NotCoordinator)
		j, epoch := r.log.Lead()
		r.runtime.Lead(0, epoch, j)
		require.Nil(t, r.runtime.Shard(0), "a closed runtime leads nothing")
	})
}

func TestTransactionalRecordsCountOnceTheyHaveEndedWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		producer := coordinator.Producer{ID: 7, Epoch: 1}
		txn := func(n int, commit bool) *counterPromise {
			return coordinator.Ask(s, func(c *counter, t *coordinator.Turn, p *counterPromise) {
				t.Append([]byte("add"), []byte("x"))
				c.sum++
				if err := t.AppendTxn(producer, coordinator.Record{Key: []byte("k"), Value: make([]byte, n)}); err != nil {
					p.Fail(err)
					return
				}
				if err := t.AppendMarker(coordinator.Marker{Producer: producer, Commit: commit}); err != nil {
					p.Fail(err)
					return
				}
				coordinator.Deliver(t, p, 0)
			})
		}
		a, b := txn(10, true), txn(100, false)
		synctest.Wait()
		value(t, a)
		value(t, b)
		kinds := []bool{}
		for _, e := range r.log.Entries(0) {
			kinds = append(kinds, e.Producer != nil)
		}
		require.Equal(t, []bool{false, true, true, false, true, true}, kinds, "in the order in which they were appended")

		r.log.Refuse(kerr.InvalidProducerEpoch)
		fenced := txn(1000, true)
		synctest.Wait()
		require.ErrorIs(t, failure(t, fenced), kerr.InvalidProducerEpoch)
		require.Empty(t, r.resigned, "only the producer is to blame")

		s = r.lead()
		got := sum(s)
		synctest.Wait()
		require.Equal(t, 10+3, value(t, got))
		r.runtime.Close()
	})
}

func TestTimersGoOffInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		s := r.lead()
		began := time.Now()
		var order []string
		set := func(name string, d time.Duration) *coordinator.Timer {
			x := &coordinator.Timer{Fire: func(t *coordinator.Turn) { order = append(order, name+t.Now().Sub(began).String()) }}
			coordinator.Ask(s, func(_ *counter, t *coordinator.Turn, p *counterPromise) { t.Set(x, began.Add(d)) })
			return x
		}
		set("c", 3*time.Second)
		a := set("a", 10*time.Second)
		b := set("b", 2*time.Second)
		set("d", 4*time.Second)
		coordinator.Ask(s, func(_ *counter, t *coordinator.Turn, p *counterPromise) {
			t.Set(a, began.Add(time.Second))
			t.Stop(b)
			t.Stop(b)
		})
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a1s", "c3s", "d4s"}, order)
		r.runtime.Close()
	})
}

func TestUnreadableRecordsAreLeftOutAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		var reported []error
		runtime := coordinator.New(coordinator.Options[*counter]{
			New:    func(int32) *counter { return &counter{} },
			Events: coordinator.Events{Unreadable: func(_ int32, err error) { reported = append(reported, err) }},
		})
		j, _ := r.log.Lead()
		_, err := j.Append([]coordinator.Record{{Key: []byte("k")}, {Key: []byte("k"), Value: []byte("abc")}}, nil, 0)
		require.NoError(t, err)
		j, epoch := r.log.Lead()
		runtime.Lead(4, epoch, j)
		synctest.Wait()
		got := sum(runtime.Shard(4))
		synctest.Wait()
		require.Equal(t, 3, value(t, got))
		require.Len(t, reported, 1)
		runtime.Close()
		r.runtime.Close()
	})
}

func TestPromisesAreKeptOnce(t *testing.T) {
	p := coordinator.NewPromise[int]()
	p.Keep(1)
	p.Keep(2)
	p.Fail(errors.New("late"))
	n, err := p.Wait(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestWaitersGiveUpWhenAsked(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	_, err := coordinator.NewPromise[int]().Wait(t.Context(), stop)
	require.ErrorIs(t, err, kerr.NotCoordinator)
}
