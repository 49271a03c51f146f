package vfs

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// SectorSize is the unit in which a disk keeps or loses unsynced bytes.
const SectorSize = 512

var (
	// ErrLocked is wrapped by what Lock returns when another holder has the lock; see LockedError.
	ErrLocked = errors.New("locked by another process")
	// ErrNoSpace is the operating system's "no space left on device"; ask with IsNoSpace.
	ErrNoSpace error = syscall.ENOSPC
)

// FS is a filesystem. Its methods are safe for concurrent use. Names are paths with the operating system's separator.
type FS interface {
	// Create makes the file, or truncates it if it exists, and opens it for reading and writing.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenRW opens an existing file for reading and writing.
	OpenRW(name string) (File, error)
	// Remove removes a file, or a directory that is empty. Handles that are open stay usable.
	Remove(name string) error
	// Rename gives a file another name and replaces what had it.
	Rename(oldName, newName string) error
	// MkdirAll makes a directory and its missing parents, durably.
	MkdirAll(dir string) error
	// List returns the names in a directory, without the directory, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (Info, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock by the file of that name, which it makes if it is missing. It does not wait: a lock held
	// elsewhere is a *LockedError. The lock ends when the Closer is closed or the process dies; the file stays.
	Lock(name string) (io.Closer, error)
	// Space returns the bytes that are free for this process and the bytes in all on the disk that holds dir.
	Space(dir string) (free, total uint64, err error)
}

// File is an open file. Its methods are safe for concurrent use; Close is called once, after all others returned.
type File interface {
	io.ReaderAt
	io.WriterAt
	// WritevAt writes the buffers one after the other at off, in one system call where the platform has it.
	// It may modify the slice of buffers, not the buffers.
	WritevAt(bufs [][]byte, off int64) (int, error)
	// Sync makes data and metadata durable (fsync).
	Sync() error
	// SyncData makes the data, and the size needed to read it, durable (fdatasync).
	SyncData() error
	// Allocate reserves disk space for n bytes at off and extends the file's size to cover them. Bytes that were there stay.
	Allocate(off, n int64) error
	// Truncate sets the file's size: bytes above it are gone, space is given back, and a file that grows reads as zeros there.
	Truncate(size int64) error
	// Size returns the file's size.
	Size() (int64, error)
	// Close closes the handle; it syncs nothing.
	Close() error
	// Name returns the name that the file was opened by.
	Name() string
}

// Info describes a file or directory.
type Info struct {
	Size  int64
	IsDir bool
}

// LockedError says who holds a lock that was asked for. It wraps ErrLocked.
type LockedError struct {
	Name string
	PID  int // 0 when the holder's id could not be read.
}

// Error names the lock's file and its holder.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: held by another process", e.Name)
	}
	return fmt.Sprintf("lock %s: held by process %d", e.Name, e.PID)
}

// Unwrap returns ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }

// IsNoSpace reports whether an error says that the disk or the quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
