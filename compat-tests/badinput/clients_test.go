package badinput

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestClientsOfOtherProtocols are hung up on, and the log says what they spoke,
// who they were and what to do.
func TestClientsOfOtherProtocols(t *testing.T) {
	t.Parallel()
	node := harness.Start(t)
	write(t, node, "kept", 3)
	ctx, cancel := context.WithTimeout(context.Background(), frames.Patience)
	defer cancel()
	for _, client := range []struct {
		name  string
		speak func() error
		words []string
	}{
		{"HTTP", func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+node.Address+"/metrics", nil)
			require.NoError(t, err)
			resp, err := (&http.Transport{}).RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}, []string{"HTTP", "remedy"}},
		{"TLS", func() error {
			d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // There is nobody to verify.
			conn, err := d.DialContext(ctx, "tcp", node.Address)
			if err == nil {
				conn.Close()
			}
			return err
		}, []string{"TLS", "remedy"}},
		{"SSH", func() error { return speak(ctx, node.Address, "SSH-2.0-OpenSSH_9.9\r\n") }, []string{"SSH", "remedy"}},
		{"noise", func() error { return speak(ctx, node.Address, "\xff\xff\xff\xff\xff\xff\xff\xff") }, []string{"client refused"}},
	} {
		started, before := time.Now(), len(node.Lines("client refused"))
		require.Error(t, client.speak(), client.name)
		assert.NoError(t, ctx.Err(), "%s: hung up on after %v", client.name, time.Since(started))
		var lines []string
		require.Eventually(t, func() bool {
			lines = node.Lines("client refused")[before:]
			return len(lines) > 0
		}, frames.Patience, 5*time.Millisecond, client.name)
		assert.Len(t, lines, 1, "one line each")
		assert.Contains(t, lines[0], "127.0.0.1:")
		for _, w := range client.words {
			assert.Contains(t, lines[0], w)
		}
	}
	read(t, node, "kept", 3)
}

// speak sends bytes and waits for the broker to hang up, which is its error.
func speak(ctx context.Context, address, text string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
