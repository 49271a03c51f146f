package protocol

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBudgetLetsInInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{limit: 1 << 20}
		holder := new(Call)
		require.True(t, b.tryAcquire(1<<20))
		owner := new(Call)
		require.True(t, b.acquire(owner, 1<<19, nil, nil), "one may go beyond the limit")
		var order []int
		var mu sync.Mutex
		for i := range 3 {
			go func() {
				call := new(Call)
				require.True(t, b.acquire(call, 1<<19, nil, nil))
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		require.False(t, b.tryAcquire(smallBytes+1), "nobody overtakes the line")
		require.True(t, b.tryAcquire(smallBytes), "but small ones do")
		require.Empty(t, order)
		b.release(new(Call), smallBytes)
		b.release(holder, 1<<20)
		synctest.Wait()
		require.Equal(t, []int{0}, order)
		b.release(owner, 1<<19)
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 1, 2}, order, "the next one in line became the owner")
	})
}

func TestBudgetStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{limit: 1 << 20}
		require.True(t, b.acquire(new(Call), 2<<20, nil, nil))
		stop := make(chan struct{})
		gone := make(chan bool)
		go func() { gone <- b.acquire(new(Call), 1<<20, nil, stop) }()
		synctest.Wait()
		require.Equal(t, int32(1), b.waiting.Load())
		close(stop)
		require.False(t, <-gone)
		require.Zero(t, b.waiting.Load())
		require.Equal(t, int64(2<<20), b.used.Load())
	})
}

// Requests that grow while all want more than there is: each gets through, the
// bound holds, and nothing is left over.
func TestBudgetNeverLocksUp(t *testing.T) {
	const limit, whole = 1 << 20, 1 << 19
	b := &budget{limit: limit}
	var highest atomic.Int64
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(n)))
			call := new(Call)
			for range 2000 {
				var held int64
				for held < whole {
					more := min(whole-held, 1+rng.Int64N(whole))
					if !b.tryAcquire(more) {
						assert.True(t, b.acquire(call, more, nil, nil))
					}
					held += more
					for used := b.used.Load(); used > highest.Load(); {
						highest.Store(used)
					}
				}
				b.release(call, held)
			}
		})
	}
	wg.Wait()
	require.Zero(t, b.used.Load())
	require.Zero(t, b.waiting.Load())
	require.Nil(t, b.owner.Load())
	require.LessOrEqual(t, highest.Load(), int64(2*limit+whole))
}

// With the memory for requests spent by clients that stall, small requests are
// served, large ones wait, and the stalled ones are cut off.
func TestStalledRequestsDoNotHoldTheOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		closed := make(chan error, 9)
		s, err := Listen(Options{
			Listeners: []Listener{{Name: "L", Net: ln}}, APIs: (&fakeBroker{}).apis(),
			MaxRequestBytes: 1 << 20, MaxTotalBytes: 1 << 20,
			Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }},
		})
		require.NoError(t, err)
		s.Serve()
		frame := frameOf(produceTo(1, make([]byte, 1<<20-100)), 1, "c")
		stalled := []net.Conn{ln.dial(), ln.dial()} // one within the limit, one beyond
		for _, nc := range stalled {
			_, err = nc.Write(frame[:600_000])
			require.NoError(t, err)
		}
		large := ln.dial()
		go func() { _, _ = large.Write(frame) }()
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Waiting)

		small := ln.dial()
		_, err = small.Write(frameOf(metadataOf(9), 1, "c"))
		require.NoError(t, err)
		_, err = small.Read(make([]byte, 500))
		require.NoError(t, err)

		start := time.Now()
		_, err = large.Read(make([]byte, 500))
		require.NoError(t, err)
		require.InDelta(t, stallTimeout.Seconds(), time.Since(start).Seconds(), 2)
		require.ErrorIs(t, <-closed, ErrStalled)
		for _, nc := range append(stalled, large, small) {
			require.NoError(t, nc.Close())
		}
		synctest.Wait()
		require.Zero(t, s.Stats().FrameBytes)
		require.Len(t, closed, 3)
		require.NoError(t, s.Close(context.Background()))
	})
}

// A client that does not read its answer is cut off when others need the memory; one that reads slowly is not.
func TestUnreadAnswersAreCutOffWhenOthersNeedTheirMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		closed := make(chan error, 9)
		var released atomic.Int32
		var crowded atomic.Bool
		large := make([]byte, 3*strideBytes+7)
		s, err := Listen(Options{
			Listeners: []Listener{{Name: "L", Net: ln}}, Crowded: crowded.Load,
			APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
				return c.Reply(Reply{Body: &Buffers{Pieces: [][]byte{large[:9], large[9:]}, Release: func() { released.Add(1) }}})
			}}},
			Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }},
		})
		require.NoError(t, err)
		s.Serve()
		stuck, slow := ln.dial(), ln.dial()
		for _, nc := range []net.Conn{stuck, slow} {
			_, err = nc.Write(frameOf(metadataOf(9), 1, "c"))
			require.NoError(t, err)
		}
		time.Sleep(time.Minute + 500*time.Millisecond) // between two rounds of the sweeper
		require.Empty(t, closed, "nobody needs the memory")
		crowded.Store(true)
		for left := sizeLen + 4 + 1 + len(large); left > 0; { // a stride every eight seconds
			n, err := io.ReadFull(slow, make([]byte, min(left, strideBytes)))
			require.NoError(t, err)
			left -= n
			time.Sleep(8 * time.Second)
		}
		require.ErrorIs(t, <-closed, ErrUnread)
		synctest.Wait()
		require.EqualValues(t, 2, released.Load())
		require.Empty(t, closed)
		require.NoError(t, errors.Join(stuck.Close(), slow.Close()))
		require.NoError(t, s.Close(context.Background()))
	})
}
