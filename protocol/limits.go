package protocol

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// gate counts connections and holds them to the limits.
type gate struct {
	most      int // connections that the system's limit on open files allows
	mu        sync.Mutex
	limits    Limits
	total     int
	listeners map[string]int
	ips       map[netip.Addr]int
	changed   chan struct{} // closed and renewed when room may have come
	next      time.Time     // when the rate admits the next connection
	nextOf    map[string]time.Time
}

func newGate(l Limits, most int) *gate {
	return &gate{
		most: most, limits: l, listeners: map[string]int{}, ips: map[netip.Addr]int{},
		changed: make(chan struct{}), nextOf: map[string]time.Time{},
	}
}

const (
	// spareFiles bounds what is kept of the open files for the log and for etcd,
	// which both end the broker when they get none.
	spareFiles = 1024
)

// connectionsOf is how many of the files that the process may have open clients
// may take: half of few, nearly all of many.
func connectionsOf(files int) int { return max(files-min(files/2, spareFiles), 1) }

// setLimits replaces the limits; who waits looks again.
func (g *gate) setLimits(l Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = l
	g.wakeLocked()
}

// wakeLocked lets who waits for room look again.
//
// REQUIRES: mu held.
func (g *gate) wakeLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// full names the limit that keeps a listener from accepting, and gives a channel
// that is closed when that may have changed.
func (g *gate) full(listener string) (limit string, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.total >= g.most {
		return "open files (ulimit -n)", g.changed
	}
	if n := g.limits.MaxConnections; n > 0 && g.total >= n {
		return "max.connections", g.changed
	}
	if n := g.limits.Listeners[listener].MaxConnections; n > 0 && g.listeners[listener] >= n {
		return "max.connections of the listener", g.changed
	}
	return "", nil
}

// enter counts a connection, unless its address has too many.
func (g *gate) enter(listener string, ip netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	bound, ok := g.limits.PerIP[ip]
	if !ok {
		bound = g.limits.MaxConnectionsPerIP
		ok = bound > 0
	}
	if ok && ip.IsValid() && g.ips[ip] >= bound {
		return false
	}
	g.total++
	g.listeners[listener]++
	g.ips[ip]++
	return true
}

// leave uncounts a connection.
func (g *gate) leave(listener string, ip netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	g.listeners[listener]--
	if g.ips[ip]--; g.ips[ip] == 0 {
		delete(g.ips, ip)
	}
	g.wakeLocked()
}

// delay books a connection at the limited rates and says how long it has to
// wait. A second's worth may come at once.
func (g *gate) delay(listener string, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	var wait time.Duration
	wait, g.next = book(g.next, now, g.limits.CreationRate)
	if rate := g.limits.Listeners[listener].CreationRate; rate > 0 {
		var own time.Duration
		own, g.nextOf[listener] = book(g.nextOf[listener], now, rate)
		wait = max(wait, own)
	}
	return wait
}

// book takes one place of a rate whose next free place is at next.
func book(next, now time.Time, rate int) (wait time.Duration, after time.Time) {
	if rate <= 0 {
		return 0, now
	}
	if earliest := now.Add(-time.Second); next.Before(earliest) {
		next = earliest
	}
	after = next.Add(time.Second / time.Duration(rate))
	return max(0, after.Sub(now)), after
}

// idle is the time after which a listener's connection is closed without
// traffic, zero for never.
func (g *gate) idle(listener string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.limits.IdleTimeout
	if own := g.limits.Listeners[listener].IdleTimeout; own != 0 {
		d = own
	}
	if d == 0 {
		d = defaultIdleTimeout
	}
	return max(d, 0)
}

// counts are the connections by listener.
func (g *gate) counts() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := make(map[string]int, len(g.listeners))
	for name, n := range g.listeners {
		m[name] = n
	}
	return m
}

// wait waits for a while, or until ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// addrOf is the IP address of a peer, the zero address if it has none.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
