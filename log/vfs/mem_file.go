package vfs

import (
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// memFile is a handle on a file of a Mem.
type memFile struct {
	mem      *Mem
	in       *inode
	name     string
	writable bool
	closed   atomic.Bool
}

// check returns why the handle cannot be used, or nil.
func (f *memFile) check(op string) error {
	switch {
	case f.closed.Load():
		return pathError(op, f.name, fs.ErrClosed)
	case f.mem.crashed.Load():
		return pathError(op, f.name, ErrCrashed)
	default:
		return nil
	}
}

func (f *memFile) checkWritable(op string) error {
	if err := f.check(op); err != nil {
		return err
	}
	if !f.writable {
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

// wrap gives an error of the inode its place.
func (f *memFile) wrap(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // The inode returns it bare, and ReadAt must too.
		return err
	}
	return pathError(op, f.name, err)
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.check("read"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, syscall.EINVAL)
	}
	n, err := f.in.read(p, off)
	return n, f.wrap("read", err)
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.checkWritable("write"); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("write", f.name, syscall.EINVAL)
	}
	n, err := f.in.write(p, off)
	return n, f.wrap("write", err)
}

// WritevAt implements File.
func (f *memFile) WritevAt(bufs [][]byte, off int64) (int, error) {
	total := 0
	for _, b := range bufs {
		n, err := f.WriteAt(b, off+int64(total))
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	if err := f.check("sync"); err != nil {
		return err
	}
	return f.wrap("sync", f.in.sync())
}

// SyncData implements File.
func (f *memFile) SyncData() error { return f.Sync() }

// FailSync does to the file what a failed sync does: what was written since the last sync that succeeded can be read until
// the crash, and will never be durable unless it is written again.
func (f *memFile) FailSync() { f.in.failSync() }

// Allocate implements File.
func (f *memFile) Allocate(off, n int64) error {
	if err := f.checkWritable("allocate"); err != nil {
		return err
	}
	if off < 0 || n <= 0 {
		return pathError("allocate", f.name, syscall.EINVAL)
	}
	return f.wrap("allocate", f.in.allocate(off+n))
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	if err := f.checkWritable("truncate"); err != nil {
		return err
	}
	if size < 0 {
		return pathError("truncate", f.name, syscall.EINVAL)
	}
	return f.wrap("truncate", f.in.resize(size))
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	if err := f.check("stat"); err != nil {
		return 0, err
	}
	return f.in.visibleSize(), nil
}

// Close implements File.
func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.in.handles--
	f.mem.releaseLocked(f.in)
	return nil
}

// Name implements File.
func (f *memFile) Name() string { return f.name }

var _ File = (*memFile)(nil)
