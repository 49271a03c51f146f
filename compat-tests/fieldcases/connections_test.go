package fieldcases

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestManyClientsComeAtOnce: while a broker is busy, or stopped as here, clients that
// come are let wait in the system's queue. Whoever finds no place there is asked to
// come again a second later, and later still: a crowd would take minutes to get in.
func TestManyClientsComeAtOnce(t *testing.T) {
	const crowd = 400
	b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || n < 2*crowd {
		t.Skip("the system has no long queue for connections")
	}
	node := harness.Start(t)
	require.NoError(t, node.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = node.Signal(syscall.SIGCONT) })
	var all sync.WaitGroup
	errs := make([]error, crowd)
	for i := range crowd {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", node.Address, frames.Patience)
			if errs[i] = err; err == nil {
				errs[i] = c.Close()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(frames.Patience):
		t.Error("clients still wait to be let into the queue")
	}
	require.NoError(t, node.Signal(syscall.SIGCONT))
	<-done
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 1, len(frames.Dial(t, node.Address).Create(1, "t")))
}
