package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestFenceFallsBeforeTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFence()
		go f.run()
		defer f.end()
		var told fences
		f.listen(told.add)
		require.True(t, f.fenced())

		asked := time.Now()
		pass(3 * time.Second) // etcd took its time to answer.
		f.renew(asked, 10*time.Second)
		require.False(t, f.fenced())
		pass(6*time.Second - time.Nanosecond)
		require.False(t, f.fenced())
		pass(time.Nanosecond)
		require.True(t, f.fenced())
		pass(time.Second)
		require.Equal(t, []bool{false, true}, told.get())

		f.renew(time.Now(), 10*time.Second)
		pass(5 * time.Second)
		f.renew(time.Now(), 10*time.Second)
		pass(8 * time.Second)
		require.False(t, f.fenced())
		require.Equal(t, []bool{false, true, false}, told.get())
		f.drop()
		require.True(t, f.fenced())
		synctest.Wait()
		require.Equal(t, []bool{false, true, false, true}, told.get())
	})
}

func TestFenceIsNotLiftedAfterItsEnd(t *testing.T) {
	f := newFence()
	f.end()
	f.end()
	f.renew(time.Now(), time.Hour)
	require.True(t, f.fenced())
	f.run()
}

func TestRenewalAskedTooLongAgoDoesNotLiftTheFence(t *testing.T) {
	f := newFence()
	f.renew(time.Now().Add(-9*time.Second), 10*time.Second)
	require.True(t, f.fenced())
}

func TestWallClockThatJumpedFences(t *testing.T) {
	now := time.Now()
	g := grant{asked: now, life: 9 * time.Second}
	require.Equal(t, 9*time.Second, g.left(now))
	slept := now.Add(time.Hour).Round(0) // The wall clock alone went on, as in a machine that slept.
	require.Negative(t, g.left(slept))
	require.Negative(t, g.left(now.Add(10*time.Second)))
}
