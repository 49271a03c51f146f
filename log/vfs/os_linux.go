package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// maxIovecs is the most buffers that one system call takes.
const maxIovecs = 1024

func syncData(f *os.File) error { return control(f, unix.Fdatasync) }

func allocate(f *os.File, off, n int64) error {
	return control(f, func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
}

// pwritev writes the first buffers at off, perhaps not all bytes of them.
func pwritev(f *os.File, bufs [][]byte, off int64) (n int, err error) {
	bufs = bufs[:min(len(bufs), maxIovecs)]
	err = control(f, func(fd int) error {
		n, err = unix.Pwritev(fd, bufs, off)
		return err
	})
	return max(n, 0), err
}
