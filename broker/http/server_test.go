package http

import (
	"context"
	"errors"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Listener == "" {
		o.Listener = "127.0.0.1:0"
	}
	s, err := Listen(o)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, s.Close(context.Background()))
		require.NoError(t, <-served)
	})
	return s
}

func do(t *testing.T, s *Server, method, path, body string) (int, string) {
	t.Helper()
	req, err := nethttp.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	require.NoError(t, err)
	client := &nethttp.Client{Transport: &nethttp.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

func TestReadyFollowsTheBrokerAndSaysWhyNot(t *testing.T) {
	var why error
	s := start(t, Options{Ready: func() error { return why }})
	status, text := do(t, s, "GET", "/ready", "")
	require.Equal(t, 200, status)
	require.Equal(t, "ok\n", text)

	why = errors.New("stopping")
	status, text = do(t, s, "GET", "/ready", "")
	require.Equal(t, 503, status)
	require.Equal(t, "stopping\n", text)

	status, _ = do(t, s, "GET", "/live", "")
	require.Equal(t, 200, status, "live does not depend on ready")
}

func TestMetricsAreServedAsText(t *testing.T) {
	r := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total", Help: "Seen."})
	r.MustRegister(c)
	c.Add(3)
	s := start(t, Options{Gatherer: r})
	status, text := do(t, s, "GET", "/metrics", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, "seen_total 3\n")
}

func TestLogLevelIsChangedAtRunTime(t *testing.T) {
	level := zap.NewAtomicLevelAt(zapcore.InfoLevel)
	s := start(t, Options{Level: level})
	status, text := do(t, s, "GET", "/loglevel", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"level":"info"}`, text)

	status, _ = do(t, s, "PUT", "/loglevel", `{"level":"debug"}`)
	require.Equal(t, 200, status)
	require.Equal(t, zapcore.DebugLevel, level.Level())

	status, _ = do(t, s, "PUT", "/loglevel", `{"level":"loud"}`)
	require.Equal(t, 400, status)
	status, _ = do(t, s, "PUT", "/loglevel", `{"level":"`+strings.Repeat("x", maxBody)+`"}`)
	require.Equal(t, 400, status)
	require.Equal(t, zapcore.DebugLevel, level.Level())
}

func TestNothingElseIsServed(t *testing.T) {
	s := start(t, Options{Level: zap.NewAtomicLevel(), Gatherer: prometheus.NewRegistry()})
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 200},
		{"GET", "/debug/pprof/", 404},
		{"GET", "/nothing", 404},
		{"POST", "/ready", 405},
		{"DELETE", "/loglevel", 405},
	} {
		status, _ := do(t, s, c.method, c.path, "")
		require.Equal(t, c.status, status, "%s %s", c.method, c.path)
	}
}

func TestOnlyAPortNobodyAskedForIsLeftForAnother(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()

	_, err = Listen(Options{Listener: taken.Addr().String()})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, taken.Addr().String())

	s := start(t, Options{Listener: taken.Addr().String(), MayMove: true})
	require.True(t, s.Moved())
	require.NotEqual(t, taken.Addr().String(), s.Addr().String())

	require.False(t, start(t, Options{MayMove: true}).Moved())
}

func TestABadAddressIsRefusedEvenWhenItMayMove(t *testing.T) {
	_, err := Listen(Options{Listener: "127.0.0.1", MayMove: true})
	require.ErrorContains(t, err, "missing port")
}

func TestCloseCutsARequestThatDoesNotEnd(t *testing.T) {
	entered := make(chan struct{})
	release := make(chan struct{})
	defer close(release)
	s, err := Listen(Options{Listener: "127.0.0.1:0", Ready: func() error { close(entered); <-release; return nil }})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	conn, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-entered

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Close(ctx), context.Canceled)
	require.NoError(t, <-served)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestClientsAreShownAsJSON(t *testing.T) {
	var why error
	s := start(t, Options{Clients: func(context.Context) (any, error) { return []string{"one"}, why }})
	status, text := do(t, s, "GET", "/clients", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `["one"]`, text)
	why = errors.New("starting")
	status, text = do(t, s, "GET", "/clients", "")
	require.Equal(t, 503, status)
	require.Equal(t, "starting\n", text)
}
