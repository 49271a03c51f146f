package commitlog

import (
	"errors"
	"fmt"
)

// Errors of the log.
var (
	// ErrPoisoned: a write or sync of the log failed earlier; it accepts nothing any more. The cause is wrapped beside it.
	ErrPoisoned = errors.New("log is poisoned by a failed write or sync")
	// ErrDiskFull: refused before a position was given, for lack of disk space.
	ErrDiskFull = errors.New("disk is full")
	// ErrFormatTooNew: the data was written by a newer version than this one.
	ErrFormatTooNew = errors.New("data has a newer format than this version reads")
	// ErrCorrupt: bytes on disk are not what was written. See CorruptError.
	ErrCorrupt = errors.New("corrupt data")
	// ErrIdentity: the data directory belongs to another cluster or node. See IdentityError.
	ErrIdentity = errors.New("data directory belongs to another cluster or node")
	// ErrSegmentGone: the segment is no longer part of the log; look the place up again.
	ErrSegmentGone = errors.New("segment is gone")
	// ErrTooLarge: a reservation is larger than the log can ever grant.
	ErrTooLarge = errors.New("payload is larger than the log takes")
	// ErrClosed: the log is closed, or not recovered yet.
	ErrClosed = errors.New("log is not open")
	// ErrUsage: a caller broke a rule of this package, for example placed more than it had reserved.
	ErrUsage = errors.New("misuse of the log")
)

// IdentityError says that the data directory belongs to another cluster or node. It wraps ErrIdentity.
type IdentityError struct {
	Dir                      string
	HaveCluster, WantCluster string
	HaveNodeID, WantNodeID   int32
}

// Error names both identities.
func (e *IdentityError) Error() string {
	if e.HaveCluster != e.WantCluster {
		return fmt.Sprintf("data directory %s belongs to cluster %q, not to %q", e.Dir, e.HaveCluster, e.WantCluster)
	}
	return fmt.Sprintf("data directory %s belongs to node %d, not to %d", e.Dir, e.HaveNodeID, e.WantNodeID)
}

// Unwrap returns ErrIdentity.
func (e *IdentityError) Unwrap() error { return ErrIdentity }

// Span is a range of bytes of a segment.
type Span struct {
	Segment  SegmentID
	From, To int64 // offsets in the file; To is exclusive.
}

// CorruptError reports bytes of the log that are not what was written. It wraps ErrCorrupt.
type CorruptError struct {
	File string
	Span
	LSN       LSN     // of Span.From; 0 in clustered segments.
	Header    *Header // of the frame, when its header could be read and only the payload is damaged.
	Cause     string
	Truncated bool // nothing of the span could be read at all: the file is missing or too short.
}

// Error names the file, the range and what is wrong.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt data in %s at %d to %d: %s", e.File, e.From, e.To, e.Cause)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
