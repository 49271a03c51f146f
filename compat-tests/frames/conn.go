// Package frames speaks Kafka's protocol by hand: requests built field by field
// or byte by byte over one socket, and record batches that need not be right.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Patience is how long an answer may take before a test gives up on it. It is
// no bound that a broker is held to.
const Patience = 30 * time.Second

const apiVersionsKey = 18

// Conn is one connection to a broker. Requests may be sent ahead of answers.
type Conn struct {
	net.Conn
	t           testing.TB
	format      *kmsg.RequestFormatter
	correlation int32
}

// Dial connects to a broker until the test ends.
func Dial(t testing.TB, address string) *Conn {
	t.Helper()
	return DialAs(t, address, "frames")
}

// DialAs is Dial for a client that calls itself id.
func DialAs(t testing.TB, address, id string) *Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, Patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Conn{Conn: c, t: t, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(id))}
}

// Send writes a request and returns its correlation id.
func (c *Conn) Send(req kmsg.Request) int32 {
	c.t.Helper()
	c.correlation++
	c.write(c.format.AppendRequest(nil, req, c.correlation))
	return c.correlation
}

// SendBytes writes a frame whose content, header included, is b.
func (c *Conn) SendBytes(b []byte) {
	c.t.Helper()
	c.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
}

func (c *Conn) write(b []byte) {
	c.t.Helper()
	if err := c.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// Next reads an answer and returns its correlation id and what follows that.
func (c *Conn) Next() (correlation int32, rest []byte, err error) {
	if err := c.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return 0, nil, err
	}
	var size [8]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(size[:])) - 4
	if n < 0 || n > 200<<20 {
		return 0, nil, fmt.Errorf("an answer of %d bytes", n+4)
	}
	rest = make([]byte, n)
	_, err = io.ReadFull(c, rest)
	return int32(binary.BigEndian.Uint32(size[4:])), rest, err
}

// Receive reads the answer to a request, which must have this correlation id.
func Receive[R kmsg.Response](c *Conn, req kmsg.Request, correlation int32) R {
	c.t.Helper()
	resp, ok := req.ResponseKind().(R)
	if !ok {
		c.t.Fatalf("%T is not what %T is answered by", resp, req)
	}
	got, rest, err := c.Next()
	if err != nil {
		c.t.Fatalf("answer to %T: %v", req, err)
	}
	if got != correlation {
		c.t.Fatalf("answer to %T has correlation id %d, want %d", req, got, correlation)
	}
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && req.Key() != apiVersionsKey {
		if len(rest) == 0 || rest[0] != 0 {
			c.t.Fatalf("answer to %T: bad header tags", req)
		}
		rest = rest[1:]
	}
	if err := resp.ReadFrom(rest); err != nil {
		c.t.Fatalf("answer to %T: %v", req, err)
	}
	return resp
}

// Ask sends a request and reads its answer.
func Ask[R kmsg.Response](c *Conn, req kmsg.Request) R {
	c.t.Helper()
	return Receive[R](c, req, c.Send(req))
}

// Closed reports whether the broker closes the connection within the limit
// without sending anything before.
func (c *Conn) Closed(limit time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	n, err := c.Read(make([]byte, 1))
	var timeout net.Error
	switch {
	case n > 0:
		return errors.New("the broker sent something")
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("still open after %v", limit)
	case err == nil:
		return errors.New("an empty read")
	}
	return nil
}
