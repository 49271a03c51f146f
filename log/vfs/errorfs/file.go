package errorfs

import (
	"errors"
	"io/fs"

	"github.com/mainstem/mainstem/log/vfs"
)

// file is an open file with failures.
type file struct {
	fs    *FS
	inner vfs.File
}

func failed(kind Kind, path string, err error) error {
	return &fs.PathError{Op: kind.String(), Path: path, Err: err}
}

// powerIsOut reports whether an error stands for lost power: then what was not synced is left to chance, while a sync that
// fails loses it for sure.
func powerIsOut(err error) bool { return errors.Is(err, vfs.ErrCrashed) }

// judge asks about an operation on the file.
func (f *file) judge(kind Kind, off, n int64) verdict {
	return f.fs.judge(Op{Kind: kind, Path: f.inner.Name(), Off: off, Len: n})
}

func (f *file) failed(kind Kind, v verdict) error { return failed(kind, f.inner.Name(), v.err) }

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if v := f.judge(Read, off, int64(len(p))); v.err != nil {
		return 0, f.failed(Read, v)
	}
	return f.inner.ReadAt(p, off)
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	v := f.judge(Write, off, int64(len(p)))
	if v.err == nil {
		return f.inner.WriteAt(p, off)
	}
	n := 0
	if v.short {
		n, _ = f.inner.WriteAt(p[:len(p)/2], off) // It fails by the rule anyway.
	}
	return n, f.failed(Write, v)
}

// WritevAt implements vfs.File.
func (f *file) WritevAt(bufs [][]byte, off int64) (int, error) {
	size := 0
	for _, b := range bufs {
		size += len(b)
	}
	v := f.judge(Write, off, int64(size))
	if v.err == nil {
		return f.inner.WritevAt(bufs, off)
	}
	n := 0
	if v.short {
		n, _ = f.inner.WritevAt(firstBytes(bufs, size/2), off) // It fails by the rule anyway.
	}
	return n, f.failed(Write, v)
}

// firstBytes returns buffers of the first n bytes.
func firstBytes(bufs [][]byte, n int) [][]byte {
	var first [][]byte
	for _, b := range bufs {
		b = b[:min(len(b), n)]
		first = append(first, b)
		n -= len(b)
	}
	return first
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.sync(Sync, f.inner.Sync) }

// SyncData implements vfs.File.
func (f *file) SyncData() error { return f.sync(SyncData, f.inner.SyncData) }

func (f *file) sync(kind Kind, sync func() error) error {
	v := f.judge(kind, 0, 0)
	switch {
	case v.err != nil:
		if mem, ok := f.inner.(interface{ FailSync() }); ok && !powerIsOut(v.err) {
			mem.FailSync()
		}
		return f.failed(kind, v)
	case v.stubbed:
		return nil
	}
	return sync()
}

// Allocate implements vfs.File.
func (f *file) Allocate(off, n int64) error {
	if v := f.judge(Allocate, off, n); v.err != nil {
		return f.failed(Allocate, v)
	}
	return f.inner.Allocate(off, n)
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	if v := f.judge(Truncate, 0, size); v.err != nil {
		return f.failed(Truncate, v)
	}
	return f.inner.Truncate(size)
}

// Size implements vfs.File.
func (f *file) Size() (int64, error) {
	if v := f.judge(Size, 0, 0); v.err != nil {
		return 0, f.failed(Size, v)
	}
	return f.inner.Size()
}

// Close implements vfs.File. When it fails by a rule the file is closed all the same, as the kernel does.
func (f *file) Close() error {
	v := f.judge(Close, 0, 0)
	err := f.inner.Close()
	if v.err != nil {
		return f.failed(Close, v)
	}
	return err
}

// Name implements vfs.File.
func (f *file) Name() string { return f.inner.Name() }
