package protocol

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// API is one row of the table of what a server serves. ApiVersions is derived
// from the rows and answered by the server itself.
type API struct {
	// Key, Min and Max say what is served. A request outside of it closes its
	// connection, as Kafka does: there is no layout to answer in.
	Key, Min, Max int16
	// Advertise is the range shown by ApiVersions where it is not Min to Max.
	Advertise *[2]int16
	// Hidden leaves the row out of ApiVersions although it is served.
	Hidden bool
	// MaxBytes bounds a request of this API, as decoding multiplies memory.
	// Zero means DefaultMaxBytes; what is beyond Options.MaxRequestBytes is cut
	// to it.
	MaxBytes int
	// Detached says that once Submit has returned nothing refers to the frame
	// any more: no byte slice of the decoded request is kept. Its memory is then
	// given back while the call waits. Set it for calls that wait for long.
	Detached bool
	// Decode reads the body by hand instead of by kmsg: it puts what it has read
	// into Call.Body, and must bound every count by the bytes that are there.
	// Call.Request is nil then.
	Decode func(c *Call, body []byte) error
	// Submit takes the request in its turn: what it does, it does before any
	// later request of the connection is looked at. It must not wait for long.
	// What it returns is called when the answer's turn has come; nil closes the
	// connection.
	Submit func(*Call) Finish
}

// Do serves a request that came by no connection, and waits for its answer.
func (a *API) Do(ctx context.Context, req kmsg.Request, conn *ConnInfo) (Reply, error) {
	c := &Call{Ctx: ctx, Key: req.Key(), Version: req.GetVersion(), Request: req, Conn: conn}
	if a.Decode != nil {
		c.Request = nil
		if err := a.Decode(c, req.AppendTo(nil)); err != nil {
			return Reply{}, err
		}
	}
	f := a.Submit(c)
	if f == nil {
		return Reply{}, ErrHandler
	}
	return c.Outcome(f), nil
}

// Finish waits for what its call needs, and gives the answer.
type Finish func() Reply

// Reply is the answer to a call.
type Reply struct {
	// Msg is encoded by the server, in the version of the request.
	Msg kmsg.Response
	// Body is a body encoded by hand, without the response header. It is used
	// when Msg is nil.
	Body *Buffers
	// None sends nothing at all: the answer to a produce with acks=0.
	None bool
	// Close ends the connection once this and all earlier answers are sent.
	Close bool
	// Release, if set, is called exactly once, when nothing of the answer is
	// needed any more, so that Msg can be used again.
	Release func()
}

// Buffers is an encoded body in pieces, written without being copied.
type Buffers struct {
	Pieces [][]byte
	// Insets are the parts of the body that are not in memory yet, in their order.
	Insets []Inset
	// Release, if set, is called exactly once, when neither pieces nor insets are
	// needed any more: written or given up.
	Release func()
}

// Inset says that a part of the body stands in front of Pieces[At], or behind the
// last one.
type Inset struct {
	At, Size int
	Source   Source
	// Begun says that the pieces right before are the source's too: they are no
	// longer valid once it is asked for more.
	Begun bool
}

// Source brings a part of a body while the body is written, so that an answer may
// be larger than the memory that it takes.
type Source interface {
	// More returns the next pieces, of one byte at least. What it returned before
	// is not needed any more. An error ends the connection, since the client was
	// promised more than there is.
	More() ([][]byte, error)
	// Discard says that nothing of what More returned is needed any more.
	Discard()
}

// Answer is the Finish of a call that is already complete. Call.Answer does the
// same for less.
func Answer(r kmsg.Response) Finish {
	return func() Reply { return Reply{Msg: r} }
}
