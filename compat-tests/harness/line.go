package harness

import (
	"context"
	"errors"
	"net"
	"sync"
)

// ErrLineCut is why a Line dials no more.
var ErrLineCut = errors.New("the line is cut")

// Line is a client's way to the broker. Once cut, it stays cut: to the broker the
// client has vanished, as if its machine had lost its power.
type Line struct {
	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

// Dial connects, while the line is not cut.
func (l *Line) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		c.Close()
		return nil, ErrLineCut
	}
	l.conns = append(l.conns, c)
	return c, nil
}

// Cut closes all connections and lets none come.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.conns {
		c.Close()
	}
}
