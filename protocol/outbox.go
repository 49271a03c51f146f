package protocol

import (
	"encoding/binary"
	"net"
	"time"
)

const (
	// flushBytes and flushPieces bound what is gathered for one write.
	flushBytes  = 256 << 10
	flushPieces = 512
	// copyBelow is the size of a body that is copied behind its header: to write
	// a piece of its own takes longer.
	copyBelow = 1 << 10
)

// outbox gathers answers and writes them, many in one write.
type outbox struct {
	conn *conn
	// buf holds what was encoded; cut is where its part begins that is not in
	// pieces yet.
	buf []byte
	cut int
	// pieces is what is to be written before buf[cut:].
	pieces net.Buffers
	// writing is the part of pieces that a write has left; writev wants a slice
	// that it may change.
	writing net.Buffers
	// insets stand between the pieces, At counted in these.
	insets []Inset
	stride stride
	// calls are those whose answers are in here; lens are the answers' sizes.
	calls []*Call
	lens  []int
	// size is the number of bytes to write, requests that of the calls' frames.
	size, requests int
}

func (o *outbox) init(c *conn) { o.conn = c }

func (o *outbox) full() bool {
	return o.size >= flushBytes || len(o.pieces) >= flushPieces || len(o.calls) >= 256
}

// finish waits for a call's reply and takes it in.
func (o *outbox) finish(call *Call) {
	r := call.complete()
	o.throttle(call, r)
	before := o.size
	var end error
	switch {
	case r.None || o.conn.broken != nil:
	case r.Msg != nil:
		o.encode(call, r)
	case r.Body != nil:
		o.attach(call, r.Body)
	default:
		end = ErrHandler
	}
	o.calls = append(o.calls, call)
	o.lens = append(o.lens, o.size-before)
	o.requests += call.size
	if r.Close {
		end = ErrClosedByReply
	}
	if end != nil {
		o.flush()
		o.conn.fail(end)
	}
}

// encode appends a message.
func (o *outbox) encode(call *Call, r Reply) {
	o.room(64)
	start := len(o.buf)
	r.Msg.SetVersion(call.Version)
	o.buf = appendResponseHeader(o.buf, call.CorrelationID, call.row.flexibleAnswer(call.Version))
	o.buf = r.Msg.AppendTo(o.buf)
	n := len(o.buf) - start
	binary.BigEndian.PutUint32(o.buf[start:], uint32(n-sizeLen))
	o.size += n
}

// attach takes a body in pieces, without copying it unless it is small.
func (o *outbox) attach(call *Call, body *Buffers) {
	size := 0
	for _, p := range body.Pieces {
		size += len(p)
	}
	for i := range body.Insets {
		size += body.Insets[i].Size
	}
	o.room(16 + min(size, copyBelow))
	start := len(o.buf)
	o.buf = appendResponseHeader(o.buf, call.CorrelationID, call.row.flexibleAnswer(call.Version))
	n := len(o.buf) - start + size
	binary.BigEndian.PutUint32(o.buf[start:], uint32(n-sizeLen))
	if size <= copyBelow && len(body.Insets) == 0 {
		for _, p := range body.Pieces {
			o.buf = append(o.buf, p...)
		}
		o.size += n
		return
	}
	o.pieces = append(o.pieces, o.buf[o.cut:])
	o.cut = len(o.buf)
	insets := body.Insets
	for i := 0; i <= len(body.Pieces); i++ {
		for ; len(insets) > 0 && insets[0].At == i; insets = insets[1:] {
			in := insets[0]
			in.At = len(o.pieces)
			o.insets = append(o.insets, in)
		}
		if i < len(body.Pieces) && len(body.Pieces[i]) > 0 {
			o.pieces = append(o.pieces, body.Pieces[i])
		}
	}
	o.size += n
}

// room takes a buffer if there is none.
func (o *outbox) room(n int) {
	if o.buf == nil {
		o.buf = o.conn.srv.pool.get(max(n, 1<<minClass))
	}
}

// flush writes what was gathered and lets go of the calls.
func (o *outbox) flush() {
	c := o.conn
	if o.size > 0 && c.broken == nil {
		c.touch()
		c.writing.Store(true)
		err := o.writeAll()
		c.served = true
		c.writing.Store(false)
		c.touch()
		if err != nil {
			c.fail(err)
		}
	}
	var now time.Time
	answered := c.srv.opts.Events.Answered
	if answered != nil && len(o.calls) > 0 {
		now = time.Now()
	}
	for i, call := range o.calls {
		if answered != nil {
			answered(Exchange{
				Key: call.Key, Version: call.Version,
				RequestBytes: call.size + sizeLen, ResponseBytes: o.lens[i],
				Took: now.Sub(call.started),
			})
		}
		o.calls[i] = nil
		c.srv.recycle(call)
	}
	o.calls, o.lens = o.calls[:0], o.lens[:0]
	clear(o.pieces)
	clear(o.insets)
	o.insets = o.insets[:0]
	o.pieces, o.cut, o.size, o.requests = o.pieces[:0], 0, 0, 0
	if o.buf != nil {
		c.srv.pool.put(o.buf)
		o.buf = nil
	}
}

// writeAll writes everything by one write or writev.
func (o *outbox) writeAll() error {
	if len(o.pieces) == 0 {
		_, err := o.conn.nc.Write(o.buf)
		return err
	}
	if o.cut < len(o.buf) {
		o.pieces = append(o.pieces, o.buf[o.cut:])
	}
	if o.size <= strideBytes && len(o.insets) == 0 {
		return o.write(o.pieces)
	}
	return o.writeStrides()
}

// write writes pieces and leaves them as they are.
func (o *outbox) write(pieces net.Buffers) error {
	o.writing = pieces
	_, err := o.writing.WriteTo(o.conn.nc)
	o.writing = nil
	return err
}

// fail ends the connection: nothing more is written, and what waits is told.
// Only who finishes calls may say so.
func (c *conn) fail(err error) {
	if c.broken != nil {
		return
	}
	c.broken = err
	_ = c.nc.Close()
	c.cancel(err)
}
