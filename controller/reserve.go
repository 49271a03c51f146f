package controller

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// reserveBytes is the size of the reserve: many pages of etcd's database, and more than its start writes.
const reserveBytes = 8 << 20

// reserveFile holds room that an embedded etcd gives up on a disk that others have filled to the last byte: etcd cannot open without
// writing, and a broker that does not start cannot delete what would make room.
func reserveFile(dir string) string { return filepath.Join(etcdDir(dir), "reserve") }

// giveUpReserve makes room for etcd's start, if the disk has none.
func giveUpReserve(dir string) error {
	free, err := freeBytes(etcdDir(dir))
	if err != nil || free >= reserveBytes {
		return err
	}
	if err := os.Remove(reserveFile(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("make room: %w", err)
	}
	return nil
}

// takeReserve sets the room aside again, if there is plenty. It is no error if not.
func takeReserve(dir string) error {
	path := reserveFile(dir)
	if info, err := os.Stat(path); err == nil && info.Size() == reserveBytes {
		return nil
	}
	if free, err := freeBytes(etcdDir(dir)); err != nil || free < 4*reserveBytes {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("set room aside: %w", err)
	}
	// Zeros, not a hole: only what was written is sure to be there.
	_, err = io.CopyN(f, zeros{}, reserveBytes)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("set room aside: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// zeros reads as zero bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// freeBytes is the room on dir's filesystem for who is not root.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("ask for the room in %s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}
