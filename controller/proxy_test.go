package controller

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and etcd, and can stand still.
type proxy struct {
	endpoint string
	listener net.Listener
	target   string

	mu    sync.Mutex
	open  *sync.Cond
	stuck bool
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

func startProxy(t *testing.T, endpoint string) *proxy {
	t.Helper()
	p := &proxy{target: strings.TrimPrefix(endpoint, "unix://"), conns: map[net.Conn]bool{}}
	p.listen(t, filepath.Join(t.TempDir(), "p"))
	return p
}

func (p *proxy) listen(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	p.endpoint, p.listener = "unix://"+path, l
	p.open = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.DialTimeout("unix", p.target, time.Second)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.copy(out, in) })
		p.wg.Go(func() { p.copy(in, out) })
	}
}

func (p *proxy) copy(dst, src net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		p.mu.Lock()
		for p.stuck {
			p.open.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			_, err = io.Copy(dst, strings.NewReader(string(buf[:n])))
		}
		if err != nil {
			_ = dst.Close()
			_ = src.Close()
			return
		}
	}
}

// stall keeps everything that is under way, and lets nothing through.
func (p *proxy) stall() { p.setStuck(true) }

func (p *proxy) resume() { p.setStuck(false) }

func (p *proxy) setStuck(v bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = v
	p.open.Broadcast()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.resume()
	p.cut()
	p.wg.Wait()
}
