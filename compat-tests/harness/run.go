package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Result is how a run of the binary ended.
type Result struct {
	Code   int    // exit code; -1 when a signal ended it
	Output string // both streams
}

// Line returns the one line that the command line ends with: cause and remedy.
func (r Result) Line() string {
	for line := range strings.Lines(r.Output) {
		if strings.HasPrefix(line, "mainstem: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Run runs the binary with these arguments until it ends, at most a minute.
func Run(t testing.TB, args ...string) Result {
	t.Helper()
	bin, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	return run(t, bin, nil, args)
}

// RunAs is Run as another user, which root alone may do.
func RunAs(t testing.TB, uid uint32, args ...string) Result {
	t.Helper()
	bin, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mainstem-binary-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// The other user may not enter the folder where the binary is.
	raw, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "mainstem")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(copied, raw, 0o755)); err != nil {
		t.Fatal(err)
	}
	return run(t, copied, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}, args)
}

func run(t testing.TB, bin string, attr *syscall.SysProcAttr, args []string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.SysProcAttr = os.TempDir(), attr
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run mainstem %v: %v", args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("mainstem %v did not end within a minute:\n%s", args, out.String())
	}
	return Result{cmd.ProcessState.ExitCode(), out.String()}
}
