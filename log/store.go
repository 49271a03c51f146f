package log

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
)

// Store is an open log directory.
type Store struct {
	o        Options
	log      *commitlog.Log
	segments segments
	cache    *rowCache
	indexes  *indexCache
	start    time.Time // of the opening, for producers whose last activity is not known

	serial  chan struct{} // held by the one control operation that places frames
	capture sync.RWMutex  // held for writing while states are captured: frames about many partitions wait

	mu         sync.RWMutex
	partitions map[PartitionID]*Partition
	topics     map[[16]byte]string // names, shared by the partitions of a topic
	tombs      []tomb

	moved      movedPool
	batches    batchesPool
	background background
	recovering *recovery // set while Open runs
	appends    atomic.Int64
	bytes      atomic.Int64
	diskFull   atomic.Bool
	closed     atomic.Bool
}

// Done is closed when the store is poisoned.
func (s *Store) Done() <-chan struct{} { return s.log.Done() }

// Err returns the cause once Done is closed.
func (s *Store) Err() error { return s.log.Poisoned() }

// Partition returns the partition or nil.
func (s *Store) Partition(id PartitionID) *Partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.partitions[id]
}

// Partitions walks a snapshot of all partitions, in no order.
func (s *Store) Partitions() iter.Seq[*Partition] {
	return func(yield func(*Partition) bool) {
		for _, p := range s.all() {
			if !yield(p) {
				return
			}
		}
	}
}

// all returns a snapshot of all partitions.
func (s *Store) all() []*Partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Partition, 0, len(s.partitions))
	for _, p := range s.partitions {
		all = append(all, p)
	}
	return all
}

// intern returns the name, sharing one string among a topic's partitions.
func (s *Store) intern(id PartitionID, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.topics[id.Topic]; ok && have == name {
		return have
	}
	s.topics[id.Topic] = name
	return name
}

// Commit waits until the ticket's appends are as safe as their partitions ask.
func (s *Store) Commit(t Ticket) error {
	if t.synced > 0 {
		if err := s.log.Commit(t.synced, commitlog.Synced); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	if t.written > 0 && t.written > t.synced {
		if err := s.log.Commit(t.written, commitlog.Written); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}

// Kick has the background writer write what nobody waits for.
func (s *Store) Kick() { s.log.Kick() }

// Space tells the disk's free and total bytes and the log's own.
func (s *Store) Space() (free, total, used uint64) {
	free, total, err := s.o.FS.Space(s.o.Dir)
	if err != nil {
		free, total = 0, 0 // A disk that cannot be asked shows as full.
	}
	return free, total, uint64(s.log.Stats().SegmentBytes)
}

// Stats returns counters.
func (s *Store) Stats() Stats {
	l := s.log.Stats()
	st := Stats{
		Segments: l.Segments, LogBytes: l.SegmentBytes, Syncs: int64(l.Syncs), Poisoned: s.log.Poisoned() != nil, DiskFull: s.diskFull.Load(),
		Appends: s.appends.Load(), AppendBytes: s.bytes.Load(), CheckpointBytes: s.background.checkpointBytes.Load(),
	}
	for _, seg := range s.segments.all() {
		st.LiveBytes += seg.live.Load()
		st.IndexBytes += seg.indexBytes.Load()
		if !seg.indexed() {
			st.UnindexedSegments++
		}
	}
	for _, p := range s.all() {
		p.mu.Lock()
		st.EntriesInMemory += int64(p.q.EntriesInMemory())
		p.mu.Unlock()
		st.Partitions++
	}
	return st
}

// movedPool holds the slices that Events.Advanced gets.
type movedPool struct{ pool sync.Pool }

func (m *movedPool) get() *[]*Partition {
	if s, ok := m.pool.Get().(*[]*Partition); ok {
		return s
	}
	return new([]*Partition)
}

func (m *movedPool) put(s *[]*Partition) {
	clear(*s)
	*s = (*s)[:0]
	m.pool.Put(s)
}

// onCommit raises durable ends and tells who moved.
func (s *Store) onCommit(c commitlog.Commit) {
	moved := s.moved.get()
	defer s.moved.put(moved)
	for _, t := range c.Touched {
		p := t.Tag.Owner.(*Partition)
		if !c.Synced && p.Durability() != Async {
			continue
		}
		if p.advance(t.EndOffset, c.Upto) {
			*moved = append(*moved, p)
		}
	}
	if s.o.Events.Advanced != nil && len(*moved) > 0 {
		s.o.Events.Advanced(*moved)
	}
}

// Close commits everything, writes a checkpoint with all that memory holds,
// so that the next start scans nothing, and marks the log clean.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.background.stop()
	var errs []error
	if s.log.Poisoned() == nil {
		if err := s.checkpoint(true); err != nil {
			errs = append(errs, err)
		}
	}
	if err := s.log.Close(); err != nil {
		errs = append(errs, err)
	}
	s.indexes.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}
