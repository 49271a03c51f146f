package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	// ErrHungUp is why the Ctx of a call ends: the client closed its connection,
	// or its sending side.
	ErrHungUp = errors.New("client hung up")
	// ErrIdle is why a connection was closed that had no traffic for too long.
	ErrIdle = errors.New("connection was idle for too long")
	// ErrClosed is why the Ctx of a call ends when the server closes.
	ErrClosed = errors.New("server is closed")
)

// conn is one client's connection. Its own goroutine reads it and submits calls
// in order. That goroutine also finishes them and writes their answers, as long
// as nothing is to be read meanwhile; else they are handed to a second one, the
// writer, which is started when it is needed first. Only one of the two finishes
// and writes at a time: the reader does when pending is zero.
type conn struct {
	srv  *Server
	ln   *listener
	nc   net.Conn
	info ConnInfo
	ip   netip.Addr

	ctx    context.Context
	cancel context.CancelCauseFunc

	// Of the reader.
	in       inbox
	batch    []*Call // submitted, neither finished nor handed over
	parks    bool    // one of the batch may wait for long
	bytes    int     // of the batch
	clientID *string // the last one, so that it is not made anew each time

	// Of whoever finishes and writes.
	out    outbox
	broken error // writing has failed
	served bool  // an answer was written

	// Between reader and writer.
	queue        chan *Call // nil until the writer runs
	written      chan struct{}
	pending      atomic.Int32 // calls handed over and not yet answered
	pendingBytes atomic.Int64
	room         chan struct{} // told after each write, holds one

	// For the sweeper.
	seen    atomic.Uint32 // tick of the last traffic
	working atomic.Bool   // the reader finishes calls
	writing atomic.Bool   // a write is going on
	holding atomic.Bool   // a request's memory was taken, its bytes are to come
	killed  atomic.Pointer[error]

	// muted is until when the connection is not to be read, since the server has
	// begun; 0 if it is.
	muted atomic.Int64
}

func newConn(s *Server, ln *listener, nc net.Conn) *conn {
	c := &conn{srv: s, ln: ln, nc: nc, room: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.info.ID = s.lastID.Add(1)
	c.info.Listener = ln.Name
	c.info.Remote, c.info.Local = nc.RemoteAddr(), nc.LocalAddr()
	c.info.Principal = "User:ANONYMOUS"
	c.in.init(nc, &s.pool)
	c.out.init(c)
	c.touch()
	return c
}

// touch notes that there was traffic.
func (c *conn) touch() { c.seen.Store(c.srv.tick.Load()) }

// serve runs the connection to its end.
func (c *conn) serve() {
	if f := c.srv.opts.Events.Accepted; f != nil {
		f(&c.info)
	}
	err := c.read()
	// What came before a bad request, or before the end, is still answered.
	c.deliver(false)
	err = c.ending(err)
	if c.queue != nil {
		close(c.queue)
		<-c.written
	}
	c.cancel(ErrClosed)
	c.in.discard()
	if c.broken != nil && err == nil {
		err = c.broken
	}
	c.hangUp()
	c.srv.remove(c)
	if f := c.srv.opts.Events.Closed; f != nil {
		f(&c.info, err)
	}
}

// ending says why reading has ended, nil for an ordinary end, and tells the
// calls that wait: all but those of a draining server, which end by themselves.
func (c *conn) ending(err error) error {
	if killed := c.killed.Load(); killed != nil {
		return *killed
	}
	switch {
	case errors.Is(err, errDrained), timedOut(err):
		return nil
	case errors.Is(err, io.EOF) && c.pending.Load() == 0:
		return nil
	case errors.Is(err, io.EOF):
		err = ErrHungUp
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrClosedPipe):
		err = fmt.Errorf("%w: %w", ErrHungUp, err)
	}
	c.cancel(err)
	return err
}

// timedOut says that reading met its deadline, which only stopReading sets.
func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// hangUp closes the connection so that the client still gets what was written:
// closing with unread bytes would take it back.
func (c *conn) hangUp() {
	tcp, ok := c.nc.(*net.TCPConn)
	if ok && c.broken == nil && !c.served && c.srv.isDraining() {
		// Clients take the end of a connection on which nothing ever came for a
		// sign that TLS or SASL is wanted, and give up; a reset they try again.
		_ = tcp.SetLinger(0)
	} else if ok && c.broken == nil {
		_ = tcp.CloseWrite()
		if c.srv.isDraining() {
			// A draining server left requests unread that came too late.
			_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
			_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
		}
	}
	_ = c.nc.Close()
}

const (
	// lingerTime and lingerBytes bound how long and how much a draining server
	// goes on reading, for the client to take its last answers.
	lingerTime  = 250 * time.Millisecond
	lingerBytes = 1 << 20
)

// kill ends the connection from outside, for a reason.
func (c *conn) kill(reason error) {
	if c.killed.CompareAndSwap(nil, &reason) {
		// Closed first, so that no answer of a cancelled call goes out.
		_ = c.nc.Close()
		c.cancel(reason)
	}
}

// stopReading ends the connection once what was submitted is answered.
func (c *conn) stopReading() {
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// deliver brings the batch on its way. With more to read, or with calls before
// it that wait, or if it may wait itself, the writer gets it; else it is
// finished here.
func (c *conn) deliver(more bool) {
	if len(c.batch) == 0 {
		return
	}
	if more || c.parks || c.pending.Load() > 0 {
		c.handOver()
		return
	}
	c.working.Store(true)
	for i, call := range c.batch {
		c.batch[i] = nil
		if call.ready != nil && !call.isReady() {
			c.out.flush()
		}
		c.out.finish(call)
	}
	c.out.flush()
	c.working.Store(false)
	c.batch, c.bytes = c.batch[:0], 0
}

// handOver gives the batch to the writer.
func (c *conn) handOver() {
	if c.queue == nil {
		c.queue = make(chan *Call, c.srv.opts.MaxInFlight)
		c.written = make(chan struct{})
		go c.write()
	}
	c.pending.Add(int32(len(c.batch)))
	c.pendingBytes.Add(int64(c.bytes))
	for i, call := range c.batch {
		c.batch[i] = nil
		c.queue <- call
	}
	c.batch, c.bytes, c.parks = c.batch[:0], 0, false
}

// write is the writer: it finishes calls in order and writes their answers,
// those that are ready together in one write. Between a write of all that it has
// gathered and the next call from the queue the outbox may be the reader's: it is
// not even looked at.
func (c *conn) write() {
	defer close(c.written)
	gathered := false
	for {
		var call *Call
		var ok bool
		select {
		case call, ok = <-c.queue:
		default:
			if gathered {
				c.flushPending()
				gathered = false
			}
			call, ok = <-c.queue
		}
		if !ok {
			if gathered {
				c.flushPending()
			}
			return
		}
		if gathered && !call.isReady() {
			c.flushPending()
		}
		c.out.finish(call)
		if gathered = !c.out.full(); !gathered {
			c.flushPending()
		}
	}
}

// flushPending writes what the writer has gathered, and makes room for more
// calls. REQUIRES: the writer has finished a call since the last time.
func (c *conn) flushPending() {
	calls, bytes := len(c.out.calls), c.out.requests
	c.out.flush()
	c.pendingBytes.Add(-int64(bytes))
	c.pending.Add(-int32(calls))
	select {
	case c.room <- struct{}{}:
	default:
	}
}
