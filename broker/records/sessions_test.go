package records

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/replica"
)

func sized(n int64) *session {
	s := &session{turn: make(chan struct{}, 1), waiter: replica.NewWaiter()}
	s.turn <- struct{}{}
	s.size.Store(n)
	return s
}

func TestFullSessionTableRefusesWhileAllAreFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var evictions metrics.Counter
		c := newSessions(3, &evictions)
		for range 3 {
			require.True(t, c.add(sized(10)))
		}
		require.False(t, c.add(sized(1000)), "young sessions keep their slots, however large the new one is")
		elapse(staleAfter)
		require.False(t, c.add(sized(1000)), "at the limit they are not stale yet")
		require.Zero(t, evictions.Value())
	})
}

func TestStaleSessionMakesRoomForAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var evictions metrics.Counter
		c := newSessions(3, &evictions)
		var all []*session
		for range 3 {
			s := sized(100)
			require.True(t, c.add(s))
			all = append(all, s)
			elapse(time.Second)
		}
		elapse(staleAfter - time.Second)
		c.get(all[0].id)
		require.True(t, c.add(sized(1)))
		require.EqualValues(t, 1, evictions.Value())
		require.NotNil(t, c.get(all[0].id), "used just now")
		require.Nil(t, c.get(all[1].id), "unused for longest")
		require.NotNil(t, c.get(all[2].id))
		require.True(t, all[1].isClosed())
	})
}

func TestLargerSessionTakesTheSlotOfASmallOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSessions(2, new(metrics.Counter))
		small, large := sized(5), sized(50)
		require.True(t, c.add(small))
		require.True(t, c.add(large))
		elapse(staleAfter + time.Second)
		c.get(small.id)
		c.get(large.id)
		require.False(t, c.add(sized(4)), "smaller than all")
		require.True(t, c.add(sized(5)))
		require.Nil(t, c.get(small.id))
		require.NotNil(t, c.get(large.id))
	})
}

func TestSessionTableCountsAndRemoves(t *testing.T) {
	c := newSessions(10, new(metrics.Counter))
	a, b := sized(3), sized(4)
	require.True(t, c.add(a))
	require.True(t, c.add(b))
	require.NotEqual(t, a.id, b.id)
	require.Positive(t, a.id)
	n, parts := c.count()
	require.Equal(t, 2, n)
	require.Equal(t, 7, parts)
	c.remove(a.id)
	c.remove(a.id)
	require.Nil(t, c.get(a.id))
	require.True(t, a.isClosed())
	n, parts = c.count()
	require.Equal(t, 1, n)
	require.Equal(t, 4, parts)
}

func TestSessionEpochsCountAndWrap(t *testing.T) {
	s := sized(1)
	s.epoch, s.byID = 1, true
	_, err := s.advance(2, true)
	require.ErrorIs(t, err, kerr.InvalidFetchSessionEpoch)
	_, err = s.advance(1, false)
	require.ErrorIs(t, err, kerr.FetchSessionTopicIDError)
	next, err := s.advance(1, true)
	require.NoError(t, err)
	require.EqualValues(t, 2, next)
	require.True(t, s.current(2))

	s.epoch = math.MaxInt32
	next, err = s.advance(math.MaxInt32, true)
	require.NoError(t, err)
	require.EqualValues(t, 1, next)

	s.close()
	_, err = s.advance(1, true)
	require.ErrorIs(t, err, kerr.FetchSessionIDNotFound)
}

func TestQueueKeepsOrderAndForgetsNothing(t *testing.T) {
	var q queue
	parts := make([]part, 4)
	order := func() (out []int) {
		for pt := q.head; pt != nil; pt = pt.next {
			for i := range parts {
				if pt == &parts[i] {
					out = append(out, i)
				}
			}
		}
		return out
	}
	for i := range parts {
		q.push(&parts[i])
		q.push(&parts[i])
	}
	require.Equal(t, []int{0, 1, 2, 3}, order())
	q.remove(&parts[0])
	q.remove(&parts[2])
	q.remove(&parts[2])
	require.Equal(t, []int{1, 3}, order())
	q.push(&parts[0])
	q.remove(&parts[3])
	require.Equal(t, []int{1, 0}, order())
	q.remove(&parts[1])
	q.remove(&parts[0])
	require.Nil(t, q.head)
	require.Nil(t, q.tail)
	require.Zero(t, q.n)
}

func TestBudgetGivesLessAndLessAndTakesAllBack(t *testing.T) {
	b := budget{limit: 1000}
	take := func(want int) int {
		n, ok := b.take(want)
		require.True(t, ok)
		return n
	}
	require.Equal(t, 100, take(100))
	require.Equal(t, 450, take(5000))
	require.Equal(t, 225, take(5000))
	b.change(300) // A single batch was larger than what was granted.
	_, ok := b.take(5000)
	require.False(t, ok)
	b.change(-1075)
	require.Zero(t, b.used.Load())
	require.Equal(t, 500, take(500))
}

func TestWhoWaitsForMemoryGetsWhatIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget{limit: 1000}
		b.change(1500)
		late := time.NewTimer(time.Minute)
		got := make(chan int, 3)
		for range 3 {
			go func() {
				n, ok := b.wait(100, nil, t.Context().Done(), late.C)
				require.True(t, ok)
				got <- n
			}()
		}
		b.change(-400) // Not enough: more is held than there is.
		synctest.Wait()
		require.Empty(t, got)
		b.change(-600)
		synctest.Wait()
		require.Len(t, got, 3)
		b.change(2000)
		_, ok := b.wait(1, nil, nil, late.C)
		require.False(t, ok, "nobody gives anything back")
		require.Zero(t, b.waiting.Load())
	})
}

func TestPartsOfAllSessionsAreBounded(t *testing.T) {
	c := newSessions(10, new(metrics.Counter))
	c.maxParts = 100
	a, b := sized(60), sized(30)
	require.True(t, c.add(a))
	require.True(t, c.add(b))
	require.False(t, c.add(sized(11)))
	c.resize(b, 40)
	require.False(t, b.isClosed())
	c.resize(b, 41)
	require.True(t, b.isClosed(), "what grows too large loses its slot")
	require.False(t, a.isClosed())
	n, parts := c.count()
	require.Equal(t, 1, n)
	require.Equal(t, 60, parts)
	c.resize(b, 5)
	c.remove(a.id)
	n, parts = c.count()
	require.Zero(t, n)
	require.Zero(t, parts)
}
