package log

import (
	"io"
	"iter"
	"time"

	"github.com/mainstem/mainstem/log/vfs"
)

// Store is an open log directory.
type Store struct{}

// Open recovers the store in o.Dir, creating it if the directory is empty.
func Open(o Options) (*Store, error) { panic("skeleton") }

// Close commits everything, writes a checkpoint and marks the log clean.
func (s *Store) Close() error { panic("skeleton") }

// Done is closed when the store is poisoned.
func (s *Store) Done() <-chan struct{} { panic("skeleton") }

// Err returns the cause once Done is closed.
func (s *Store) Err() error { panic("skeleton") }

// Create makes partitions, durable on return; existing ids are left alone.
func (s *Store) Create([]CreateSpec) error { panic("skeleton") }

// Delete removes partitions, durable on return; unknown ids are skipped.
func (s *Store) Delete([]PartitionID) error { panic("skeleton") }

// BeginEpochs begins leader epochs, durable on return.
func (s *Store) BeginEpochs([]EpochStart) error { panic("skeleton") }

// Partition returns the partition or nil.
func (s *Store) Partition(PartitionID) *Partition { panic("skeleton") }

// Partitions walks a snapshot of all partitions, in no order.
func (s *Store) Partitions() iter.Seq[*Partition] { panic("skeleton") }

// SetDurability changes when the partition's appends count as safe.
func (s *Store) SetDurability(PartitionID, Durability) error { panic("skeleton") }

// Commit waits until the ticket's appends are as safe as their partitions ask.
func (s *Store) Commit(Ticket) error { panic("skeleton") }

// Kick has the background writer write what nobody waits for.
func (s *Store) Kick() { panic("skeleton") }

// MoveStarts raises log starts with one frame for all. Starts that are not
// above the present one are skipped.
func (s *Store) MoveStarts(map[*Partition]int64) (Ticket, error) { panic("skeleton") }

// Retain runs one retention pass over all partitions and frees dead segments.
func (s *Store) Retain(now time.Time, policy func(*Partition) Retention) error { panic("skeleton") }

// Space tells the disk's free and total bytes and the log's own.
func (s *Store) Space() (free, total, used uint64) { panic("skeleton") }

// Stats returns counters.
func (s *Store) Stats() Stats { panic("skeleton") }

// DumpOptions select what Dump prints.
type DumpOptions struct {
	Frames     bool // every frame
	Batches    bool // every batch header
	Records    bool // every record
	Partitions bool // state of every partition
	Topic      string
	Partition  int32 // -1: all
}

// Dump prints a stopped store's content as text.
func Dump(fs vfs.FS, dir string, w io.Writer, o DumpOptions) error { panic("skeleton") }

// Report is what Check found.
type Report struct {
	Segments, Partitions int
	Frames, Batches      int64
	Bytes                int64
	Clean                bool
	Problems             []string // empty: all is well
}

// Check walks everything in a stopped store without changing it.
func Check(fs vfs.FS, dir string) (Report, error) { panic("skeleton") }
