package protocol

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// sendsFiles tells that sendFile works.
const sendsFiles = true

// sendFile sends n bytes of a file from a position on to a socket, and returns how
// many it has sent. It says fs.ErrClosed if the file was closed before.
func sendFile(socket, file syscall.RawConn, from int64, n int) (sent int, err error) {
	open := false
	_ = file.Control(func(in uintptr) { // Fails only if it does not call.
		open = true
		werr := socket.Write(func(out uintptr) bool {
			for sent < n && err == nil {
				var m int
				m, err = syscall.Sendfile(int(out), int(in), &from, n-sent)
				switch {
				case errors.Is(err, syscall.EINTR):
					err = nil
				case errors.Is(err, syscall.EAGAIN):
					err = nil
					return false
				case err == nil && m == 0:
					err = io.ErrUnexpectedEOF
				}
				sent += max(m, 0)
			}
			return true
		})
		if err == nil {
			err = werr
		}
	})
	if !open {
		return 0, fs.ErrClosed
	}
	return sent, err
}
