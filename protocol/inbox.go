package protocol

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// lookahead is how much is read from a socket at once: a usual request is read
// whole by one call, together with its size.
const lookahead = 16 << 10

// inbox reads a connection. On a socket its buffer is taken only when there is
// something to read, so an idle connection holds none.
type inbox struct {
	nc   net.Conn
	raw  syscall.RawConn // nil if nc is no socket
	pool *pool

	buf  []byte
	r, w int
	// n and err are the result of the last read.
	n   int
	err error
	// peek makes the next read return at once if there is nothing.
	peek bool
	// fn is readable, made once.
	fn func(fd uintptr) bool
}

func (in *inbox) init(nc net.Conn, p *pool) {
	in.nc, in.pool = nc, p
	if sc, ok := nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			in.raw = raw
		}
	}
	in.fn = in.readable
}

// len is the number of bytes that were read and not consumed.
func (in *inbox) len() int { return in.w - in.r }

// bytes are the bytes that were read and not consumed.
func (in *inbox) bytes() []byte { return in.buf[in.r:in.w] }

// consume takes n bytes out.
func (in *inbox) consume(n int) {
	in.r += n
	if in.r == in.w {
		in.r, in.w = 0, 0
	}
}

// space makes room to read into.
func (in *inbox) space() []byte {
	if in.buf == nil {
		in.buf = in.pool.get(lookahead)[:lookahead]
	}
	if in.r > 0 && in.w == len(in.buf) {
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	return in.buf[in.w:]
}

// release gives the buffer back if it is empty.
func (in *inbox) release() {
	if in.buf != nil && in.r == in.w {
		in.pool.put(in.buf)
		in.buf, in.r, in.w = nil, 0, 0
	}
}

// discard gives the buffer back with what is in it.
func (in *inbox) discard() {
	in.consume(in.len())
	in.release()
}

// fill waits for more bytes.
func (in *inbox) fill() error {
	if in.raw == nil {
		n, err := in.nc.Read(in.space())
		in.w += n
		if n > 0 {
			return nil
		}
		return err
	}
	if err := in.raw.Read(in.fn); err != nil {
		return err
	}
	return in.err
}

// poll reads what is there, without waiting. Errors show at the next fill.
func (in *inbox) poll() {
	if in.raw == nil || in.len() > 0 {
		return
	}
	in.peek = true
	_ = in.raw.Read(in.fn)
	in.peek = false
}

// readable tries to read from the socket; false waits for it.
func (in *inbox) readable(fd uintptr) bool {
	space := in.space()
	for {
		in.n, in.err = syscall.Read(int(fd), space)
		if !errors.Is(in.err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(in.err, syscall.EAGAIN):
		in.release()
		in.err = nil
		return in.peek
	case in.err != nil:
	case in.n == 0:
		in.err = io.EOF
	default:
		in.w += in.n
	}
	return true
}
