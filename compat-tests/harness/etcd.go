package harness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// etcdBinary builds the etcd of testdata, once.
var etcdBinary = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin", "etcd-for-tests")
	build := exec.Command("go", "build", "-o", bin, "./compat-tests/harness/testdata/etcd.go")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build etcd: %w\n%s", err, out)
	}
	return bin, nil
})

// Etcd is an etcd beside the brokers, in a process of its own.
type Etcd struct {
	Endpoint string

	dir, port string
	cmd       *exec.Cmd
	hold      io.Closer // its standard input
}

// StartEtcd starts an etcd that lives until the test ends.
func StartEtcd(t testing.TB) *Etcd {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	e := &Etcd{Endpoint: "http://127.0.0.1:" + port, dir: t.TempDir(), port: port}
	e.Start(t)
	t.Cleanup(e.Stop)
	return e
}

// Start runs the etcd, with the data that it had.
func (e *Etcd) Start(t testing.TB) {
	t.Helper()
	bin, err := etcdBinary()
	if err != nil {
		t.Fatal(err)
	}
	e.cmd = exec.Command(bin, e.dir, e.port)
	e.cmd.Stderr = os.Stderr
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if e.hold, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("etcd ended before it served: %v", err)
	}
}

// Stop ends the etcd; its data stay for another Start.
func (e *Etcd) Stop() {
	if e.cmd == nil {
		return
	}
	_ = e.Signal(syscall.SIGCONT)
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait() // Killed, as was asked.
	_ = e.hold.Close()
	e.cmd = nil
}

// Signal sends a signal, such as SIGSTOP.
func (e *Etcd) Signal(s syscall.Signal) error { return e.cmd.Process.Signal(s) }
