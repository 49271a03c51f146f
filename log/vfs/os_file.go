package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// zeroPiece is the size of the writes by which space is reserved where the platform cannot do it without.
const zeroPiece = 1 << 20

// osFile is a file of the operating system. ReadAt, WriteAt, Sync, Close and Name are os.File's.
type osFile struct {
	*os.File
}

// SyncData implements File.
func (f *osFile) SyncData() error {
	if err := syncData(f.File); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// WritevAt implements File.
func (f *osFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	total := 0
	for len(bufs) > 0 {
		n, err := pwritev(f.File, bufs, off+int64(total))
		total += n
		if err != nil {
			return total, &fs.PathError{Op: "pwritev", Path: f.Name(), Err: err}
		}
		bufs = advance(bufs, n)
	}
	return total, nil
}

// advance leaves out of the buffers the n bytes that are written, and what is empty.
func advance(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}

// Allocate implements File.
func (f *osFile) Allocate(off, n int64) error {
	if off < 0 || n <= 0 {
		return &fs.PathError{Op: "allocate", Path: f.Name(), Err: syscall.EINVAL}
	}
	err := allocate(f.File, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.allocateByWriting(off + n)
	}
	if err != nil {
		return &fs.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}

// allocateByWriting extends the file to end with zeros, which takes the space for sure.
func (f *osFile) allocateByWriting(end int64) error {
	size, err := f.Size()
	if err != nil || size >= end {
		return err
	}
	zeros := make([]byte, min(zeroPiece, end-size))
	for size < end {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), end-size)], size)
		size += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// Size implements File.
func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
