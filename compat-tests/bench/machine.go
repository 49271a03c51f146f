package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// machine are the facts without which no figure means anything.
type machine struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	Kernel      string  `json:"kernel"`
	Filesystem  string  `json:"filesystem"`
	SyncMillis  float64 `json:"fdatasync_ms"` // of 4 KiB written anew in place, median
	Go          string  `json:"go"`
	Revision    string  `json:"revision"`
}

func machineFacts(dir string) (m machine, err error) {
	m.Cores, m.Go = runtime.NumCPU(), runtime.Version()
	m.CPU = firstValue("/proc/cpuinfo", "model name")
	m.Kernel = firstLine("/proc/sys/kernel/osrelease")
	m.Filesystem = filesystem(dir)
	total, err := procField("/proc/meminfo", "MemTotal")
	if err != nil {
		return m, err
	}
	m.MemoryBytes = total << 10
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		m.Revision = string(bytes.TrimSpace(out))
	}
	m.SyncMillis, err = syncMillis(dir)
	return m, err
}

func firstLine(file string) string {
	raw, _ := os.ReadFile(file) // A fact that cannot be had stays empty.
	line, _, _ := strings.Cut(string(raw), "\n")
	return line
}

func firstValue(file, name string) string {
	raw, _ := os.ReadFile(file) // A fact that cannot be had stays empty.
	for line := range strings.Lines(string(raw)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// filesystem names the kind of filesystem that holds a folder.
func filesystem(dir string) string {
	var best, kind string
	raw, _ := os.ReadFile("/proc/mounts") // A fact that cannot be had stays empty.
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < len(best) {
			continue
		}
		if rel, err := filepath.Rel(f[1], dir); err == nil && !strings.HasPrefix(rel, "..") {
			best, kind = f[1], f[2]
		}
	}
	return kind
}

// syncMillis measures the disk: the median time of a sync of one page.
func syncMillis(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	var took []time.Duration
	for i := range 201 {
		page[0] = byte(i)
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000, nil
}
