package vfs

import (
	"io"
	"math/rand/v2"
)

// Mem is a filesystem in memory that can lose power; see Crash.
type Mem struct {
	rng *rand.Rand
}

// NewMem returns an empty filesystem whose chances come from seed.
func NewMem(seed uint64) *Mem { panic("skeleton") }

// SetCapacity limits the bytes that files may take; growing beyond fails with ErrNoSpace. 0 is no limit.
func (m *Mem) SetCapacity(bytes int64) { panic("skeleton") }

// Crash cuts the power: it returns the filesystem as it is found at the next start. Everything opened from m fails afterwards.
func (m *Mem) Crash(rng *rand.Rand) *Mem { panic("skeleton") }

// Create implements FS.
func (m *Mem) Create(name string) (File, error) { panic("skeleton") }

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { panic("skeleton") }

// OpenRW implements FS.
func (m *Mem) OpenRW(name string) (File, error) { panic("skeleton") }

// Remove implements FS.
func (m *Mem) Remove(name string) error { panic("skeleton") }

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error { panic("skeleton") }

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error { panic("skeleton") }

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) { panic("skeleton") }

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) { panic("skeleton") }

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error { panic("skeleton") }

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) { panic("skeleton") }

// Space implements FS.
func (m *Mem) Space(dir string) (free, total uint64, err error) { panic("skeleton") }

var _ FS = (*Mem)(nil)
