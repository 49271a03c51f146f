package badinput

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// The exit codes that `mainstem --help` lists.
const (
	exitUsage     = 2
	exitConfig    = 3
	exitAddress   = 4
	exitDirectory = 5
	exitLocked    = 6
	exitIdentity  = 7
	exitFormat    = 8
	exitNoSpace   = 9
)

// serve runs a broker that is expected not to start. Overrides come last, so
// that they win over what lets it start.
func serve(t *testing.T, dir string, overrides ...string) harness.Result {
	t.Helper()
	return harness.Run(t, serveArgs(dir, overrides...)...)
}

func serveArgs(dir string, overrides ...string) []string {
	all := append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "log.dirs=" + dir, "node.id=1", "mainstem.http.listener="}, overrides...)
	args := []string{"serve", "--log-format", "json"}
	for _, o := range all {
		args = append(args, "--override", o)
	}
	return args
}

// refused checks how a start failed: by its code and in one line of its own,
// which has all of these words; the rest of the output is the log.
func refused(t *testing.T, r harness.Result, code int, words ...string) {
	t.Helper()
	assert.Equal(t, code, r.Code, r.Output)
	require.NotEmpty(t, r.Line(), r.Output)
	for _, w := range words {
		assert.Contains(t, r.Line(), w)
	}
	count := 0
	for line := range strings.Lines(r.Output) {
		if !strings.HasPrefix(line, "{") {
			count++
		}
		assert.NotContains(t, line, "goroutine ")
		assert.NotContains(t, line, `"level":"fatal"`)
	}
	assert.Equal(t, 1, count, "one line for the user, no trace:\n%s", r.Output)
}

// fresh is a directory that a broker may fill.
func fresh(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

// stopped is the data directory of node 1, which has records and does not run.
func stopped(t *testing.T, settings ...string) *harness.Node {
	t.Helper()
	node := harness.Start(t, settings...)
	write(t, node, "kept", 10)
	require.NoError(t, node.Stop())
	return node
}

// copyTree copies a directory with everything in it.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// taken is an address that something else listens on until the test ends.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// smallDisk mounts a filesystem of some megabytes, or skips the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a small filesystem can be mounted by root only")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "mainstem-test", dir).CombinedOutput(); err != nil {
		t.Skipf("no small filesystem can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}
