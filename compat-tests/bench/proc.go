package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux.
const clockTick = 10 * time.Millisecond

// cpuTime returns the CPU time that a process has used.
func cpuTime(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // The name before may hold anything.
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}

// procField returns a number that stands behind "name:" in a file of /proc.
func procField(file, name string) (int64, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", file, name)
}

// residentBytes returns a process's resident memory and its peak.
func residentBytes(pid int) (now, peak int64, err error) {
	status := fmt.Sprintf("/proc/%d/status", pid)
	if now, err = procField(status, "VmRSS"); err != nil {
		return 0, 0, err
	}
	peak, err = procField(status, "VmHWM")
	return now << 10, peak << 10, err
}

// readBytes returns what a process has read from the disk.
func readBytes(pid int) (int64, error) {
	return procField(fmt.Sprintf("/proc/%d/io", pid), "read_bytes")
}

// ownCPU returns the CPU time of this process and of all that it has waited for.
func ownCPU() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}

// watchOthers returns a function that says how many cores were busy with
// something else since.
func watchOthers() func() float64 {
	before := readCPU()
	return func() float64 {
		after := readCPU()
		return after.since(&before).others
	}
}

// threadsOf counts a process's threads.
func threadsOf(pid int) (int64, error) {
	return procField(fmt.Sprintf("/proc/%d/status", pid), "Threads")
}

func blocks(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// dropCache has the system forget what it holds of a folder's files in memory.
func dropCache(dir string) error {
	files, err := filesOf(dir)
	if err != nil {
		return err
	}
	return forget(files, withSync)
}

func filesOf(dir string) (files []string, err error) {
	err = walkFiles(dir, func(path string, _ os.FileInfo) error {
		files = append(files, path)
		return nil
	})
	return files, err
}

// dirty is what happens to pages that are not on the disk yet.
type dirty int

const (
	withSync    dirty = iota // They are written, else they cannot be forgotten.
	withoutSync              // They stay.
)

// forget has the system forget what it holds of files in memory. Files that are
// gone are none.
func forget(files []string, d dirty) error {
	for _, path := range files {
		if err := forgetFile(path, d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func forgetFile(path string, d dirty) error {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if d == withSync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return &os.PathError{Op: "fadvise", Path: filepath.Base(path), Err: errno}
	}
	return nil
}
