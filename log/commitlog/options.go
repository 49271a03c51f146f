package commitlog

import (
	"time"

	"github.com/mainstem/mainstem/log/vfs"
)

// Options configure a log. Zero values mean the defaults named beside them.
type Options struct {
	FS        vfs.FS
	Dir       string
	ClusterID string // must be the directory's; "" is taken over from the directory (tools).
	NodeID    int32

	// ReadOnly opens a stopped log for tools: nothing is written, removed or locked, and Recover only scans.
	ReadOnly bool

	SegmentBytes   int64 // size of a segment's file; 128 MiB.
	SegmentEntries int   // frames in a segment at most; 512 Ki.
	BlockBytes     int   // piece of the memory ring; 256 KiB.
	RingBytes      int   // memory that holds the newest bytes of the log; 32 MiB. A payload may take most of it, see MaxPayload.
	ReserveBytes   int64 // size of the file that is removed to write manifest, index and checkpoint on a full disk; 8 MiB.
	MinFree        int64 // disk space that is left to others: below it clients are refused; 64 MiB, negative is none.
	MaxUnindexed   int   // sealed segments that may lack an index before appends wait at the roll; 0 is no bound.

	AsyncDelay time.Duration // the longest time that Written bytes stay unsynced; 500 ms.
	AsyncBytes int           // the most bytes that stay unsynced; 4 MiB.

	// OnCommit is called by whoever committed, before those who wait are released, in LSN order for each of written and synced.
	// A group that holds frames of Durability Written is reported twice: after the pwrite and after the sync. It must be quick
	// and must not call the log.
	OnCommit func(Commit)
	// OnSeal says that a segment is closed, synced and listed as sealed in the manifest. It must not block.
	OnSeal func(SegmentInfo)
	Events Events
}

// Events report what happens; each may be nil. They are called without locks of the log and must not block.
type Events struct {
	Corrupt  func(*CorruptError)                   // found by Recover, Scan or a read; quarantined.
	Cut      func(Span)                            // Recover cut a torn write: its bytes, and those of frames behind it. Not called if the log just ends.
	Poisoned func(error)                           // once.
	DiskFull func(error)                           // clients are refused from now on, with this cause; nil: they are served again.
	Synced   func(took time.Duration, bytes int64) // one group was written and synced.
	Freed    func(id SegmentID, recycled bool)     // a dropped segment's last reader is gone.
	Removed  func(file string)                     // a file of ours that nothing names was removed at open.
	Failed   func(verb string, err error)          // background work failed and will be tried again.
}

// SegmentInfo describes a segment.
type SegmentInfo struct {
	ID        SegmentID
	File      string // name within the directory.
	Clustered bool
	AsOf      LSN // clustered: control frames with a lower LSN have been applied to what is in it.
	Base      LSN // LSN of the file's first byte; a frame at file offset x has LSN Base+x. 0 when clustered.
	End       LSN // behind the last frame; 0 when clustered. For the open segment: what was known at the last clean stop.
	EndOffset int64
	Capacity  int64 // size of the file.
	Frames    int   // 0 when not known.
	Sealed    bool
	Index     string // name of the index file, "" if none is attached.
}

// ManifestInfo is what the manifest says.
type ManifestInfo struct {
	ClusterID     string
	NodeID        int32
	Clean         bool // the last stop was clean: Recover calls its function for nothing and appending goes on at the end.
	New           bool // there was no manifest: the directory is new.
	Freed         bool // segments were dropped: what their frames said is in the checkpoint alone.
	ReadOnly      bool // the log is open for reading only.
	Checkpoint    string
	CheckpointLSN LSN
	Segments      []SegmentInfo // in the order of their ids; unclustered ones are in LSN order.
	Quarantined   []Span
}

// Stats are counters and gauges of a log.
type Stats struct {
	Next, Written, Durable LSN
	Segments               int
	SegmentBytes           int64 // disk space of all segments, spare and waiting ones included.
	Groups, Syncs          uint64
	BytesWritten           uint64 // frames, padding included.
	FramesPlaced           uint64
	RingHits, DiskReads    uint64 // places read from memory and from disk.
	Refused                error  // why clients are refused, nil if they are not.
}
