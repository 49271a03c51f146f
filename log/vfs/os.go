package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// New files and directories are the broker's alone, but for the group, which backup tools use.
const (
	fileMode = 0o640
	dirMode  = 0o750
)

// osFS is the operating system's filesystem.
type osFS struct{}

// OS returns the operating system's filesystem.
func OS() FS { return osFS{} }

// Create implements FS.
func (osFS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// Open implements FS.
func (osFS) Open(name string) (File, error) { return openOS(name, os.O_RDONLY) }

// OpenRW implements FS.
func (osFS) OpenRW(name string) (File, error) { return openOS(name, os.O_RDWR) }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, fileMode)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

// Remove implements FS.
func (osFS) Remove(name string) error { return os.Remove(name) }

// Rename implements FS.
func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// MkdirAll implements FS.
func (fsys osFS) MkdirAll(dir string) error {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, d)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for _, d := range missing {
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// List implements FS.
func (osFS) List(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	slices.Sort(names)
	return names, err
}

// Stat implements FS.
func (osFS) Stat(name string) (Info, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), IsDir: info.IsDir()}, nil
}

// SyncDir implements FS.
func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// Lock implements FS. The lock is the kernel's (flock), so it cannot outlive the process; the file's content only tells who.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		holder := &LockedError{Name: name, PID: readPID(f)}
		_ = f.Close() // Nothing was written by this handle.
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, holder
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if err := writePID(f); err != nil && !IsNoSpace(err) {
		// With a full disk the lock holds all the same; it only cannot say whose it is.
		_ = f.Close()
		return nil, fmt.Errorf("write pid to %s: %w", name, err)
	}
	return f, nil
}

func flock(f *os.File) error {
	return control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPID returns the id that a lock's holder wrote, or 0.
func readPID(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // The end of the file is an error here; what was read tells.
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Space implements FS.
func (osFS) Space(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(dir, &s) }); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := uint64(s.Bsize) //nolint:nolintlint,unconvert // Its type differs between platforms.
	return s.Bavail * size, s.Blocks * size, nil
}

// control calls fn with the file's descriptor, which stays open meanwhile, again while signals interrupt it.
func control(f *os.File, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := raw.Control(func(fd uintptr) { ferr = retry(func() error { return fn(int(fd)) }) }); err != nil {
		return err
	}
	return ferr
}

// retry calls fn again while signals interrupt it.
func retry(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
