package protocol

import (
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoneProduceTakesNoMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop things under the race detector")
	}
	s := serve(t, Options{APIs: ackAPI()})
	c := dial(t, s, "PLAINTEXT")
	frame := frameOf(produceTo(1, make([]byte, 2000)), 1, "c")
	buf := make([]byte, 512)
	var answer int
	exchange := func() {
		_, err := c.nc.Write(frame)
		require.NoError(t, err)
		n, err := io.ReadAtLeast(c.nc, buf, max(answer, 1))
		require.NoError(t, err)
		answer = n
	}
	exchange()
	require.Less(t, testing.AllocsPerRun(2000, exchange), 1.0)
}

func TestIdleConnectionsHoldNoBuffers(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	const n = 300
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	dial(t, s, "PLAINTEXT").alive()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC() // twice, to empty the pools
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = dial(t, s, "PLAINTEXT")
		clients[i].alive()
	}
	var after uint64
	require.Eventually(t, func() bool {
		after = heap()
		return after < before+n*lookahead/2
	}, 5*time.Second, 10*time.Millisecond, "%d bytes a connection", (after-before)/n)
	runtime.KeepAlive(clients)
}

func TestParkedFetchHoldsNoRequestMemory(t *testing.T) {
	b := &fakeBroker{submitted: make(chan int32, 2)}
	s := serve(t, Options{APIs: b.apis()})
	c := dial(t, s, "PLAINTEXT")
	c.send(append(frameOf(fetchFor(time.Minute), 1, "c"), frameOf(fetchFor(time.Minute), 2, "c")...))
	<-b.submitted
	<-b.submitted
	require.Eventually(t, func() bool {
		return s.Stats().FrameBytes == 0 && s.Stats().DecodedBytes == 0
	}, 5*time.Second, time.Millisecond)
}

// Clients that vanish at any point leave nothing behind: serve checks that all
// memory was given back, and TestMain that all goroutines ended.
func TestClientsMayVanishAtAnyPoint(t *testing.T) {
	b := &fakeBroker{}
	s := serve(t, Options{APIs: b.apis(), MaxInFlight: 4, MaxTotalBytes: 1 << 20, MaxRequestBytes: 1 << 20})
	big := make([]byte, 300_000)
	var stream []byte
	for id := range int32(6) {
		stream = append(stream, frameOf(metadataOf(9), id, "c")...)
		stream = append(stream, frameOf(produceTo(1, big), id, "c")...)
		stream = append(stream, frameOf(fetchFor(3*time.Millisecond), id, "c")...)
		stream = append(stream, frameOf(produceTo(0, []byte("r")), id, "c")...)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(71, uint64(n)))
			for range 60 {
				nc, err := net.Dial("tcp", s.Addrs()["PLAINTEXT"].String())
				if !assert.NoError(t, err) {
					return
				}
				assert.NoError(t, nc.SetDeadline(time.Now().Add(10*time.Second)))
				done, read := make(chan struct{}), rng.Int64N(2000)
				go func() {
					_, _ = io.CopyN(io.Discard, nc, read)
					close(done)
				}()
				_, _ = nc.Write(stream[:rng.IntN(len(stream))])
				if rng.IntN(2) == 0 {
					_ = nc.(*net.TCPConn).SetLinger(0) // a reset
				}
				_ = nc.Close()
				<-done
			}
		})
	}
	wg.Wait()
	dial(t, s, "PLAINTEXT").alive()
}
