package java

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience is how long a Java program may take for a step, on a busy machine.
const patience = 2 * time.Minute

// compile builds the programs, once.
var compile = sync.OnceValues(func() (classpath string, err error) {
	cmd := exec.Command("mvn", "-q", "-B", "compile")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	return filepath.Join("target", "classes") + string(os.PathListSeparator) + filepath.Join("target", "lib", "*"), nil
})

// needsJava skips a test where the clients in other languages are not installed.
func needsJava(t *testing.T) {
	t.Helper()
	if os.Getenv("COMPAT_CLIENTS") != "all" {
		t.Skip("COMPAT_CLIENTS=all is not set: Java is run by `make compat`")
	}
}

// program is a running Java program; it ends when its standard input does.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.Closer
	ended chan struct{}
	err   error

	mu    sync.Mutex
	lines []string
}

func start(t *testing.T, class string, args ...string) *program {
	t.Helper()
	classpath, err := compile()
	require.NoError(t, err, "mvn compile")
	p := &program{t: t, ended: make(chan struct{})}
	p.cmd = exec.Command("java", append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath, "mainstem.compat." + class}, args...)...)
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	p.input, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%s says\n%s\n%s", class, strings.Join(p.said(""), "\n"), stderr.String())
		}
	})
	return p
}

// said are the lines that begin with a word, without it.
func (p *program) said(prefix string) (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			out = append(out, rest)
		}
	}
	return out
}

// last is the last line that begins with a word, without it.
func (p *program) last(prefix string) string {
	said := p.said(prefix)
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1]
}

// end ends the program in good order.
func (p *program) end() {
	p.t.Helper()
	require.NoError(p.t, p.input.Close())
	select {
	case <-p.ended:
		require.NoError(p.t, p.err)
	case <-time.After(patience):
		require.Fail(p.t, "the program did not end")
	}
}

// await waits for something that must not take longer than patience.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, patience, 50*time.Millisecond, what)
}

// client is a client in Go that watches.
func client(t *testing.T, address string, opts ...kgo.Opt) (*kgo.Client, *kadm.Client) {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl, kadm.NewClient(cl)
}

func createTopic(t *testing.T, adm *kadm.Client, topic string, partitions int32) {
	t.Helper()
	_, err := adm.CreateTopic(context.Background(), partitions, 1, nil, topic)
	require.NoError(t, err)
}
