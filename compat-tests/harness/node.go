// Package harness builds, starts, kills and stops Mainstem brokers as a user
// would: the real binary, its own process, a data directory, signals.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary returns the path of the broker's binary: MAINSTEM_BIN, or one that is
// built from the module above, once.
var Binary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("MAINSTEM_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin", "mainstem")
	build := exec.Command("go", "build", "-o", bin, "./cmd/mainstem")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mainstem: %w\n%s", err, out)
	}
	return bin, nil
})

// moduleRoot finds the folder of the broker's module above this one.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module github.com/mainstem/mainstem\n")) {
			return dir, nil
		}
	}
	return "", errors.New("the module github.com/mainstem/mainstem is in no folder above")
}

// Node is one broker: its data directory outlives its processes.
type Node struct {
	Dir      string   // data directory
	Address  string   // host:port of the Kafka listener
	HTTP     string   // host:port of the HTTP listener
	Settings []string // further key=value overrides
	Prefix   []string // command to run the broker under, such as strace
	Env      []string // further environment

	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{}
	err  error
}

// New returns a broker that is not started, on free loopback ports, with its
// data in a temporary directory of the test.
func New(t testing.TB, settings ...string) *Node {
	t.Helper()
	n := &Node{Dir: filepath.Join(t.TempDir(), "data"), Address: freeAddress(t), HTTP: freeAddress(t), Settings: settings}
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() && n.log != nil {
			t.Logf("broker's log:\n%s", n.log.tail(8000))
		}
	})
	return n
}

// Start is New and Start, failing the test when the broker does not serve.
func Start(t testing.TB, settings ...string) *Node {
	t.Helper()
	n := New(t, settings...)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	return n
}

// Start runs the broker and returns when it serves requests.
func (n *Node) Start() error {
	bin, err := Binary()
	if err != nil {
		return err
	}
	args := append(append([]string{}, n.Prefix...), bin, "serve",
		"--override", "listeners=PLAINTEXT://"+n.Address,
		"--override", "log.dirs="+n.Dir,
		"--override", "node.id=1",
		"--override", "mainstem.http.listener="+n.HTTP)
	for _, s := range n.Settings {
		args = append(args, "--override", s)
	}
	n.cmd = exec.Command(args[0], args[1:]...)
	n.cmd.Env = append(os.Environ(), n.Env...)
	if n.log == nil {
		n.log = &lockedBuffer{}
	}
	n.cmd.Stderr, n.cmd.Stdout = n.log, n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := n.cmd.Start(); err != nil {
		return err
	}
	n.done = make(chan struct{})
	go func() {
		n.err = n.cmd.Wait()
		close(n.done)
	}()
	return n.awaitReady(30 * time.Second)
}

func (n *Node) awaitReady(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		select {
		case <-n.done:
			return fmt.Errorf("the broker ended before it served: %v\n%s", n.err, n.log.tail(4000))
		default:
		}
		if n.Ready() {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("the broker was not ready within %v\n%s", limit, n.log.tail(4000))
}

// Ready asks the broker whether it serves requests.
func (n *Node) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/ready", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// Pid is the process id of the running broker.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Signal sends a signal to the broker and to what it runs under.
func (n *Node) Signal(s syscall.Signal) error { return syscall.Kill(-n.Pid(), s) }

// Kill ends the broker at once, as kill -9 does, and waits for it to be gone.
func (n *Node) Kill() {
	if n.done == nil {
		return
	}
	_ = n.Signal(syscall.SIGKILL)
	<-n.done
}

// Stop asks the broker to end and returns how its process ended.
func (n *Node) Stop() error {
	if err := n.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-n.done:
		return n.err
	case <-time.After(20 * time.Second):
		n.Kill()
		return errors.New("the broker did not stop within 20 s of SIGTERM")
	}
}

// Exited is closed when the process has ended.
func (n *Node) Exited() <-chan struct{} { return n.done }

// ExitCode is the code of a process that has ended.
func (n *Node) ExitCode() int { return n.cmd.ProcessState.ExitCode() }

// Log returns what the broker has written so far, over all its runs.
func (n *Node) Log() string { return n.log.tail(1 << 30) }

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// lockedBuffer collects output of several writers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.b.Bytes()
	return string(b[max(0, len(b)-n):])
}

// Lines returns the lines of the broker's log that contain s.
func (n *Node) Lines(s string) (out []string) {
	lines := bufio.NewScanner(strings.NewReader(n.Log()))
	for lines.Scan() {
		if strings.Contains(lines.Text(), s) {
			out = append(out, lines.Text())
		}
	}
	return out
}
