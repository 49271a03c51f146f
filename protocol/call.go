package protocol

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Call is one request on its way. It is valid until its answer was given: it is
// used again, so nobody keeps it after Finish has returned.
type Call struct {
	// Ctx ends when the client has hung up or has closed its sending side. A
	// call that waits for something to happen should then stop waiting; its
	// answer is still sent if the client takes it.
	Ctx context.Context
	// Key and Version are those of the request.
	Key, Version int16
	// CorrelationID is the client's number of the request.
	CorrelationID int32
	// ClientID is the client's name for itself, nil if it gave none. It may be
	// kept.
	ClientID *string
	// Request is the decoded request, its version set. Its byte slices lie in
	// the frame, which lives until the answer is written (unless API.Detached).
	Request kmsg.Request
	// Body is what API.Decode has made of the request.
	Body any
	// Conn is the connection that the request came by.
	Conn *ConnInfo

	conn *conn
	row  *row
	// frame and what is taken from the server's budgets for it.
	frame    []byte
	reserved int64
	decoded  int64
	size     int
	started  time.Time

	finish Finish
	ready  func() bool
	reply  Reply
	parks  bool
	alone  bool

	// throttle is how long the client has to wait. timed says that busy, the time
	// of Submit, and what has gone by since are still to be counted for its quota.
	throttle time.Duration
	timed    bool
	busy     time.Duration
	since    time.Time

	state callState
}

// callState says how far a call was brought by Submit.
type callState uint8

const (
	callOpen     callState = iota // Finish is to be called
	callAnswered                  // reply holds the answer
	callSilent                    // there is no answer
)

// answered is the Finish of all calls whose reply is known: it stands for itself
// and is never called.
func answered() Reply { return Reply{} }

// MayPark is said by Submit: Finish may wait long (a long poll), so it never
// runs on the goroutine that reads the connection.
func (c *Call) MayPark() { c.parks = true }

// Alone is said by Submit: it is Finish that has the effect, and what comes behind
// it on the connection is looked at only after that.
func (c *Call) Alone() { c.alone = true }

// ReadyWhen is said by Submit: ready tells, without waiting, whether Finish
// would return at once. Answers that are ready together leave in one write.
func (c *Call) ReadyWhen(ready func() bool) { c.ready = ready }

// Answer is the Finish of a call that is complete. Return what it returns from
// Submit.
func (c *Call) Answer(r kmsg.Response) Finish { return c.Reply(Reply{Msg: r}) }

// Reply is Answer for any reply.
func (c *Call) Reply(r Reply) Finish {
	c.reply, c.state = r, callAnswered
	return answered
}

// None is the Finish of a call that has no answer and is complete. It takes no
// place in the order of answers.
func (c *Call) None() Finish {
	c.state = callSilent
	return answered
}

// Draining is closed when the server shuts down: what waits should end, with an
// answer that makes the client go elsewhere or try again.
func (c *Call) Draining() <-chan struct{} {
	if c.conn == nil {
		return nil
	}
	return c.conn.srv.draining
}

// Size is the number of bytes of the request, its length aside; 0 for one that came
// by no connection.
func (c *Call) Size() int { return c.size }

// ErrorCode is the package's ErrorCode. It tells Events of the code, and an
// error that clients see as -1 is reported through Events.UnknownError.
func (c *Call) ErrorCode(err error) (code int16, message *string) {
	code, message = ErrorCode(err)
	if code == 0 || c.conn == nil {
		return code, message
	}
	e := &c.conn.srv.opts.Events
	if e.ErrorCode != nil {
		e.ErrorCode(c.Key, c.Version, code)
	}
	if code == -1 && e.UnknownError != nil {
		e.UnknownError(c.Conn, c.Key, c.Version, err)
	}
	return code, message
}

// Outcome waits for the reply of a call that was submitted without a server, for
// which Submit has returned f.
func (c *Call) Outcome(f Finish) Reply {
	if c.state == callSilent {
		return Reply{None: true}
	}
	c.finish = f
	r := c.complete()
	c.tell(r)
	return r
}

// isReady says whether finishing the call will not wait.
func (c *Call) isReady() bool {
	return c.state != callOpen || c.ready != nil && c.ready()
}

// complete waits for the call's reply.
func (c *Call) complete() Reply {
	if c.state == callOpen {
		if c.timed && !c.parks && c.isReady() {
			c.since = time.Now()
		}
		c.reply, c.state = c.finish(), callAnswered
	}
	return c.reply
}

// reusable is a decoded body that is used again after its call.
type reusable interface{ reuse() }

// ConnInfo is what is known of a client's connection.
type ConnInfo struct {
	// ID numbers the connections of a server, from 1.
	ID uint64
	// Listener is the name of the listener that the client came by.
	Listener string
	// Remote and Local are the two ends.
	Remote, Local net.Addr
	// Principal is who the client is, "User:ANONYMOUS" on a plain listener.
	Principal string

	software atomic.Pointer[software]
	client   atomic.Pointer[string]
}

type software struct{ name, version string }

// Software is what the client said it was in ApiVersions; empty before that.
func (c *ConnInfo) Software() (name, version string) {
	if s := c.software.Load(); s != nil {
		return s.name, s.version
	}
	return "", ""
}

// ClientID is the name that the client gave itself in its last request; empty if
// it gave none.
func (c *ConnInfo) ClientID() string {
	if id := c.client.Load(); id != nil {
		return *id
	}
	return ""
}
