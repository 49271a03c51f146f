package protocol

import (
	"context"
	"net"

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
	// ClientID is the client's name for itself, nil if it gave none.
	ClientID *string
	// Request is the decoded request, its version set. Its byte slices lie in
	// the frame, which lives until the answer is written (unless API.Detached).
	Request kmsg.Request
	// Body is what API.Decode has made of the request.
	Body any
	// Conn is the connection that the request came by.
	Conn *ConnInfo
}

// MayPark is said by Submit: Finish may wait long (a long poll), so it never
// runs on the goroutine that reads the connection.
func (c *Call) MayPark() { panic("skeleton") }

// ReadyWhen is said by Submit: ready tells, without waiting, whether Finish
// would return at once. Answers that are ready together leave in one write.
func (c *Call) ReadyWhen(ready func() bool) { panic("skeleton") }

// Answer is the Finish of a call that is complete.
func (c *Call) Answer(r kmsg.Response) Finish { panic("skeleton") }

// Draining is closed when the server shuts down: what waits should end, with an
// answer that makes the client go elsewhere or try again.
func (c *Call) Draining() <-chan struct{} { panic("skeleton") }

// ErrorCode is the package's ErrorCode; an error that is no Kafka error is
// reported through Events.UnknownError, and every code is counted for the API.
func (c *Call) ErrorCode(err error) (code int16, message *string) { panic("skeleton") }

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
}

// Software is what the client said it was in ApiVersions; empty before that.
func (c *ConnInfo) Software() (name, version string) { panic("skeleton") }
