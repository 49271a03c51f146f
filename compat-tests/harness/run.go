package harness

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
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
	return RunUnder(t, nil, args...)
}

// RunUnder is Run with a command in front, such as one that changes the user.
func RunUnder(t testing.TB, prefix []string, args ...string) Result {
	t.Helper()
	bin, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	argv := append(append(append([]string{}, prefix...), bin), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run mainstem %v: %v", args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("mainstem %v did not end within a minute:\n%s", args, out.String())
	}
	return Result{cmd.ProcessState.ExitCode(), out.String()}
}
