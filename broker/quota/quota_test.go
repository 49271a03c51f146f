package quota

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/controller/meta"
)

// image has the quotas of a list of "entity key=value": user=a/client-id key=1.
func image(t testing.TB, quotas ...string) *meta.Image {
	t.Helper()
	sets := map[string]map[string]float64{}
	for _, q := range quotas {
		entity, set, ok := strings.Cut(q, " ")
		require.True(t, ok, q)
		key, text, ok := strings.Cut(set, "=")
		require.True(t, ok, q)
		var v float64
		_, err := fmt.Sscan(text, &v)
		require.NoError(t, err)
		if sets[entity] == nil {
			sets[entity] = map[string]float64{}
		}
		sets[entity][key] = v
	}
	var changes []meta.Change
	for entity, set := range sets {
		changes = append(changes, meta.Change{Key: "1/quotas/" + entity, Value: meta.EncodeQuotas(set), ModRevision: 1})
	}
	img, _, err := meta.Apply(meta.Empty(), 1, changes)
	require.NoError(t, err)
	n := 0
	for range img.EachQuota() {
		n++
	}
	require.Equal(t, len(sets), n, "every entity is known")
	return img
}

// usual are Kafka's windows.
func usual() Options {
	w := Window{Samples: 11, Length: time.Second}
	return Options{Clients: w, Mutations: w}
}

func manager(t testing.TB, o Options, quotas ...string) *Manager {
	t.Helper()
	m := New(o)
	m.Apply(image(t, quotas...))
	return m
}

var unknown = Client{User: "ANONYMOUS", ID: "unknown"}

func TestABurstIsPaidBackAndForgottenWhenItsSampleIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id producer_byte_rate=500")
		for range 10 {
			require.Zero(t, m.Charge(Produce, unknown, 400))
			time.Sleep(time.Second)
		}
		// 10 times 400 and 2300 in 10.5 s are 600 a second: 100 too many, for 10.5 s.
		time.Sleep(500 * time.Millisecond)
		d := m.Charge(Produce, unknown, 2300)
		require.Equal(t, 2100*time.Millisecond, d)
		time.Sleep(d)
		for range 10 {
			m.Charge(Produce, unknown, 400)
			time.Sleep(time.Second)
		}
		require.Zero(t, m.Charge(Produce, unknown, 0))
	})
}

func TestWhoWaitsAsToldKeepsToTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id=unknown producer_byte_rate=1000000")
		begin, sent := time.Now(), 0
		for time.Since(begin) < 60*time.Second {
			sent += 300_000
			time.Sleep(m.Charge(Produce, unknown, 300_000) + time.Millisecond)
		}
		require.InDelta(t, 1e6, float64(sent)/time.Since(begin).Seconds(), 2e5)
	})
}

func TestTheFirstBurstIsSpreadOverAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id producer_byte_rate=100")
		require.Zero(t, m.Charge(Produce, unknown, 1000), "10 s worth")
		require.Equal(t, 10*time.Millisecond, m.Charge(Produce, unknown, 1))
		require.Equal(t, 1000, m.MostOfFetch(unknown, 1000), "no quota on fetches")
		m.Apply(image(t, "client-id consumer_byte_rate=100"))
		require.Equal(t, 1000, m.MostOfFetch(unknown, 5000))
		require.Equal(t, 7, m.MostOfFetch(unknown, 7))
	})
}

func TestAThrottledFetchIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "user=ANONYMOUS consumer_byte_rate=100")
		require.Zero(t, m.ChargeFetch(unknown, 900))
		require.Equal(t, time.Second, m.ChargeFetch(unknown, 200))
		require.Zero(t, m.ChargeFetch(unknown, 100), "the 200 were taken back")
		m.Refund(unknown, 100)
		require.Zero(t, m.ChargeFetch(unknown, 100))
	})
}

func TestTimeOfRequestsIsPercentAndWaitsForOneSampleAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "user request_percentage=1")
		require.True(t, m.Bounds(Request))
		require.False(t, m.Bounds(Produce))
		require.Zero(t, m.ChargeTime(unknown, 100*time.Millisecond), "1 percent of 10 s")
		require.Equal(t, 100*time.Millisecond, m.ChargeTime(unknown, time.Millisecond))
		require.Equal(t, time.Second, m.ChargeTime(unknown, time.Second))
		time.Sleep(12 * time.Second)
		require.Zero(t, m.ChargeTime(unknown, time.Millisecond))
	})
}

func TestTheWindowIsAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := usual()
		o.Clients = Window{Samples: 3, Length: 2 * time.Second}
		m := manager(t, o, "client-id producer_byte_rate=100")
		require.Zero(t, m.Charge(Produce, unknown, 400), "4 s worth")
		require.Equal(t, 4*time.Second, m.Charge(Produce, unknown, 400))
		time.Sleep(6 * time.Second)
		require.Zero(t, m.Charge(Produce, unknown, 400))
	})
}

func TestPrecedenceOfEntities(t *testing.T) {
	// From the strongest to the weakest; each has a rate of its own.
	all := []string{
		"user=u/client-id=c", "user=u/client-id", "user=u", "user/client-id=c", "user/client-id", "user", "client-id=c", "client-id",
	}
	account := []Client{{"u", "c"}, {"u", "c"}, {"u", ""}, {"u", "c"}, {"u", "c"}, {"u", ""}, {"", "c"}, {"", "c"}}
	for first := range all {
		var quotas []string
		for i, e := range all[first:] {
			quotas = append(quotas, fmt.Sprintf("%s producer_byte_rate=%d", e, 1+first+i))
		}
		l := limitsOf(image(t, quotas...))
		bound, who, ok := l.tables[Produce].find(Client{User: "u", ID: "c"})
		require.True(t, ok, all[first])
		require.Equal(t, float64(1+first), bound, all[first])
		require.Equal(t, account[first], who, all[first])
		_, _, ok = l.tables[Fetch].find(Client{User: "u", ID: "c"})
		require.False(t, ok, "another kind")
	}
	l := limitsOf(image(t, "user=u/client-id=c producer_byte_rate=1", "user=u producer_byte_rate=3", "client-id=c producer_byte_rate=7"))
	for _, c := range []struct {
		client Client
		bound  float64
	}{
		{Client{"u", "other"}, 3}, {Client{"other", "c"}, 7}, {Client{"u", ""}, 3}, {Client{"other", "other"}, 0},
	} {
		bound, _, _ := l.tables[Produce].find(c.client)
		require.Equal(t, c.bound, bound, c.client)
	}
	l = limitsOf(image(t, "user/client-id producer_byte_rate=5", "client-id producer_byte_rate=8"))
	_, _, ok := l.tables[Produce].find(Client{User: "u"})
	require.False(t, ok, "a client without an id has the quotas of users only")
}

func TestConnectionsOfOneClientIDShareItsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id producer_byte_rate=100", "user=u/client-id producer_byte_rate=100")
		require.Zero(t, m.Charge(Produce, Client{"a", "c"}, 1000))
		require.NotZero(t, m.Charge(Produce, Client{"b", "c"}, 100), "an id is one account whoever uses it")
		require.Zero(t, m.Charge(Produce, Client{"a", "d"}, 1000), "another id has another")
		require.Zero(t, m.Charge(Produce, Client{"u", "c"}, 1000), "as has the id of a user with a quota of his own")
		require.NotZero(t, m.Charge(Produce, Client{"u", "c"}, 100))
	})
}

func TestAChangedQuotaHoldsAtOnceAndARemovedOneNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id=unknown producer_byte_rate=100")
		require.Zero(t, m.Charge(Produce, unknown, 1000))
		m.Apply(image(t, "client-id=unknown producer_byte_rate=50"))
		require.Equal(t, 10*time.Second, m.Charge(Produce, unknown, 0), "what was counted stays")
		m.Apply(image(t))
		require.Zero(t, m.Charge(Produce, unknown, 1e9))
		require.Zero(t, m.ChargeFetch(unknown, 1e9))
		require.Zero(t, m.ChargeTime(unknown, time.Hour))
		require.Nil(t, m.limits.Load())
	})
}

func TestChangesOfTopicsAreTokensOfABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := usual()
		o.Mutations.Samples = 10
		m := manager(t, o, "user=ANONYMOUS controller_mutation_rate=10")
		q := m.Mutations(unknown, true)
		require.True(t, q.Take(90))
		require.True(t, q.Take(90), "a request may overdraw it")
		require.Zero(t, q.Throttle())
		require.False(t, q.Take(1))
		require.Equal(t, 8*time.Second, q.Throttle())
		time.Sleep(3 * time.Second)
		require.Equal(t, 5*time.Second, q.Throttle())
		old := m.Mutations(unknown, false)
		require.True(t, old.Take(10), "older clients are not refused")
		require.Equal(t, 6*time.Second, old.Throttle())
		time.Sleep(6 * time.Second)
		q = m.Mutations(unknown, true)
		require.True(t, q.Take(1))
		time.Sleep(time.Hour)
		require.Equal(t, 100.0, m.Figures(9)[0].Tokens, "no more than a window's worth gathers")
	})
}

func TestWithoutAQuotaChangesOfTopicsAreFree(t *testing.T) {
	m := manager(t, usual(), "user=other controller_mutation_rate=1")
	for range 100 {
		q := m.Mutations(unknown, true)
		require.True(t, q.Take(1000))
		require.Zero(t, q.Throttle())
	}
	require.True(t, new(Mutations).Take(1))
	require.Zero(t, new(Mutations).Throttle())
}

func TestConnectionsFromAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "ip=10.0.0.1 connection_creation_rate=2", "ip connection_creation_rate=1", "ip=no+address connection_creation_rate=9")
		one, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")
		for range 20 {
			require.Zero(t, m.Connection(one))
		}
		require.Equal(t, 500*time.Millisecond, m.Connection(one))
		require.Equal(t, 500*time.Millisecond, m.Connection(one), "a refused one is not counted")
		for range 10 {
			require.Zero(t, m.Connection(other))
		}
		require.Equal(t, time.Second, m.Connection(other), "one sample at most")
		require.Zero(t, m.Connection(netip.Addr{}))
		m.Apply(image(t, "ip=10.0.0.1 connection_creation_rate=2"))
		require.Zero(t, m.Connection(other))
		m.Apply(image(t))
		require.Zero(t, m.Connection(one))
	})
}

func TestAccountsAreForgottenAndNeverTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id producer_byte_rate=1000")
		a := m.accounts[Produce]
		a.most = 3000
		for i := range 10_000 {
			m.Charge(Produce, Client{ID: fmt.Sprint(i)}, 1)
		}
		require.Len(t, a.all, 3000)
		require.Zero(t, m.Charge(Produce, Client{ID: "late"}, 1))
		require.NotZero(t, m.Charge(Produce, Client{ID: "late too"}, 1e6), "who has no room is held to the quota all the same")
		require.NotZero(t, m.Charge(Produce, Client{ID: "last"}, 1))
		time.Sleep(11 * time.Second)
		require.Zero(t, m.Charge(Produce, Client{ID: "last"}, 1))
		require.Len(t, a.all, 1, "those whose window is over made room")
		time.Sleep(idleFor)
		m.Expire()
		require.Empty(t, a.all)
	})
}

func TestNamesOfAnyLengthTakeBoundedRoom(t *testing.T) {
	m := manager(t, usual(), "client-id producer_byte_rate=1000")
	long := strings.Repeat("x", 30_000)
	m.Charge(Produce, Client{ID: long + "1"}, 10_000)
	require.Zero(t, m.Charge(Produce, Client{ID: long + "2"}, 10_000))
	require.NotZero(t, m.Charge(Produce, Client{ID: long + "1"}, 10_000))
	for c := range m.accounts[Produce].all {
		require.Less(t, len(c.ID), 2*maxName)
	}
	short := strings.Repeat("x", maxName)
	require.Equal(t, Client{ID: short}, bounded(Client{ID: short}))
}

func TestThrottlesFitAnAnswer(t *testing.T) {
	m := manager(t, usual(), "client-id producer_byte_rate=1")
	require.Equal(t, math.MaxInt32*time.Millisecond, m.Charge(Produce, unknown, 1e18))
	require.Zero(t, millis(0.4))
	require.Zero(t, millis(-5))
}

func TestFiguresTellRateAndThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manager(t, usual(), "client-id producer_byte_rate=100", "user=u consumer_byte_rate=100")
		m.Charge(Produce, unknown, 1000)
		m.Charge(Produce, unknown, 10)
		m.Charge(Produce, unknown, 20)
		m.ChargeFetch(Client{"u", "c"}, 500)
		require.Equal(t, []Figure{
			{Resource: "Produce", ClientID: "unknown", Rate: 103, Throttle: 200},
			{Resource: "Fetch", User: "u", Rate: 50},
		}, m.Figures(10))
		require.Len(t, m.Figures(1), 1)
		require.Empty(t, m.Figures(0))
	})
}

func TestManyAtOnce(t *testing.T) {
	m := manager(t, usual(), "client-id producer_byte_rate=1000", "ip connection_creation_rate=10", "user controller_mutation_rate=5")
	img := image(t, "user producer_byte_rate=7", "client-id request_percentage=3")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 300 {
				c := Client{User: "u", ID: fmt.Sprint(n % 5)}
				m.Charge(Produce, c, 10)
				m.ChargeFetch(c, 10)
				m.ChargeTime(c, time.Microsecond)
				m.Connection(netip.MustParseAddr("127.0.0.1"))
				q := m.Mutations(c, n%2 == 0)
				q.Take(1)
				if i == 0 && n%100 == 0 {
					m.Apply(img)
					m.Expire()
					m.Figures(100)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkChargeWithoutQuotas(b *testing.B) {
	m := New(usual())
	b.ReportAllocs()
	for b.Loop() {
		m.Charge(Produce, unknown, 1000)
	}
}

func BenchmarkCharge(b *testing.B) {
	m := manager(b, usual(), "client-id producer_byte_rate=1000000000")
	b.ReportAllocs()
	for b.Loop() {
		m.Charge(Produce, unknown, 1000)
	}
}
