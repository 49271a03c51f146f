package log

import (
	"time"

	"github.com/mainstem/mainstem/log/vfs"
)

// Options configure a store; zero values mean the defaults.
type Options struct {
	FS        vfs.FS
	Dir       string
	ClusterID string
	NodeID    int32
	// SegmentBytes is the size of one file of the shared log. Default 128 MiB.
	SegmentBytes int64
	// SegmentEntries bounds the frames of one file. Default 512 Ki.
	SegmentEntries int
	// RingBytes is the memory that holds the newest part of the log, in pieces
	// of BlockBytes. Defaults 32 MiB and 256 KiB.
	RingBytes  int64
	BlockBytes int
	// ReserveBytes are kept for control frames and internal topics. Default 8 MiB.
	ReserveBytes int64
	// MinFree is disk space that is left to others. Default 64 MiB; negative is none.
	MinFree int64
	// AsyncDelay and AsyncBytes bound what async partitions leave unsynced.
	// Defaults 500 ms and 4 MiB.
	AsyncDelay time.Duration
	AsyncBytes int
	// ProducerExpiry gives the time after which an idle producer without an
	// open transaction is forgotten. Default 24 h.
	ProducerExpiry func() time.Duration
	// CacheRows bounds the cache of directory rows for cold reads. Default 256 Ki.
	CacheRows int
	Events    Events
}

// Events report what the store does; each func may be nil. They are called
// from the goroutine that does the work, without locks held, and must not
// call back into what waits for durability.
type Events struct {
	// Advanced names the partitions whose Durable end moved, before the
	// appends' waiters are released. The slice is valid during the call.
	Advanced    func([]*Partition)
	Corrupt     func(CorruptSpan)
	TornTail    func(file string, pos, bytes int64)
	Sealed      func(segment string, partitions int, took time.Duration)
	Freed       func(segments []string)
	Checkpoint  func(partitions int, bytes int64, took time.Duration)
	StartsMoved func(partitions int, bytes int64) // by retention
	SyncTook    func(time.Duration)
	DiskFull    func(full bool, cause error)
	Poisoned    func(cause error)
	// Background reports a failed background step that will be tried again.
	Background func(what string, err error)
}
