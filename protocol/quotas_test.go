package protocol

import (
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// throttling serves Metadata so that a client called slow is throttled: at Submit,
// or at Finish if its request names a topic.
type throttling struct {
	by        time.Duration
	mu        sync.Mutex
	submitted []time.Duration
	begun     time.Time
}

func (b *throttling) apis() []API {
	return []API{{Key: 3, Max: 13, Submit: func(c *Call) Finish {
		b.mu.Lock()
		b.submitted = append(b.submitted, time.Since(b.begun))
		b.mu.Unlock()
		req := c.Request.(*kmsg.MetadataRequest)
		if *c.ClientID != "slow" {
			return c.Answer(req.ResponseKind())
		}
		if len(req.Topics) == 0 {
			c.Throttle(b.by)
			return c.Answer(req.ResponseKind())
		}
		c.MayPark()
		return func() Reply {
			c.Throttle(b.by)
			return Reply{Msg: req.ResponseKind()}
		}
	}}}
}

func (b *throttling) times() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Duration(nil), b.submitted...)
}

// inBubble serves over pipes under virtual time.
func inBubble(t *testing.T, o Options, test func(t *testing.T, dial func() *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pipes := newPipeListener()
		o.Listeners = []Listener{{Name: "PLAINTEXT", Net: pipes}}
		serve(t, o)
		test(t, func() *client {
			nc := pipes.dial()
			t.Cleanup(func() { _ = nc.Close() })
			return &client{t, nc}
		})
	})
}

func TestAThrottledClientIsToldAtOnceAndHeldUntilItsTimeIsOver(t *testing.T) {
	b := &throttling{by: 3 * time.Second}
	inBubble(t, Options{APIs: b.apis()}, func(t *testing.T, dial func() *client) {
		b.begun = time.Now()
		c, other := dial(), dial()
		for i := range int32(3) {
			go c.send(frameOf(metadataOf(5), i, "slow"))
			resp := c.answer(metadataOf(5), i).(*kmsg.MetadataResponse)
			require.EqualValues(t, 3000, resp.ThrottleMillis)
			go other.send(frameOf(metadataOf(5), i, "c"))
			require.Zero(t, other.answer(metadataOf(5), i).(*kmsg.MetadataResponse).ThrottleMillis)
		}
		require.Equal(t, 6*time.Second, time.Since(b.begun), "each answer came at once, each request waited")
	})
}

func TestPipelinedRequestsOfAThrottledClientWait(t *testing.T) {
	b := &throttling{by: time.Second}
	inBubble(t, Options{APIs: b.apis()}, func(t *testing.T, dial func() *client) {
		b.begun = time.Now()
		c := dial()
		go func() {
			for i := range int32(4) {
				_, _ = c.nc.Write(frameOf(metadataOf(5), i, "slow"))
			}
		}()
		for i := range int32(4) {
			c.answer(metadataOf(5), i)
		}
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, b.times())
	})
}

func TestAThrottleThatIsKnownOnlyInTheEndHoldsToo(t *testing.T) {
	b := &throttling{by: time.Second}
	inBubble(t, Options{APIs: b.apis()}, func(t *testing.T, dial func() *client) {
		b.begun = time.Now()
		name := "t"
		req := metadataOf(5)
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		c := dial()
		for i := range int32(3) {
			go c.send(frameOf(req, i, "slow"))
			require.EqualValues(t, 1000, c.answer(req, i).(*kmsg.MetadataResponse).ThrottleMillis)
		}
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, b.times())
	})
}

func TestAThrottleOfAClientWithoutAnswersHolds(t *testing.T) {
	var submitted atomic.Int64
	apis := []API{{Key: 0, Min: 3, Max: 9, Decode: DecodeProduce, Submit: func(c *Call) Finish {
		submitted.Add(1)
		c.Throttle(time.Minute)
		return c.None()
	}}}
	inBubble(t, Options{APIs: apis}, func(t *testing.T, dial func() *client) {
		c := dial()
		go func() {
			for i := range int32(3) {
				_, _ = c.nc.Write(frameOf(produceTo(0, []byte("r")), i, "c"))
			}
		}()
		time.Sleep(30 * time.Second)
		require.EqualValues(t, 1, submitted.Load())
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, submitted.Load())
	})
}

func TestMutedConnectionsEndWithTheServer(t *testing.T) {
	b := &throttling{by: time.Hour}
	s := serve(t, Options{APIs: b.apis()})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(metadataOf(5), 1, "slow"))
	c.answer(metadataOf(5), 1)
	c.send(frameOf(metadataOf(5), 2, "slow"))
	require.Eventually(t, func() bool { return s.alarms.len() == 1 }, 10*time.Second, time.Millisecond)
	s.Drain()
	_, err := io.Copy(io.Discard, c.nc)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.alarms.len() == 0 }, 10*time.Second, time.Millisecond)
	require.Len(t, b.times(), 1)
}

func TestMutedConnectionThatIsIdleForTooLongIsClosed(t *testing.T) {
	b := &throttling{by: time.Hour}
	inBubble(t, Options{APIs: b.apis(), Limits: Limits{IdleTimeout: time.Minute}}, func(t *testing.T, dial func() *client) {
		c := dial()
		begin := time.Now()
		go c.send(frameOf(metadataOf(5), 1, "slow"))
		c.answer(metadataOf(5), 1)
		c.closed()
		require.InDelta(t, time.Minute.Seconds(), time.Since(begin).Seconds(), 3)
	})
}

func TestTimeOfRequestsIsCountedWithoutWaiting(t *testing.T) {
	const work, pause = 10 * time.Millisecond, time.Minute
	var took []time.Duration
	var timed atomic.Bool
	var keep Quotas
	keep.Timed = timed.Load
	keep.Took = func(_ *Call, d time.Duration) time.Duration {
		took = append(took, d)
		return 2 * time.Second
	}
	apis := []API{{Key: 3, Max: 13, Submit: func(c *Call) Finish {
		time.Sleep(work)
		switch name := *c.ClientID; name {
		case "answers":
			return c.Answer(c.Request.ResponseKind())
		case "ready":
			c.ReadyWhen(func() bool { return true })
			return func() Reply {
				time.Sleep(work)
				return Reply{Msg: c.Request.ResponseKind()}
			}
		case "exempt":
			c.Exempt()
			return c.Answer(c.Request.ResponseKind())
		default:
			c.MayPark()
			return func() Reply {
				time.Sleep(pause)
				if name == "works" {
					c.Working()
				}
				time.Sleep(work)
				return Reply{Msg: c.Request.ResponseKind()}
			}
		}
	}}}
	inBubble(t, Options{APIs: apis, Quotas: keep}, func(t *testing.T, dial func() *client) {
		ask := func(name string) int32 {
			c := dial()
			go c.send(frameOf(metadataOf(5), 1, name))
			return c.answer(metadataOf(5), 1).(*kmsg.MetadataResponse).ThrottleMillis
		}
		require.Zero(t, ask("answers"), "nobody has a quota")
		require.Empty(t, took)
		timed.Store(true)
		require.Zero(t, ask("exempt"))
		for _, name := range []string{"answers", "ready", "waits", "works"} {
			require.EqualValues(t, 2000, ask(name))
		}
		require.Equal(t, []time.Duration{work, 2 * work, work, 2 * work}, took)
	})
}

func TestTheLongerOfTwoThrottlesCounts(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 5 * time.Second} {
		b := &throttling{by: 3 * time.Second}
		keep := Quotas{Timed: func() bool { return true }, Took: func(*Call, time.Duration) time.Duration { return d }}
		inBubble(t, Options{APIs: b.apis(), Quotas: keep}, func(t *testing.T, dial func() *client) {
			c := dial()
			go c.send(frameOf(metadataOf(5), 1, "slow"))
			got := c.answer(metadataOf(5), 1).(*kmsg.MetadataResponse).ThrottleMillis
			require.EqualValues(t, max(b.by, d).Milliseconds(), got)
		})
	}
}

func TestConnectionsBeyondTheQuotaOfTheirAddressAreClosedLater(t *testing.T) {
	var asked []netip.Addr
	rejections := make(chan Rejection, 9)
	local := netip.MustParseAddr("127.0.0.1")
	s := serve(t, Options{
		APIs: (&fakeBroker{}).apis(), Events: Events{Rejected: func(r Rejection) { rejections <- r }},
		Quotas: Quotas{Connection: func(ip netip.Addr) time.Duration {
			if asked = append(asked, ip); len(asked) == 2 {
				return 200 * time.Millisecond
			}
			return 0
		}},
	})
	dial(t, s, "PLAINTEXT").alive()
	begin := time.Now()
	second := dial(t, s, "PLAINTEXT")
	require.Equal(t, "connection_creation_rate", (<-rejections).Limit)
	third := dial(t, s, "PLAINTEXT")
	third.alive() // Others do not wait for it.
	second.closed()
	require.GreaterOrEqual(t, time.Since(begin), 200*time.Millisecond)
	require.Equal(t, []netip.Addr{local, local, local}, asked)
	require.Equal(t, map[string]int{"PLAINTEXT": 2}, s.Stats().Connections)
	require.Eventually(t, func() bool { return s.held.Load() == 0 }, 10*time.Second, time.Millisecond)
}

func TestHeldConnectionsAreBounded(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Quotas: Quotas{Connection: func(netip.Addr) time.Duration { return time.Hour }}})
	s.held.Store(maxHeld - 1)
	held := dial(t, s, "PLAINTEXT")
	require.Eventually(t, func() bool { return s.held.Load() == maxHeld }, 10*time.Second, time.Millisecond)
	dial(t, s, "PLAINTEXT").closed()
	s.Drain()
	held.closed()
}

func TestAlarmsRingInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarms()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { a.run(stop) })
		var mu sync.Mutex
		var rung []int
		begin := time.Now()
		var third *alarm
		for _, n := range []int{5, 1, 4, 3, 2, 50} {
			one := a.set(begin.Add(time.Duration(n)*time.Second), func() {
				mu.Lock()
				defer mu.Unlock()
				if rung = append(rung, n); n < 50 {
					require.Equal(t, time.Duration(n)*time.Second, time.Since(begin))
				}
			})
			if n == 3 {
				third = one
			}
		}
		a.cancel(third)
		time.Sleep(10 * time.Second)
		a.cancel(third)
		require.Equal(t, 1, a.len())
		close(stop)
		wg.Wait()
		require.Equal(t, []int{1, 2, 4, 5, 50}, rung, "the last when it stopped")
		late := false
		a.set(time.Now().Add(time.Hour), func() { late = true })
		require.True(t, late)
	})
}
