//go:build unix

package protocol

import (
	"fmt"
	"math"
	"net"
	"syscall"
)

// setBuffers sets the sizes of a socket's buffers; zero or less leaves them.
func setBuffers(raw syscall.RawConn, send, receive int) error {
	var err error
	cerr := raw.Control(func(fd uintptr) {
		if send > 0 {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, send)
		}
		if receive > 0 && err == nil {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receive)
		}
	})
	if err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("set socket buffers: %w", err)
	}
	return nil
}

// setBacklog sets the length of the queue of a listener that listens already:
// listening again does no more than that.
func setBacklog(l net.Listener, n int) error {
	sc, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return fmt.Errorf("set backlog: %w", err)
	}
	cerr := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), n) })
	if err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("set backlog: %w", err)
	}
	return nil
}

// openFiles is how many files the process may have open at a time.
func openFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32 // Not to be known, or unlimited.
	}
	return int(l.Cur)
}
