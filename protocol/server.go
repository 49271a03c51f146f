package protocol

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Server listens for clients and serves them.
type Server struct {
	opts      Options
	table     *apiTable
	listeners []*listener
	gate      *gate
	pool      pool
	calls     sync.Pool
	produces  sync.Pool
	// frames and decodes bound what requests take on all connections: their
	// frames, and what they were decoded to.
	frames, decodes budget

	begun  time.Time
	alarms *alarms
	held   atomic.Int32 // connections that wait to be closed unserved
	lastID atomic.Uint64
	tick   atomic.Uint32 // counts the sweeper's rounds
	period time.Duration // of a round

	accepting     context.Context
	stopAccepting context.CancelFunc
	draining      chan struct{}

	mu    sync.Mutex
	conns map[*conn]struct{}
	// peopled holds one token when there is a connection again; it wakes the sweeper.
	peopled chan struct{}

	// running are the listeners, the connections, the sweeper and the alarms.
	running sync.WaitGroup
}

// Listen takes the addresses; nobody is served before Serve.
func Listen(o Options) (*Server, error) {
	o.setDefaults()
	table, err := newTable(o.APIs, o.Features, o.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, table: table, gate: newGate(o.Limits, connectionsOf(o.OpenFiles)),
		begun: time.Now(), alarms: newAlarms(), draining: make(chan struct{}), conns: map[*conn]struct{}{}, period: sweepPeriod,
		peopled: make(chan struct{}, 1),
	}
	s.frames.limit = int64(o.MaxTotalBytes)
	s.decodes.limit = int64(o.MaxTotalBytes)
	s.accepting, s.stopAccepting = context.WithCancel(context.Background())
	for _, l := range o.Listeners {
		ln, err := open(l, &o)
		if err != nil {
			s.stopAccepting()
			return nil, errors.Join(err, s.closeListeners())
		}
		s.listeners = append(s.listeners, ln)
	}
	return s, nil
}

// Serve starts serving and returns at once.
func (s *Server) Serve() {
	s.running.Add(len(s.listeners) + 1)
	s.running.Go(func() { s.alarms.run(s.draining) })
	for _, ln := range s.listeners {
		go s.accept(ln)
	}
	go s.sweep()
}

// Addrs are the addresses listened on, by listener name.
func (s *Server) Addrs() map[string]net.Addr {
	m := make(map[string]net.Addr, len(s.listeners))
	for _, ln := range s.listeners {
		m[ln.Name] = ln.net.Addr()
	}
	return m
}

// SetLimits changes the limits on connections while serving. Connections that
// are open already stay.
func (s *Server) SetLimits(l Limits) { s.gate.setLimits(l) }

// Drain takes no new connections and no new requests, ends what waits by
// closing Call.Draining, and closes each connection once its answers are sent.
// It does not wait.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining() {
		return
	}
	s.stopAccepting()
	close(s.draining)
	_ = s.closeListeners()
	for c := range s.conns {
		c.stopReading()
	}
}

// Close drains, waits for the connections to end, and cuts those that are left
// when ctx ends.
func (s *Server) Close(ctx context.Context) error {
	s.Drain()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.kill(ErrClosed)
	}
	s.mu.Unlock()
	// Handlers see their Ctx end; one that does not look is not waited for.
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	return context.Cause(ctx)
}

// isDraining says whether Drain was called.
func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

func (s *Server) closeListeners() error {
	var errs []error
	for _, ln := range s.listeners {
		errs = append(errs, ln.net.Close())
	}
	return errors.Join(errs...)
}

// Stats is a look at what a server holds.
type Stats struct {
	// Connections are the open connections by listener.
	Connections map[string]int
	// FrameBytes and DecodedBytes are the memory of requests in flight, Waiting
	// the connections that wait for some of it.
	FrameBytes, DecodedBytes int64
	Waiting                  int
}

// Stats looks.
func (s *Server) Stats() Stats {
	return Stats{
		Connections: s.gate.counts(),
		FrameBytes:  s.frames.used.Load(), DecodedBytes: s.decodes.used.Load(),
		Waiting: int(s.frames.waiting.Load() + s.decodes.waiting.Load()),
	}
}

// newCall gives a call of a connection.
func (s *Server) newCall(c *conn) *Call {
	call, ok := s.calls.Get().(*Call)
	if !ok {
		call = new(Call)
	}
	call.Ctx, call.Conn, call.conn = c.ctx, &c.info, c
	return call
}

// recycle lets go of everything that a call holds.
func (s *Server) recycle(call *Call) {
	if b := call.reply.Body; b != nil && b.Release != nil {
		b.Release()
	}
	if call.reply.Release != nil {
		call.reply.Release()
	}
	if r, ok := call.Body.(reusable); ok {
		r.reuse()
	}
	s.releaseFrame(call)
	if call.decoded > 0 {
		s.decodes.release(call, call.decoded)
	}
	*call = Call{}
	s.calls.Put(call)
}

// releaseFrame gives back the memory of a call's frame.
func (s *Server) releaseFrame(call *Call) {
	if call.frame != nil {
		s.pool.put(call.frame)
		call.frame = nil
	}
	if call.reserved > 0 {
		s.frames.release(call, call.reserved)
		call.reserved = 0
	}
}

// detach is releaseFrame for a call that goes on waiting; one that may wait for
// long does not hold the others up.
func (s *Server) detach(call *Call) {
	s.releaseFrame(call)
	if call.parks && call.decoded > 0 {
		s.decodes.release(call, call.decoded)
		call.decoded = 0
	}
}
