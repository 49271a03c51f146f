package protocol

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// ListenError is a listener that could not be opened.
type ListenError struct {
	Listener string
	Addr     string
	Err      error
}

func (e *ListenError) Error() string {
	text := fmt.Sprintf("listener %s cannot take %s: %v", e.Listener, e.Addr, e.Err)
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		text += "; stop what holds the port, or set another one in listeners"
	case errors.Is(e.Err, syscall.EACCES):
		text += "; ports below 1024 need the right to bind them: set another one in listeners"
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		text += "; no interface of this machine has the address: correct it in listeners (advertised.listeners is what clients are told)"
	}
	return text
}

func (e *ListenError) Unwrap() error { return e.Err }

// listener is an open listener.
type listener struct {
	Listener
	net net.Listener
}

// open takes the address of a listener.
func open(l Listener, o *Options) (*listener, error) {
	if l.Protocol != "" && l.Protocol != "PLAINTEXT" {
		return nil, &ListenError{l.Name, l.Host, fmt.Errorf("protocol %s is not served", l.Protocol)}
	}
	if l.Net != nil {
		return &listener{l, l.Net}, nil
	}
	addr := net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		// Accepted sockets inherit the sizes, in time for the window scaling.
		return setBuffers(raw, o.SendBuffer, o.ReceiveBuffer)
	}}
	n, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, &ListenError{l.Name, addr, err}
	}
	if o.Backlog > 0 {
		if err := setBacklog(n, o.Backlog); err != nil {
			return nil, errors.Join(&ListenError{l.Name, addr, err}, n.Close())
		}
	}
	return &listener{l, n}, nil
}

// accept takes connections until the server drains.
func (s *Server) accept(ln *listener) {
	defer s.running.Done()
	var backoff time.Duration
	for s.awaitSlot(ln) {
		nc, err := ln.net.Accept()
		switch {
		case err == nil:
			backoff = 0
			s.admit(ln, nc)
		case s.accepting.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		default:
			// Too many open files, or a connection that ended before its turn.
			if f := s.opts.Events.AcceptFailed; f != nil {
				f(ln.Name, err)
			}
			backoff = min(max(2*backoff, 5*time.Millisecond), time.Second)
			if !wait(s.accepting, backoff) {
				return
			}
		}
	}
}

// awaitSlot waits until the numbers of connections allow one more.
func (s *Server) awaitSlot(ln *listener) bool {
	told := false
	for {
		limit, changed := s.gate.full(ln.Name)
		if limit == "" {
			return s.accepting.Err() == nil
		}
		if !told {
			told = true
			s.reject(Rejection{Listener: ln.Name, Limit: limit})
		}
		select {
		case <-changed:
		case <-s.accepting.Done():
			return false
		}
	}
}

// admit starts a connection, or closes it if a limit does not allow it.
func (s *Server) admit(ln *listener, nc net.Conn) {
	ip := addrOf(nc.RemoteAddr())
	if s.tooSoon(ln, nc, ip) {
		return
	}
	if d := s.gate.delay(ln.Name, time.Now()); d > 0 {
		s.reject(Rejection{Listener: ln.Name, Remote: nc.RemoteAddr(), Limit: "max.connection.creation.rate"})
		if !wait(s.accepting, d) {
			_ = nc.Close()
			return
		}
	}
	if !s.gate.enter(ln.Name, ip) {
		s.reject(Rejection{Listener: ln.Name, Remote: nc.RemoteAddr(), Limit: "max.connections.per.ip"})
		_ = nc.Close()
		return
	}
	s.start(ln, nc, ip)
}

// tooSoon holds an address to its quota on connections: beyond it the connection is
// closed, after a while.
func (s *Server) tooSoon(ln *listener, nc net.Conn, ip netip.Addr) bool {
	ask := s.opts.Quotas.Connection
	if ask == nil {
		return false
	}
	d := ask(ip)
	if d <= 0 {
		return false
	}
	s.reject(Rejection{Listener: ln.Name, Remote: nc.RemoteAddr(), Limit: "connection_creation_rate"})
	if s.held.Add(1) > maxHeld {
		s.held.Add(-1)
		_ = nc.Close()
		return true
	}
	s.alarms.set(time.Now().Add(d), func() {
		_ = nc.Close()
		s.held.Add(-1)
	})
	return true
}

func (s *Server) reject(r Rejection) {
	if f := s.opts.Events.Rejected; f != nil {
		f(r)
	}
}

// start serves a connection that was counted.
func (s *Server) start(ln *listener, nc net.Conn, ip netip.Addr) {
	c := newConn(s, ln, nc)
	c.ip = ip
	s.mu.Lock()
	if s.isDraining() {
		s.mu.Unlock()
		s.gate.leave(ln.Name, ip)
		_ = nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	if len(s.conns) == 1 {
		select {
		case s.peopled <- struct{}{}:
		default:
		}
	}
	s.running.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		c.serve()
	}()
}

// remove forgets a connection that has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.gate.leave(c.ln.Name, c.ip)
}
