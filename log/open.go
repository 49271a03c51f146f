package log

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/log/vfs"
)

// defaults fills what is zero.
func (o Options) defaults() Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 128 << 20
	}
	if o.SegmentEntries == 0 {
		o.SegmentEntries = 512 << 10
	}
	if o.CacheRows == 0 {
		o.CacheRows = 256 << 10
	}
	if o.ProducerExpiry == nil {
		o.ProducerExpiry = func() time.Duration { return 24 * time.Hour }
	}
	return o
}

// Open recovers the store in o.Dir, creating it if the directory is empty.
// Nothing that it recovers is served before it is safe on disk.
func Open(o Options) (*Store, error) {
	s := newStore(o.defaults())
	l, err := commitlog.Open(s.logOptions())
	if err != nil {
		return nil, fmt.Errorf("open log in %s: %w", o.Dir, err)
	}
	s.log = l
	if err := s.recover(); err != nil {
		s.indexes.close()
		return nil, errors.Join(fmt.Errorf("open log in %s: %w", o.Dir, err), l.Close())
	}
	s.background.start(s)
	return s, nil
}

func newStore(o Options) *Store {
	s := &Store{o: o, start: time.Now(), serial: make(chan struct{}, 1), partitions: make(map[PartitionID]*Partition), topics: make(map[[16]byte]string)}
	s.indexes = newIndexCache(o.FS, o.Dir)
	s.cache = newRowCache(o.CacheRows)
	s.background.init()
	return s
}

// logOptions are the options of the shared log beneath.
func (s *Store) logOptions() commitlog.Options {
	o, e := &s.o, &s.o.Events
	return commitlog.Options{
		FS: o.FS, Dir: o.Dir, ClusterID: o.ClusterID, NodeID: o.NodeID,
		SegmentBytes: o.SegmentBytes, SegmentEntries: o.SegmentEntries, BlockBytes: o.BlockBytes, RingBytes: int(o.RingBytes),
		ReserveBytes: o.ReserveBytes, MinFree: o.MinFree, AsyncDelay: o.AsyncDelay, AsyncBytes: o.AsyncBytes, MaxUnindexed: 2,
		OnCommit: s.onCommit,
		OnSeal:   s.onSeal,
		Events: commitlog.Events{
			Corrupt: s.onCorrupt,
			Cut: func(sp commitlog.Span) {
				if e.TornTail != nil {
					e.TornTail(sp.Segment.String(), sp.From, sp.To-sp.From)
				}
			},
			Poisoned: func(err error) {
				if e.Poisoned != nil {
					e.Poisoned(err)
				}
			},
			DiskFull: func(err error) {
				s.diskFull.Store(err != nil)
				if e.DiskFull != nil {
					e.DiskFull(err != nil, err)
				}
				if err != nil {
					s.wakeCollector()
				}
			},
			Synced: func(took time.Duration, _ int64) {
				if e.SyncTook != nil {
					e.SyncTook(took)
				}
			},
			Failed: s.failed,
		},
	}
}

// failed reports background work that failed and will be tried again.
func (s *Store) failed(what string, err error) {
	if s.o.Events.Background != nil {
		s.o.Events.Background(what, err)
	}
}

// recovery is what Open keeps while it replays.
type recovery struct {
	s    *Store
	upto commitlog.LSN // of the checkpoint
	now  int64
	lost map[PartitionID]bool // partitions whose creation was not found
}

// recover rebuilds all queues: the checkpoint, then what each later segment
// says by its states or its frames, in the order of the log.
func (s *Store) recover() error {
	m := s.log.Manifest()
	r := &recovery{s: s, now: s.start.UnixMilli(), lost: make(map[PartitionID]bool)}
	s.recovering = r
	complete, err := r.checkpoint(m)
	if err != nil {
		return err
	}
	complete = complete && m.Clean
	for _, seg := range m.Segments {
		empty := !seg.Sealed && seg.Base >= m.CheckpointLSN && seg.Frames == 0
		complete = complete && (empty || seg.End <= m.CheckpointLSN)
	}
	for _, seg := range m.Segments {
		if err := r.sealed(seg, complete); err != nil {
			return err
		}
	}
	if err := s.log.Recover(r.frame); err != nil {
		return err
	}
	if !complete && m.Clean {
		// A clean stop without a checkpoint of its own: the open segment goes on, so its frames are read here.
		for _, seg := range m.Segments {
			if seg.Sealed {
				continue
			}
			if err := s.log.Scan(seg.ID, r.frame); err != nil && !errors.Is(err, commitlog.ErrSegmentGone) {
				return err // An empty one whose file is gone was forgotten.
			}
		}
	}
	r.finish()
	s.recovering = nil
	return nil
}

// checkpoint loads the newest checkpoint, or its copy; it reports whether that
// holds all entries as well. If neither can be read all segments make up for
// it, unless some are gone: partitions would begin at offset 0 again.
func (r *recovery) checkpoint(m commitlog.ManifestInfo) (complete bool, err error) {
	if m.Checkpoint == "" {
		return false, nil
	}
	for _, name := range []string{m.Checkpoint, commitlog.CopyName(m.Checkpoint)} {
		complete, err = r.load(m, name)
		if !errors.Is(err, queue.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist) {
			return complete, err
		}
		r.s.failed("read checkpoint", err)
		clear(r.s.partitions)
	}
	if m.Freed && !m.ReadOnly {
		return false, fmt.Errorf("the checkpoint and its copy are damaged, and segments of which only they tell are gone: %w: %w", ErrCorrupt, err)
	}
	return false, nil
}

// load loads a checkpoint.
func (r *recovery) load(m commitlog.ManifestInfo, name string) (complete bool, err error) {
	s := r.s
	c, err := queue.ReadCheckpoint(s.o.FS, s.o.Dir, name, r.adopt, func(id PartitionID, run queue.Run) error {
		if p := s.partitions[id]; p != nil && m.Clean {
			p.q.Load(run.Segment, run.Entries)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	r.upto = m.CheckpointLSN
	s.background.checkpointed(c.Size, m.CheckpointLSN)
	s.background.live = c.Live
	return c.Complete, nil
}

// adopt takes over a partition's state from disk.
func (r *recovery) adopt(id PartitionID, st *queue.State) error {
	s := r.s
	p := s.partitions[id]
	if st.Deleted {
		if p != nil && p.q.AsOf() <= st.Queue.AsOf() {
			delete(s.partitions, id)
		}
		return nil
	}
	d := Fsync
	if st.Async {
		d = Async
	}
	if p == nil {
		p = newPartition(s, id, s.intern(id, st.Topic), d)
		s.partitions[id] = p
	}
	delete(r.lost, id)
	p.topic = s.intern(id, st.Topic)
	p.durability.Store(uint32(d))
	p.q.Adopt(st)
	p.highWatermark.Store(max(p.highWatermark.Load(), st.HighWatermark))
	return nil
}

// sealed applies what a sealed segment adds to the checkpoint.
func (r *recovery) sealed(i commitlog.SegmentInfo, complete bool) error {
	if !i.Sealed {
		return nil
	}
	if i.Clustered {
		return fmt.Errorf("segment %s is clustered: %w", i.File, commitlog.ErrFormatTooNew)
	}
	s := r.s
	seg := s.segments.add(i)
	if i.Index != "" && i.End <= r.upto {
		return nil
	}
	if i.Index != "" {
		err := r.states(i.Index)
		if err == nil {
			return nil
		}
		if !errors.Is(err, queue.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.failed("read index "+i.Index, err)
		seg.index.Store(nil)
	}
	s.background.pend(seg)
	if complete {
		return nil // The checkpoint brought its entries.
	}
	if err := s.log.Scan(i.ID, r.frame); err != nil {
		return fmt.Errorf("scan segment %s: %w", i.File, err)
	}
	return nil
}

// states adopts all states of an index, or none if one is damaged.
func (r *recovery) states(name string) error {
	x, err := queue.OpenIndex(r.s.o.FS, r.s.o.Dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }() // Nothing was written.
	type item struct {
		id PartitionID
		st *queue.State
	}
	var all []item
	if err := x.States(func(id PartitionID, st *queue.State) error {
		all = append(all, item{id, st})
		return nil
	}); err != nil {
		return err
	}
	for _, it := range all {
		if err := r.adopt(it.id, it.st); err != nil {
			return err
		}
	}
	return nil
}

// finish readies the queues for use.
func (r *recovery) finish() {
	for _, p := range r.s.partitions {
		p.q.Recovered()
		p.publishLocked()
		p.durable.Store(p.q.End())
		p.highWatermark.Store(min(p.highWatermark.Load(), p.q.End()))
		p.q.Settle(p.highWatermark.Load())
	}
	for id := range r.lost {
		if p := r.s.partitions[id]; p != nil {
			r.s.report(CorruptSpan{ID: id, First: -1, Last: -1, Reason: "the frame that created the partition is lost"})
		}
	}
}

// onCorrupt maps damaged bytes to a partition's offsets and reports them.
func (s *Store) onCorrupt(e *commitlog.CorruptError) {
	span := CorruptSpan{First: -1, Last: -1, File: e.File, Pos: e.From, Size: e.To - e.From, Reason: e.Cause}
	if e.Header != nil && e.Header.Kind == commitlog.Data {
		h := e.Header
		span.ID, span.First, span.Last = h.ID, h.BaseOffset, h.BaseOffset+int64(h.OffsetCount)-1
		p := s.Partition(h.ID)
		if r := s.recovering; r != nil && (p != nil || e.LSN >= r.upto) {
			p = r.get(h.ID)
			p.q.Damaged(e.LSN, h.BaseOffset, h.OffsetCount, h.LeaderEpoch)
			p.touchLocked(e.LSN)
		}
		if p != nil {
			span.Topic = p.topic
		}
	}
	s.report(span)
}

func (s *Store) report(c CorruptSpan) {
	if s.o.Events.Corrupt != nil {
		s.o.Events.Corrupt(c)
	}
}

// sortedIDs returns the partitions by id.
func sortedIDs(all []*Partition) []*Partition {
	slices.SortFunc(all, func(a, b *Partition) int { return queue.CompareIDs(a.id, b.id) })
	return all
}

// CleanStart reports whether the stop before this opening was clean.
func (s *Store) CleanStart() bool { return s.log.Manifest().Clean }

// Identity is whose data a directory holds.
type Identity struct {
	ClusterID string
	NodeID    int32
}

// ReadIdentity reads whose data a directory holds, without taking its lock;
// found is false if it holds none.
func ReadIdentity(fs vfs.FS, dir string) (id Identity, found bool, err error) {
	l, err := commitlog.Open(commitlog.Options{FS: fs, Dir: dir, ReadOnly: true})
	if errors.Is(err, commitlog.ErrUsage) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("read identity of %s: %w", dir, err)
	}
	m := l.Manifest()
	return Identity{m.ClusterID, m.NodeID}, true, l.Close()
}
