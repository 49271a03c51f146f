package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData syncs all: os.File.Sync is the only call of the platform that reaches the medium (F_FULLFSYNC).
func syncData(f *os.File) error { return f.Sync() }

func allocate(f *os.File, off, n int64) error {
	info, err := f.Stat()
	if err != nil || off+n <= info.Size() {
		return err
	}
	store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: off + n - info.Size()}
	err = control(f, func(fd int) error { return unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, &store) })
	if err != nil {
		return err
	}
	return f.Truncate(off + n)
}

// pwritev writes the first buffer that is not empty at off: the platform has the call only since its version 11.
func pwritev(f *os.File, bufs [][]byte, off int64) (int, error) {
	for _, b := range bufs {
		if len(b) > 0 {
			return f.WriteAt(b, off)
		}
	}
	return 0, nil
}
