package protocol

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// alive makes an exchange on a connection.
func (c *client) alive() {
	c.t.Helper()
	c.send(frameOf(metadataOf(1), 1, "c"))
	c.answer(metadataOf(1), 1)
}

func TestConnectionsBeyondTheLimitWaitForOneToEnd(t *testing.T) {
	for name, limits := range map[string]Limits{
		"of the broker":   {MaxConnections: 2},
		"of the listener": {Listeners: map[string]ListenerLimits{"PLAINTEXT": {MaxConnections: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			rejections := make(chan Rejection, 9)
			s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Limits: limits, Events: Events{Rejected: func(r Rejection) { rejections <- r }}})
			a, b := dial(t, s, "PLAINTEXT"), dial(t, s, "PLAINTEXT")
			a.alive()
			b.alive()
			require.Contains(t, (<-rejections).Limit, "max.connections")
			c := dial(t, s, "PLAINTEXT")
			c.send(frameOf(metadataOf(1), 1, "c"))
			require.NoError(t, c.nc.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
			_, err := c.nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, c.nc.SetReadDeadline(time.Now().Add(10*time.Second)))
			require.NoError(t, a.nc.Close())
			c.answer(metadataOf(1), 1)
		})
	}
}

func TestClientsLeaveFilesForOthers(t *testing.T) {
	rejections := make(chan Rejection, 9)
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), OpenFiles: 4, Events: Events{Rejected: func(r Rejection) { rejections <- r }}})
	a, b := dial(t, s, "PLAINTEXT"), dial(t, s, "PLAINTEXT")
	a.alive()
	b.alive()
	require.Contains(t, (<-rejections).Limit, "ulimit")
	c := dial(t, s, "PLAINTEXT")
	require.NoError(t, a.nc.Close())
	c.alive()

	require.Equal(t, 128, connectionsOf(256))
	require.Equal(t, 512, connectionsOf(1024))
	require.Equal(t, 1048576-1024, connectionsOf(1048576))
	require.Equal(t, 1, connectionsOf(0))
}

func TestRaisedLimitLetsWaitingConnectionsIn(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), Limits: Limits{MaxConnections: 1}})
	dial(t, s, "PLAINTEXT").alive()
	c := dial(t, s, "PLAINTEXT")
	s.SetLimits(Limits{MaxConnections: 2})
	c.alive()
	require.Equal(t, map[string]int{"PLAINTEXT": 2}, s.Stats().Connections)
}

func TestConnectionsOfOneAddressBeyondItsLimitAreClosed(t *testing.T) {
	rejections := make(chan Rejection, 9)
	local := netip.MustParseAddr("127.0.0.1")
	s := serve(t, Options{
		APIs: (&fakeBroker{}).apis(), Events: Events{Rejected: func(r Rejection) { rejections <- r }},
		Limits: Limits{MaxConnectionsPerIP: 9, PerIP: map[netip.Addr]int{local: 1}},
	})
	a := dial(t, s, "PLAINTEXT")
	a.alive()
	b := dial(t, s, "PLAINTEXT")
	b.closed()
	r := <-rejections
	require.Equal(t, "max.connections.per.ip", r.Limit)
	require.Equal(t, b.nc.LocalAddr().String(), r.Remote.String())
	require.NoError(t, a.nc.Close())
	require.Eventually(t, func() bool { return s.Stats().Connections["PLAINTEXT"] == 0 }, 30*time.Second, time.Millisecond)
	dial(t, s, "PLAINTEXT").alive()
	s.SetLimits(Limits{PerIP: map[netip.Addr]int{local: 0}})
	dial(t, s, "PLAINTEXT").closed()
}

func TestNewConnectionsComeAtTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		s, err := Listen(Options{Listeners: []Listener{{Name: "L", Net: ln}}, Limits: Limits{CreationRate: 10}})
		require.NoError(t, err)
		s.Serve()
		start := time.Now()
		for range 30 {
			nc := ln.dial()
			defer nc.Close()
		}
		// One second's worth at once, the rest at the rate.
		require.InDelta(t, 1.9, time.Since(start).Seconds(), 0.2)
		require.NoError(t, s.Close(context.Background()))
	})
}

func TestConnectionWithoutTrafficIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, own := newPipeListener(), newPipeListener()
		closed := make(chan error, 9)
		s, err := Listen(Options{
			Listeners: []Listener{{Name: "L", Net: ln}, {Name: "OWN", Net: own}}, APIs: (&fakeBroker{}).apis(),
			Limits: Limits{IdleTimeout: time.Minute, Listeners: map[string]ListenerLimits{"OWN": {IdleTimeout: 10 * time.Second}}},
			Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }},
		})
		require.NoError(t, err)
		s.Serve()
		a, b := ln.dial(), own.dial()
		<-time.After(13 * time.Second)
		require.ErrorIs(t, <-closed, ErrIdle)
		_, err = b.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)

		// An exchange begins the time anew; a fetch that waits is no idleness.
		exchange := func(frame []byte, answer int) {
			_, err := a.Write(frame)
			require.NoError(t, err)
			_, err = io.ReadAtLeast(a, make([]byte, 200), answer)
			require.NoError(t, err)
		}
		<-time.After(40 * time.Second)
		exchange(frameOf(metadataOf(9), 1, "c"), 10)
		<-time.After(40 * time.Second)
		exchange(frameOf(fetchFor(5*time.Minute), 2, "c"), 10)
		require.Empty(t, closed)
		<-time.After(63 * time.Second)
		require.ErrorIs(t, <-closed, ErrIdle)
		require.NoError(t, s.Close(context.Background()))
	})
}

func TestClientThatTakesNoAnswersIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		closed := make(chan error, 1)
		s, err := Listen(Options{
			Listeners: []Listener{{Name: "L", Net: ln}}, APIs: (&fakeBroker{}).apis(),
			Limits: Limits{IdleTimeout: time.Minute},
			Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }},
		})
		require.NoError(t, err)
		s.Serve()
		a := ln.dial()
		_, err = a.Write(frameOf(metadataOf(9), 1, "c"))
		require.NoError(t, err)
		<-time.After(63 * time.Second)
		require.ErrorIs(t, <-closed, ErrIdle)
		require.NoError(t, a.Close())
		require.NoError(t, s.Close(context.Background()))
	})
}

func TestDrainAnswersWhatWasSubmittedAndEndsWhatWaits(t *testing.T) {
	b := &fakeBroker{submitted: make(chan int32, 9), ended: make(chan error, 1), hold: make(chan struct{})}
	s := serve(t, Options{APIs: b.apis()})
	idle, parked, producing := dial(t, s, "PLAINTEXT"), dial(t, s, "PLAINTEXT"), dial(t, s, "PLAINTEXT")
	idle.alive()
	<-b.submitted
	fetch := fetchFor(time.Hour)
	parked.send(frameOf(fetch, 1, "c"))
	<-b.submitted
	producing.send(frameOf(produceTo(1, []byte("r")), 1, "c"))
	<-b.submitted

	s.Drain()
	require.ErrorIs(t, <-b.ended, ErrClosed)
	parked.answer(fetch, 1)
	idle.closed()
	parked.closed()
	_, err := net.Dial("tcp", s.Addrs()["PLAINTEXT"].String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	// What comes now is not served, and what was submitted is still answered.
	producing.send(frameOf(produceTo(1, []byte("r")), 2, "c"))
	close(b.hold)
	producing.answer(produceTo(1, nil), 1)
	producing.closed()
	require.Equal(t, int64(1), b.appended.Load())
}

func TestCloseCutsWhatDoesNotEndInTime(t *testing.T) {
	entered := make(chan struct{})
	closed := make(chan error, 1)
	s, err := Listen(Options{
		Listeners: []Listener{{Name: "L", Host: "127.0.0.1"}},
		APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			c.MayPark()
			ctx, resp := c.Ctx, c.Request.ResponseKind()
			return func() Reply { close(entered); <-ctx.Done(); return Reply{Msg: resp} }
		}}},
		Events: Events{Closed: func(_ *ConnInfo, err error) { closed <- err }},
	})
	require.NoError(t, err)
	s.Serve()
	c := dial(t, s, "L")
	c.send(frameOf(metadataOf(1), 1, "c"))
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Close(ctx), context.Canceled)
	require.ErrorIs(t, <-closed, ErrClosed)
	c.closed()
}

func TestEachClientIsToldWhichListenerItCameBy(t *testing.T) {
	seen := make(chan *ConnInfo, 2)
	s := serve(t, Options{
		Listeners: []Listener{{Name: "A", Host: "127.0.0.1"}, {Name: "B", Host: "127.0.0.1", Protocol: "PLAINTEXT"}},
		APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
			seen <- c.Conn
			return c.Answer(c.Request.ResponseKind())
		}}},
	})
	for _, name := range []string{"A", "B"} {
		c := dial(t, s, name)
		c.alive()
		info := <-seen
		require.Equal(t, name, info.Listener)
		require.Equal(t, c.nc.LocalAddr().String(), info.Remote.String())
		require.Equal(t, s.Addrs()[name].String(), info.Local.String())
	}
}

func TestPortInUseIsToldWithItsRemedy(t *testing.T) {
	s := serve(t, Options{})
	port := s.Addrs()["PLAINTEXT"].(*net.TCPAddr).Port
	_, err := Listen(Options{Listeners: []Listener{{Name: "A", Host: "127.0.0.1"}, {Name: "B", Host: "127.0.0.1", Port: port}}})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	var le *ListenError
	require.True(t, errors.As(err, &le))
	require.Equal(t, "B", le.Listener)
	require.ErrorContains(t, err, "listeners")
	_, err = Listen(Options{Listeners: []Listener{{Name: "S", Protocol: "SASL_SSL"}}})
	require.ErrorContains(t, err, "SASL_SSL")
}

func TestAcceptFailureIsToldAndTriedAgain(t *testing.T) {
	ln := &failingListener{pipeListener: newPipeListener()}
	failures := make(chan error, 9)
	s, err := Listen(Options{
		Listeners: []Listener{{Name: "L", Net: ln}}, APIs: (&fakeBroker{}).apis(),
		Events: Events{AcceptFailed: func(_ string, err error) { failures <- err }},
	})
	require.NoError(t, err)
	s.Serve()
	nc := ln.dial()
	require.NoError(t, nc.Close())
	require.ErrorIs(t, <-failures, syscall.EMFILE)
	require.NoError(t, s.Close(context.Background()))
}

// failingListener fails once.
type failingListener struct {
	*pipeListener
	failed atomic.Bool
}

func (l *failingListener) Accept() (net.Conn, error) {
	if !l.failed.Swap(true) {
		return nil, syscall.EMFILE
	}
	return l.pipeListener.Accept()
}

func TestSocketBuffersAndBacklogAreSet(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis(), SendBuffer: 50_000, ReceiveBuffer: 60_000, Backlog: 3})
	got := make(map[int]int)
	raw, err := s.listeners[0].net.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		for _, o := range []int{syscall.SO_SNDBUF, syscall.SO_RCVBUF} {
			got[o], _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, o)
		}
	}))
	// Linux doubles what it is given, for its own use.
	require.Contains(t, []int{50_000, 100_000}, got[syscall.SO_SNDBUF])
	require.Contains(t, []int{60_000, 120_000}, got[syscall.SO_RCVBUF])
	dial(t, s, "PLAINTEXT").alive()
}

func TestDrainResetsConnectionsOnWhichNothingWasAnswered(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	fresh, used := dial(t, s, "PLAINTEXT"), dial(t, s, "PLAINTEXT")
	used.alive()
	require.Eventually(t, func() bool { return s.Stats().Connections["PLAINTEXT"] == 2 }, 10*time.Second, time.Millisecond)
	s.Drain()
	_, err := fresh.nc.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET, "clients try again after a reset only")
	_, err = used.nc.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
