package protocol

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAnswersLeaveInTheOrderOfRequestsBehindALongFetch(t *testing.T) {
	b := &fakeBroker{submitted: make(chan int32, 5), ended: make(chan error, 1)}
	s := serve(t, Options{APIs: b.apis()})
	c := dial(t, s, "PLAINTEXT")
	fetch, metadata, produce := fetchFor(300*time.Millisecond), metadataOf(9), produceTo(1, []byte("r"))
	versions := kmsg.NewPtrApiVersionsRequest()
	start := time.Now()
	var sent []byte
	sent = append(sent, frameOf(fetch, 1, "c")...)
	sent = append(sent, frameOf(metadata, 2, "c")...)
	sent = append(sent, frameOf(produceTo(0, []byte("r")), 3, "c")...)
	sent = append(sent, frameOf(produce, 4, "c")...)
	sent = append(sent, frameOf(versions, 5, "c")...)
	c.send(sent)
	for _, want := range []int32{1, 2, 3, 4} {
		require.Equal(t, want, <-b.submitted, "submitted while the fetch waits")
	}
	require.Empty(t, b.ended, "the fetch still waits")
	c.answer(fetch, 1)
	require.GreaterOrEqual(t, time.Since(start), 300*time.Millisecond)
	c.answer(metadata, 2)
	c.answer(produce, 4)
	c.answer(versions, 5)
}

// Random mixes on many sockets: every answer comes, in order, and is the answer
// to its request.
func TestRandomPipelinesKeepTheirOrder(t *testing.T) {
	b := &fakeBroker{}
	s := serve(t, Options{APIs: b.apis(), MaxInFlight: 7})
	rounds := 500
	if raceEnabled {
		rounds = 50
	}
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() { randomPipeline(t, s, rand.New(rand.NewPCG(11, uint64(n))), rounds) })
	}
	wg.Wait()
}

// randomPipeline sends rounds of requests in random pieces, and checks answers.
func randomPipeline(t *testing.T, s *Server, rng *rand.Rand, rounds int) {
	type sent struct {
		req kmsg.Request
		id  int32
	}
	expect := make(chan sent, 64)
	c := dial(t, s, "PLAINTEXT")
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			for range expect { // after a failure
			}
		}()
		for e := range expect {
			resp := c.answer(e.req, e.id)
			if f, ok := resp.(*kmsg.FetchResponse); ok {
				require.Equal(t, e.id, f.SessionID)
			}
		}
	})
	big := bytes.Repeat([]byte("x"), 100_000)
	var id int32
	for range rounds {
		var out []byte
		for range 1 + rng.IntN(5) {
			id++
			var req kmsg.Request
			answered := true
			switch rng.IntN(8) {
			case 0:
				f := fetchFor(time.Millisecond)
				f.SessionID = id
				req = f
			case 1:
				f := fetchFor(0)
				f.SessionID = id
				req = f
			case 2:
				req, answered = produceTo(0, []byte("r")), false
			case 3:
				req = produceTo(1, big[:rng.IntN(len(big))])
			case 4:
				req = produceTo(1, []byte("r"))
			case 5:
				v := kmsg.NewPtrApiVersionsRequest()
				v.Version, v.ClientSoftwareName, v.ClientSoftwareVersion = int16(rng.IntN(5)), "a", "1"
				req = v
			default:
				req = metadataOf(int16(rng.IntN(14)))
			}
			out = append(out, frameOf(req, id, "c")...)
			if answered {
				expect <- sent{req, id}
			}
		}
		for len(out) > 0 {
			n := len(out)
			if rng.IntN(3) == 0 {
				n = 1 + rng.IntN(n)
			}
			c.send(out[:n])
			out = out[n:]
		}
	}
	close(expect)
	wg.Wait()
}

func TestHalfClosedClientStillGetsItsAnswers(t *testing.T) {
	b := &fakeBroker{}
	s := serve(t, Options{APIs: b.apis()})
	c := dial(t, s, "PLAINTEXT")
	fetch, metadata := fetchFor(20*time.Second), metadataOf(9)
	c.send(append(frameOf(metadata, 1, "c"), frameOf(fetch, 2, "c")...))
	require.NoError(t, c.nc.(*net.TCPConn).CloseWrite())
	c.answer(metadata, 1)
	c.answer(fetch, 2) // early: nobody asks for more
	c.closed()
}

func TestHangUpEndsTheCallsThatWait(t *testing.T) {
	b := &fakeBroker{submitted: make(chan int32, 1), ended: make(chan error, 1)}
	closed := make(chan error, 1)
	s := serve(t, Options{APIs: b.apis(), Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }}})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(fetchFor(time.Hour), 1, "c"))
	<-b.submitted
	require.NoError(t, c.nc.Close())
	require.ErrorIs(t, <-b.ended, ErrHungUp)
	require.ErrorIs(t, <-closed, ErrHungUp)
}

func TestEndBetweenRequestsIsNoError(t *testing.T) {
	closed := make(chan error, 1)
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }}})
	c := dial(t, s, "PLAINTEXT")
	c.send(frameOf(metadataOf(1), 1, "c"))
	c.answer(metadataOf(1), 1)
	require.NoError(t, c.nc.Close())
	require.NoError(t, <-closed)
}

func TestCallsAreSubmittedWhileEarlierOnesWaitForTheDisk(t *testing.T) {
	b := &fakeBroker{submitted: make(chan int32, 10), hold: make(chan struct{})}
	s := serve(t, Options{APIs: b.apis()})
	c := dial(t, s, "PLAINTEXT")
	var sent []byte
	for id := range int32(5) {
		sent = append(sent, frameOf(produceTo(1, []byte("r")), id, "c")...)
	}
	c.send(sent)
	for id := range int32(5) {
		require.Equal(t, id, <-b.submitted, "all five share one sync")
	}
	close(b.hold)
	for id := range int32(5) {
		c.answer(produceTo(1, nil), id)
	}
}

func TestNothingOvertakesACallThatIsAlone(t *testing.T) {
	for _, before := range []int32{0, 1, 5} {
		submitted, hold := make(chan int32, 9), make(chan struct{})
		s := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			id := c.CorrelationID
			submitted <- id
			resp := c.Request.ResponseKind()
			if *c.ClientID != "alone" {
				return func() Reply { <-hold; return Reply{Msg: resp} }
			}
			c.Alone()
			return func() Reply { <-hold; submitted <- -id; return Reply{None: true} }
		}}}})
		c := dial(t, s, "PLAINTEXT")
		var sent []byte
		for id := range before {
			sent = append(sent, frameOf(metadataOf(9), id, "c")...)
		}
		sent = append(sent, frameOf(metadataOf(9), 10, "alone")...)
		sent = append(sent, frameOf(metadataOf(9), 20, "alone")...)
		sent = append(sent, frameOf(metadataOf(9), 30, "c")...)
		c.send(sent)
		for id := range before {
			require.Equal(t, id, <-submitted)
		}
		require.Equal(t, int32(10), <-submitted)
		require.Never(t, func() bool { return len(submitted) > 0 }, 30*time.Millisecond, 5*time.Millisecond)
		close(hold)
		for _, want := range []int32{-10, 20, -20, 30} {
			require.Equal(t, want, <-submitted)
		}
		for id := range before {
			c.answer(metadataOf(9), id)
		}
		c.answer(metadataOf(9), 30)
	}
}

// A request of which only a part has come is read on while the one before it
// waits.
func TestReadingGoesOnWhenMoreHasCome(t *testing.T) {
	for _, part := range []int{2, 6, 20} {
		b := &fakeBroker{submitted: make(chan int32, 2), hold: make(chan struct{})}
		s := serve(t, Options{APIs: b.apis()})
		c := dial(t, s, "PLAINTEXT")
		first, second := frameOf(produceTo(1, []byte("r")), 1, "c"), frameOf(produceTo(1, []byte("r")), 2, "c")
		c.send(append(first[:len(first):len(first)], second[:part]...))
		require.Equal(t, int32(1), <-b.submitted)
		c.send(second[part:])
		select {
		case id := <-b.submitted:
			require.Equal(t, int32(2), id)
		case <-time.After(5 * time.Second):
			require.Fail(t, "the second request was not read", "after %d bytes of it", part)
		}
		close(b.hold)
		c.answer(produceTo(1, nil), 1)
		c.answer(produceTo(1, nil), 2)
	}
}

// A server holds no more of a connection than it may, however much the client
// sends, and goes on when there is room.
func TestRequestsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{submitted: make(chan int32, 100)}
		ln := newPipeListener()
		s, err := Listen(Options{Listeners: []Listener{{Name: "L", Net: ln}}, APIs: b.apis(), MaxInFlight: 3})
		require.NoError(t, err)
		s.Serve()
		c := &client{t, ln.dial()}
		var sent []byte
		for id := range int32(20) {
			sent = append(sent, frameOf(fetchFor(30*time.Millisecond), id, "c")...)
		}
		go func() { _, _ = c.nc.Write(sent) }()
		for id := range int32(20) {
			synctest.Wait()
			require.Len(t, b.submitted, min(20, int(id)+3))
			c.answer(fetchFor(0), id)
		}
		require.NoError(t, c.nc.Close())
		require.NoError(t, s.Close(context.Background()))
	})
}

func TestBytesInFlightAreBounded(t *testing.T) {
	b := &fakeBroker{submitted: make(chan int32, 100), hold: make(chan struct{})}
	s := serve(t, Options{APIs: b.apis(), MaxInFlightBytes: 250_000})
	c := dial(t, s, "PLAINTEXT")
	big := make([]byte, 100_000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for id := range int32(10) {
			c.send(frameOf(produceTo(1, big), id, "c"))
		}
	})
	for range 2 {
		<-b.submitted
	}
	require.Never(t, func() bool { return len(b.submitted) > 0 }, 50*time.Millisecond, 10*time.Millisecond)
	close(b.hold)
	for id := range int32(10) {
		c.answer(produceTo(1, nil), id)
	}
	wg.Wait()
}

func TestAnswersThatAreReadyTogetherLeaveInOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ln := newPipeListener()
		s, err := Listen(Options{
			Listeners: []Listener{{Name: "PLAINTEXT", Net: ln}},
			APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
				c.MayPark()
				c.ReadyWhen(func() bool {
					select {
					case <-release:
						return true
					default:
						return false
					}
				})
				resp := c.Request.ResponseKind()
				return func() Reply { <-release; return Reply{Msg: resp} }
			}}},
		})
		require.NoError(t, err)
		s.Serve()
		nc := ln.dial()
		var sent []byte
		for id := range int32(4) {
			sent = append(sent, frameOf(metadataOf(9), id, "c")...)
		}
		_, err = nc.Write(sent)
		require.NoError(t, err)
		synctest.Wait()
		close(release)
		b := make([]byte, 4096)
		n, err := nc.Read(b) // a pipe gives one write to one read
		require.NoError(t, err)
		answers := 0
		for rest := b[:n]; len(rest) > 0; answers++ {
			rest = rest[4+binary.BigEndian.Uint32(rest):]
		}
		require.Equal(t, 4, answers)
		require.NoError(t, nc.Close())
		require.NoError(t, s.Close(context.Background()))
	})
}

func TestLargeRequestsArriveWhole(t *testing.T) {
	sums := make(chan int, 1)
	s := serve(t, Options{APIs: []API{{Key: 0, Min: 3, Max: 13, MaxBytes: 100 << 20, Decode: DecodeProduce, Submit: func(c *Call) Finish {
		records := c.Body.(*ProduceRequest).Topics[0].Partitions[0].Records
		sum := 0
		for _, b := range records {
			sum += int(b)
		}
		sums <- sum
		return c.Answer(kmsg.NewPtrProduceResponse())
	}}}})
	c := dial(t, s, "PLAINTEXT")
	for _, n := range []int{0, 1, lookahead - 100, lookahead, lookahead + 1, 1 << 20, 30 << 20} {
		records := bytes.Repeat([]byte{7}, n)
		c.send(frameOf(produceTo(1, records), int32(n), "c"))
		require.Equal(t, 7*n, <-sums)
		c.answer(produceTo(1, nil), int32(n))
	}
}

// The writer, when it has written an answer, touches nothing that the reader has then, also behind a large one.
func TestAnswersOfTheReaderFollowLargeOnesOfTheWriter(t *testing.T) {
	body := make([]byte, flushBytes)
	s := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
		if *c.ClientID == "small" {
			return c.Answer(c.Request.ResponseKind())
		}
		c.MayPark()
		return func() Reply { return Reply{Body: &Buffers{Pieces: [][]byte{body}}} }
	}}}})
	c := dial(t, s, "PLAINTEXT")
	for i := range int32(500) {
		c.send(frameOf(metadataOf(9), 2*i, "large"))
		id, _ := c.receive()
		require.Equal(t, 2*i, id)
		c.send(frameOf(metadataOf(9), 2*i+1, "small"))
		id, _ = c.receive()
		require.Equal(t, 2*i+1, id)
	}
}
