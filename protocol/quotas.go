package protocol

import (
	"net/netip"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Quotas delay clients. A client that has to wait is told so at once, in the
// answer, and its connection is not read until the time is over: clients that do
// not wait by themselves are held as well. Any func may be nil.
type Quotas struct {
	// Timed tells whether requests are to be timed. It is asked for each request.
	Timed func() bool
	// Took counts the broker's time that a call took, waiting aside, and tells how
	// long its client has to wait.
	Took func(c *Call, took time.Duration) time.Duration
	// Connection counts a connection from an address. If it says how long to wait,
	// the connection is closed unserved when that time is over, so that clients do
	// not try again at once.
	Connection func(ip netip.Addr) time.Duration
}

// maxHeld bounds the connections that wait to be closed unserved.
const maxHeld = 1024

// Throttle makes the client wait from its answer on: Submit or Finish say it. No
// further request of the connection is submitted before the time is over. The
// answer tells the client; one with a hand-made body has to be told by Throttled.
func (c *Call) Throttle(d time.Duration) {
	if d <= 0 {
		return
	}
	c.throttle = max(c.throttle, d)
	if c.conn != nil {
		c.conn.mute(d)
	}
}

// Throttling is how long the client has to wait for what Throttle has said so far.
func (c *Call) Throttling() time.Duration { return c.throttle }

// Working is said by Finish when it has waited and works from now on: this time
// counts for its client's quota.
func (c *Call) Working() {
	if c.timed {
		c.since = time.Now()
	}
}

// Exempt is said by Submit or Finish: the time of the call counts for no quota, as
// that of what brokers ask of each other.
func (c *Call) Exempt() { c.timed = false }

// Throttled counts the broker's time that the call has taken, once, and tells how
// long the client has to wait in all.
func (c *Call) Throttled() time.Duration {
	if !c.timed {
		return c.throttle
	}
	c.timed = false
	took := c.busy
	if !c.since.IsZero() {
		took += time.Since(c.since)
	}
	c.Throttle(c.conn.srv.opts.Quotas.Took(c, took))
	return c.throttle
}

// timedSubmit gives a call to its handler, and notes how long that took if somebody
// has a quota on time.
func (c *conn) timedSubmit(call *Call) Finish {
	timed := c.srv.opts.Quotas.Timed
	if timed == nil || !timed() {
		return call.row.Submit(call)
	}
	call.timed = true // Before, so that the handler may exempt it.
	start := time.Now()
	f := call.row.Submit(call)
	call.busy = time.Since(start)
	return f
}

// throttle tells a client in its answer that it has to wait, and holds it to that.
func (o *outbox) throttle(call *Call, r Reply) {
	if !r.None { // A client that wants no answers is held by its bytes alone.
		call.Throttled()
	}
	call.tell(r)
	o.conn.mute(call.throttle)
}

// tell puts into an answer how long the client has to wait.
func (c *Call) tell(r Reply) {
	if m, ok := r.Msg.(kmsg.SetThrottleResponse); ok && c.throttle > 0 {
		m.SetThrottle(int32(c.throttle.Milliseconds()))
	}
}

// mute keeps the connection from being read for a time.
func (c *conn) mute(d time.Duration) {
	if d <= 0 {
		return
	}
	until := int64(time.Since(c.srv.begun) + d)
	for {
		now := c.muted.Load()
		if now >= until || c.muted.CompareAndSwap(now, until) {
			return
		}
	}
}

// heard waits until the connection is not muted any more. What was submitted goes on
// its way before. Nobody looks for the client meanwhile: who hangs up is noticed
// then, or when the connection has been idle for too long.
func (c *conn) heard() error {
	for {
		until := c.muted.Load()
		if until == 0 {
			return nil
		}
		left := time.Duration(until) - time.Since(c.srv.begun)
		if left <= 0 {
			c.muted.CompareAndSwap(until, 0)
			continue
		}
		if len(c.batch) > 0 {
			c.deliver(false)
			continue
		}
		if c.stopped() {
			return errDrained
		}
		if err := c.sit(left); err != nil {
			return err
		}
	}
}

// sit waits for a time.
func (c *conn) sit(d time.Duration) error {
	over := make(chan struct{})
	one := c.srv.alarms.set(time.Now().Add(d), func() { close(over) })
	defer c.srv.alarms.cancel(one)
	select {
	case <-over:
		return nil
	case <-c.ctx.Done():
	case <-c.srv.draining:
	}
	return errDrained
}
