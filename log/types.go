package log

import (
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// PartitionID names a partition by its topic's UUID and its number.
type PartitionID = commitlog.PartitionID

// Durability says when an append counts as safe.
type Durability uint8

// Durabilities. The zero value is the safe one.
const (
	Fsync Durability = iota // after the fdatasync that covers it
	Async                   // after the pwrite; a sync follows shortly
)

// Origin says who appends and therefore what is checked and stamped.
type Origin uint8

// Origins of an append.
const (
	// Client batches get their offset and epoch here; their producer's
	// sequence is checked.
	Client Origin = iota
	// Coordinator batches (internal topics, transaction markers) are stamped
	// like a client's; markers are checked by their epochs, and a full disk
	// does not refuse them as long as the reserve lasts.
	Coordinator
	// Replica batches carry their leader's offsets and epochs, verbatim.
	Replica
)

// Errors of the store.
var (
	// ErrPoisoned: a write or sync of the log failed; nothing is accepted any more.
	ErrPoisoned = commitlog.ErrPoisoned
	// ErrIdentity: the directory belongs to another cluster or node.
	ErrIdentity = commitlog.ErrIdentity
	// ErrFormatTooNew: a newer version wrote the directory.
	ErrFormatTooNew = commitlog.ErrFormatTooNew
	// ErrCorrupt: files that nothing can make up for are damaged; see StorageError for damaged records.
	ErrCorrupt = commitlog.ErrCorrupt
	// ErrDiskFull: refused before offsets were given, for lack of disk space.
	ErrDiskFull = commitlog.ErrDiskFull
	// ErrTooLarge: the batch is larger than the log's segments or memory can take.
	ErrTooLarge = commitlog.ErrTooLarge
	// ErrDeleted: the partition is deleted.
	ErrDeleted = errors.New("partition is deleted")
	// ErrUnknownPartition: there is no such partition in this store.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrEpoch: the append's leader epoch was not begun after this opening, or is not the latest.
	ErrEpoch = errors.New("leader epoch is not the one begun in this opening")
	// ErrOffsetOutOfRange: the offset is below the log start or above the end.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrOutOfOrderSequence: an idempotent producer's sequence does not follow (Kafka's 45).
	ErrOutOfOrderSequence = queue.ErrOutOfOrderSequence
	// ErrProducerEpoch: the producer's epoch is older than the one known (Kafka's 47).
	ErrProducerEpoch = queue.ErrProducerEpoch
	// ErrTxnState: a non-transactional batch while a transaction is open (Kafka's 48).
	ErrTxnState = queue.ErrTxnState
	// ErrCoordinatorEpoch: a marker of a replaced transaction coordinator (Kafka's 52).
	ErrCoordinatorEpoch = queue.ErrCoordinatorEpoch
	// ErrTxnUnverified: a batch would open a transaction that nobody has verified (Kafka's 48 or 120).
	ErrTxnUnverified = queue.ErrTxnUnverified
	// ErrNotContiguous: a replica's batch does not start at the log end, or an
	// append's bytes are not whole batches.
	ErrNotContiguous = errors.New("batch does not continue the log")
	// ErrClosed: the store is closed.
	ErrClosed = commitlog.ErrClosed
)

// StorageError reports offsets whose record is damaged; all other offsets are served.
type StorageError struct {
	ID          PartitionID
	First, Last int64 // the damaged offsets, both included
	Cause       error // what the read met, nil if known since open
}

// Error describes the damaged range.
func (e *StorageError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("partition %x-%d: offsets %d to %d are damaged: %v", e.ID.Topic, e.ID.Partition, e.First, e.Last, e.Cause)
	}
	return fmt.Sprintf("partition %x-%d: offsets %d to %d are damaged", e.ID.Topic, e.ID.Partition, e.First, e.Last)
}

// Unwrap returns the cause.
func (e *StorageError) Unwrap() error { return e.Cause }

// Ticket says how far the log must be safe before an append may be
// acknowledged. Tickets of many appends are merged with Max.
type Ticket struct {
	synced  commitlog.LSN
	written commitlog.LSN
}

// Max covers both tickets.
func (t Ticket) Max(o Ticket) Ticket {
	return Ticket{synced: max(t.synced, o.synced), written: max(t.written, o.written)}
}

// IsZero reports whether there is nothing to wait for.
func (t Ticket) IsZero() bool { return t == Ticket{} }

// Append is what is to be stored.
type Append struct {
	// Records is one whole batch, as validated; Origin Replica may give
	// several back to back. Base offset and epoch are stamped into it in place.
	Records     []byte
	LeaderEpoch int32
	Origin      Origin
	// Guard is asked for a client's transactional batch; zero does not ask.
	Guard TxnGuard
	// Raised says that a marker's producer epoch was raised for it: it ends no
	// transaction that has that epoch itself.
	Raised bool
}

// TxnGuard is what Partition.TxnGuard gives before somebody makes sure that a
// producer's transaction includes the partition. An append with it fails with
// ErrTxnUnverified if a marker has come since.
type TxnGuard = queue.Guard

// Unverified is the guard of an append that may only go on with a transaction
// that is open on the partition.
const Unverified = queue.Unverified

// Appended says where the records went.
type Appended struct {
	BaseOffset, LastOffset int64
	// MaxTimestamp is the largest of the batches' maximum timestamps. For a
	// duplicate it is the original's.
	MaxTimestamp int64
	Ticket       Ticket
	Duplicate    bool  // stored before: the offsets are the original's, and so is the ticket
	Start        int64 // the log start
}

// CreateSpec describes a partition to be created.
type CreateSpec struct {
	ID          PartitionID
	Name        string // the topic's
	Durability  Durability
	LeaderEpoch int32 // -1 or the lowest epoch that may be begun
}

// EpochStart names an epoch that a leader begins.
type EpochStart struct {
	ID    PartitionID
	Epoch int32
}

// Retention is what a topic's settings ask of one pass. Limits below zero do not apply.
type Retention struct {
	Delete    bool // cleanup.policy includes delete
	Ms, Bytes int64
}

// Roll holds the settings by which the active base advances: segment.ms and
// segment.bytes; zero or less is no limit.
type Roll = queue.Roll

// AbortedTxn is one aborted transaction of a partition.
type AbortedTxn = queue.AbortedTxn

// ProducerState is what the partition remembers of one producer.
type ProducerState struct {
	ProducerID        int64
	Epoch             int16
	LastSequence      int32 // -1: none known
	LastTimestamp     int64 // of the last batch, as the client gave it
	CoordinatorEpoch  int32 // -1: no marker came yet
	CurrentTxnStart   int64 // -1: no open transaction
	LastActivityMilli int64 // broker's clock
}

// CorruptSpan reports damaged records of one partition, or of an unknown one
// when the frame's header could not be read either.
type CorruptSpan struct {
	ID          PartitionID
	Topic       string
	First, Last int64 // offsets, both included; -1 if unknown
	File        string
	Pos, Size   int64
	Reason      string
}

// Stats are the store's counters for metrics.
type Stats struct {
	Partitions, Segments, UnindexedSegments int
	LogBytes, LiveBytes, IndexBytes         int64
	EntriesInMemory                         int64
	CheckpointBytes                         int64
	Appends, AppendBytes, Syncs             int64
	Poisoned, DiskFull                      bool
}
