package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errDrained ends reading when the server drains.
var errDrained = errors.New("server drains")

const (
	// growth is how many times the memory of a large request may exceed what has
	// arrived of it.
	growth = 8
	// batchBytes bounds what is submitted before it is finished.
	batchBytes = 1 << 20
	// maxReported is how much of a client id is told of a refused client.
	maxReported = 256
)

// read reads and submits calls until the client, the server or a bad request
// ends it.
func (c *conn) read() error {
	for {
		if err := c.heard(); err != nil {
			return err
		}
		call, err := c.next()
		if err != nil {
			return err
		}
		// An answer may have muted the connection while the request came.
		if err := c.heard(); err != nil {
			c.srv.recycle(call)
			return err
		}
		if err := c.submit(call); err != nil {
			return err
		}
	}
}

// stopped says that no further request is taken.
func (c *conn) stopped() bool { return c.ctx.Err() != nil || c.srv.isDraining() }

// need waits until n bytes are in the inbox. Before it waits, the batch goes on
// its way.
func (c *conn) need(n int) error {
	for c.in.len() < n {
		partial := c.in.len() > 0
		c.deliver(partial)
		if c.stopped() {
			return errDrained
		}
		if err := c.in.fill(); err != nil {
			if partial && errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		c.touch()
	}
	return nil
}

// next reads one request.
func (c *conn) next() (*Call, error) {
	if c.stopped() {
		return nil, errDrained
	}
	if err := c.need(sizeLen); err != nil {
		return nil, err
	}
	limit := c.srv.opts.MaxRequestBytes
	size := int(int32(binary.BigEndian.Uint32(c.in.bytes())))
	if size <= 0 || size > limit {
		remedy, err := frameSizeError(c.in.bytes(), limit)
		return nil, c.refuse(Refusal{Key: -1, Version: -1, Err: err, Remedy: remedy})
	}
	if size < minFrame {
		err := fmt.Errorf("%w: %d bytes", ErrHeader, size)
		return nil, c.refuse(Refusal{Key: -1, Version: -1, Err: err})
	}
	if err := c.need(prefixLen); err != nil {
		return nil, err
	}
	key := int16(binary.BigEndian.Uint16(c.in.bytes()[4:]))
	version := int16(binary.BigEndian.Uint16(c.in.bytes()[6:]))
	row := c.srv.table.find(key, version)
	if row != nil && size > row.MaxBytes {
		err := fmt.Errorf("%w: %d bytes, at most %d are taken for %s", ErrFrameSize, size, row.MaxBytes, apiName(key))
		return nil, c.refuse(Refusal{Key: key, Version: version, Err: err})
	}
	call, err := c.receive(size, row)
	if err != nil {
		return nil, err
	}
	return call, c.decode(call, row, key, version)
}

// receive waits for room, takes memory for a request, and reads it.
func (c *conn) receive(size int, row *row) (*Call, error) {
	if row == nil {
		// To be refused; all that is wanted of it is the header.
		size = min(size, lookahead-sizeLen)
	}
	if err := c.awaitRoom(size); err != nil {
		return nil, err
	}
	call := c.srv.newCall(c)
	call.size = size
	if err := c.readFrame(call, size); err != nil {
		c.srv.recycle(call)
		return nil, err
	}
	return call, nil
}

// reserve takes room in a budget for n more bytes of a call, and adds them to
// what the call holds of it.
func (c *conn) reserve(call *Call, b *budget, n int64, sum *int64) error {
	if !b.tryAcquire(n) {
		c.deliver(true)
		if !b.acquire(call, n, c.ctx.Done(), c.srv.draining) {
			return errDrained
		}
	}
	*sum += n
	return nil
}

// awaitRoom waits until the connection's own bounds admit one more request.
func (c *conn) awaitRoom(size int) error {
	o := &c.srv.opts
	if len(c.batch) >= o.MaxInFlight || c.bytes >= batchBytes {
		c.deliver(true)
	}
	for {
		calls := int(c.pending.Load()) + len(c.batch)
		bytes := int(c.pendingBytes.Load()) + c.bytes
		if calls == 0 || calls < o.MaxInFlight && bytes+size <= o.MaxInFlightBytes {
			return nil
		}
		if len(c.batch) > 0 {
			c.deliver(true)
			continue
		}
		select {
		case <-c.room:
		case <-c.ctx.Done():
			return errDrained
		}
	}
}

// readFrame reads what follows the size. The memory for a large request grows
// with what arrives of it.
func (c *conn) readFrame(call *Call, size int) error {
	c.in.consume(sizeLen)
	have := min(size, c.in.len())
	if err := c.grow(call, min(size, max(smallBytes, growth*have))); err != nil {
		return err
	}
	call.frame = append(call.frame, c.in.bytes()[:have]...)
	c.in.consume(have)
	if have == size {
		return nil
	}
	c.deliver(true)
	for len(call.frame) < size {
		have := len(call.frame)
		if have == cap(call.frame) {
			if err := c.grow(call, min(size, growth*have)); err != nil {
				return err
			}
		}
		c.touch()
		c.holding.Store(true)
		n, err := c.nc.Read(call.frame[have:min(cap(call.frame), size)])
		c.holding.Store(false)
		call.frame = call.frame[:have+n]
		if err != nil && have+n < size {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	// Whether more is coming decides who finishes this call.
	c.in.poll()
	return nil
}

// grow makes room for n bytes in a call's frame.
func (c *conn) grow(call *Call, n int) error {
	if err := c.reserve(call, &c.srv.frames, int64(n)-call.reserved, &call.reserved); err != nil {
		return err
	}
	bigger := append(c.srv.pool.get(n), call.frame...)
	if call.frame != nil {
		c.srv.pool.put(call.frame)
	}
	call.frame = bigger
	return nil
}

// decode reads the header and the body of a request into its call.
func (c *conn) decode(call *Call, row *row, key, version int16) error {
	if c.srv.opts.Events.Answered != nil {
		call.started = time.Now()
	}
	served := row != nil && row.serves(version)
	h, body, err := parseHeader(call.frame, served && version >= row.flexible)
	if err == nil {
		call.Key, call.Version, call.CorrelationID = key, version, h.correlation
		call.ClientID = c.intern(h.clientID)
		call.row = row
		switch {
		case row == nil:
			err = fmt.Errorf("%w: %s version %d", ErrUnserved, apiName(key), version)
		case !served:
			// Only ApiVersions comes here: its body is not looked at.
			return nil
		default:
			err = c.decodeBody(call, body)
		}
	}
	if err == nil {
		return nil
	}
	r := Refusal{Key: key, Version: version, Err: err}
	if id := call.ClientID; id != nil {
		r.ClientID = *id
	}
	if errors.Is(err, ErrUnserved) {
		r.Remedy = "set the client to a version of Kafka's protocol that ApiVersions lists"
	}
	c.srv.recycle(call)
	return c.refuse(r)
}

func (c *conn) decodeBody(call *Call, body []byte) error {
	row := call.row
	cost, err := row.schema.walk(call.Version, body)
	if err != nil {
		return err
	}
	if err := c.reserve(call, &c.srv.decodes, int64(cost), &call.decoded); err != nil {
		return err
	}
	if row.Decode != nil {
		return row.Decode(call, body)
	}
	req := kmsg.RequestForKey(call.Key)
	req.SetVersion(call.Version)
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMalformed, row.schema.name, err)
	}
	call.Request = req
	return nil
}

// intern makes a client id that may be kept.
func (c *conn) intern(id []byte) *string {
	if id == nil {
		return nil
	}
	if c.clientID == nil || *c.clientID != string(id) {
		s := string(id)
		c.clientID = &s
		c.info.client.Store(&s)
	}
	return c.clientID
}

// submit gives a call to its handler, in its turn.
func (c *conn) submit(call *Call) error {
	if call.row.serves(call.Version) {
		call.finish = c.timedSubmit(call)
	} else {
		call.finish = c.srv.table.unknownVersion(call)
	}
	switch {
	case call.finish == nil:
		key, version := call.Key, call.Version
		c.srv.recycle(call)
		return fmt.Errorf("%w: %s version %d", ErrHandler, apiName(key), version)
	case call.state == callSilent:
		c.silent(call)
		return nil
	}
	if call.row.Detached {
		c.srv.detach(call)
	}
	alone := call.alone
	c.batch = append(c.batch, call)
	c.bytes += call.size
	c.parks = c.parks || call.parks
	if alone {
		return c.settle()
	}
	return nil
}

// settle waits until everything that was submitted is finished.
func (c *conn) settle() error {
	c.deliver(false)
	for c.pending.Load() > 0 {
		select {
		case <-c.room:
		case <-c.ctx.Done():
			return errDrained
		}
	}
	return nil
}

// silent lets go of a call that gets no answer.
func (c *conn) silent(call *Call) {
	if f := c.srv.opts.Events.Answered; f != nil {
		e := Exchange{Key: call.Key, Version: call.Version, RequestBytes: call.size + sizeLen}
		e.Took = time.Since(call.started)
		f(e)
	}
	c.srv.recycle(call)
}

// refuse tells of a request that ends its connection.
func (c *conn) refuse(r Refusal) error {
	if errors.Is(r.Err, errDrained) {
		return r.Err
	}
	r.Conn, r.Cause = &c.info, r.Err.Error()
	r.ClientID = r.ClientID[:min(len(r.ClientID), maxReported)]
	if f := c.srv.opts.Events.Refused; f != nil {
		f(r)
	}
	return r.Err
}
