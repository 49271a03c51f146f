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
	// RingBytes is the memory that holds the newest part of the log. Default 64 MiB.
	RingBytes int64
	// SpareSegments are prepared ahead of need. Default 1.
	SpareSegments int
	// ReserveBytes are kept free for control frames and internal topics.
	ReserveBytes int64
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
