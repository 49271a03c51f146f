package protocol

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frameOf encodes a request with its header and size.
func frameOf(req kmsg.Request, correlation int32, clientID string) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	return f.AppendRequest(nil, req, correlation)
}

// client is the raw client of a test.
type client struct {
	t  testing.TB
	nc net.Conn
}

func dial(t testing.TB, s *Server, listener string) *client {
	nc, err := net.Dial("tcp", s.Addrs()[listener].String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(20*time.Second)))
	return &client{t, nc}
}

func (c *client) send(b []byte) {
	c.t.Helper()
	_, err := c.nc.Write(b)
	require.NoError(c.t, err)
}

// receive reads an answer: its correlation id and the rest.
func (c *client) receive() (int32, []byte) {
	c.t.Helper()
	var size [4]byte
	_, err := io.ReadFull(c.nc, size[:])
	require.NoError(c.t, err)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(c.nc, b)
	require.NoError(c.t, err)
	return int32(binary.BigEndian.Uint32(b)), b[4:]
}

// answer reads the answer to req.
func (c *client) answer(req kmsg.Request, correlation int32) kmsg.Response {
	c.t.Helper()
	got, b := c.receive()
	require.Equal(c.t, correlation, got)
	resp := req.ResponseKind()
	if resp.IsFlexible() && resp.Key() != keyApiVersions {
		require.Zero(c.t, b[0])
		b = b[1:]
	}
	require.NoError(c.t, resp.ReadFrom(b))
	return resp
}

// closed waits for the server to close.
func (c *client) closed() {
	c.t.Helper()
	n, err := io.Copy(io.Discard, c.nc)
	require.Zero(c.t, n, "an answer came instead of the end")
	if err != nil {
		require.NotErrorIs(c.t, err, context.DeadlineExceeded)
		var ne net.Error
		require.False(c.t, errorsAs(err, &ne) && ne.Timeout(), "connection is still open")
	}
}

func serve(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Listeners == nil {
		o.Listeners = []Listener{{Name: "PLAINTEXT", Host: "127.0.0.1"}}
	}
	s, err := Listen(o)
	require.NoError(t, err)
	s.Serve()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
		require.Zero(t, s.frames.used.Load(), "frame bytes were not given back")
		require.Zero(t, s.decodes.used.Load(), "decoded bytes were not given back")
	})
	return s
}

func TestApiVersionsIsAnsweredOnTheSameConnectionAtEveryVersion(t *testing.T) {
	s := serve(t, Options{})
	c := dial(t, s, "PLAINTEXT")
	for v := int16(0); v <= 4; v++ {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = v, "test", "1.0"
		c.send(frameOf(req, int32(v), "c"))
		resp := c.answer(req, int32(v)).(*kmsg.ApiVersionsResponse)
		require.Zero(t, resp.ErrorCode)
		require.Len(t, resp.ApiKeys, 3)
	}
}

func errorsAs(err error, target *net.Error) bool {
	return errors.As(err, target)
}
