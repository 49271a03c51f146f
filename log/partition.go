package log

import (
	"sync"
	"sync/atomic"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// Partition is one queue over the shared log. Its methods are safe for
// concurrent use.
type Partition struct {
	store      *Store
	id         PartitionID
	topic      string
	tag        commitlog.Tag
	durability atomic.Uint32

	// Copies of what the queue says, for readers without the lock.
	start, end, durable, highWatermark atomic.Int64

	mu      sync.Mutex
	owner   any
	q       queue.Queue
	begun   int32         // leader epoch begun in this opening, -1 if none
	placed  commitlog.LSN // end of the newest data frame, what a duplicate waits for
	rewound commitlog.LSN // end of the newest truncate frame: commits below it do not count
	deleted commitlog.LSN // of the delete frame
	gone    bool          // refuses everything: deleted or about to be
	dirty   commitlog.LSN // oldest frame that no index or checkpoint covers, 0 if none
	head    headTime
}

// headTime caches the timestamp of the first live batch and where it lies, so
// that a retention pass need not look it up.
type headTime struct {
	start     int64 // the log start that it is valid for
	timestamp int64
	seg       commitlog.SegmentID
	known     bool
}

// newPartition returns a partition that is not yet in a store's table.
func newPartition(s *Store, id PartitionID, topic string, d Durability) *Partition {
	p := &Partition{store: s, id: id, topic: topic, q: queue.New(), begun: -1}
	p.tag.Owner = p
	p.durability.Store(uint32(d))
	return p
}

// ID returns the partition's id.
func (p *Partition) ID() PartitionID { return p.id }

// Topic returns the topic's name as given at creation; "" if its creation was lost.
func (p *Partition) Topic() string { return p.topic }

// Owner returns what SetOwner stored.
func (p *Partition) Owner() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner
}

// SetOwner attaches the caller's own object, found again in Events.Advanced.
func (p *Partition) SetOwner(owner any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = owner
}

// Start returns the log start.
func (p *Partition) Start() int64 { return p.start.Load() }

// End returns the offset that the next record gets.
func (p *Partition) End() int64 { return p.end.Load() }

// Durable returns the end of what is durable (written, for async).
func (p *Partition) Durable() int64 { return p.durable.Load() }

// HighWatermark returns the highest watermark set, or the persisted lower bound.
func (p *Partition) HighWatermark() int64 { return p.highWatermark.Load() }

// SetHighWatermark raises the watermark that is persisted as a lower bound.
func (p *Partition) SetHighWatermark(offset int64) {
	for {
		old := p.highWatermark.Load()
		if offset <= old {
			return
		}
		if p.highWatermark.CompareAndSwap(old, offset) {
			break
		}
	}
	p.mu.Lock()
	p.q.Settle(offset)
	p.mu.Unlock()
}

// ForceHighWatermark sets the watermark even backwards (unclean election).
func (p *Partition) ForceHighWatermark(offset int64) { p.highWatermark.Store(offset) }

// SetRoll sets by which rules the active base advances.
func (p *Partition) SetRoll(r Roll) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.q.Roll = r
}

// ActiveBase returns the offset that compaction must stay below.
func (p *Partition) ActiveBase() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Active.Base
}

// Durability returns the partition's durability.
func (p *Partition) Durability() Durability { return Durability(p.durability.Load()) }

// Bytes returns the bytes of the partition's batches.
func (p *Partition) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Bytes()
}

// LatestEpoch returns the latest leader epoch, -1 if there is none.
func (p *Partition) LatestEpoch() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Epochs.Latest()
}

// EpochEnd returns the largest known epoch not above epoch and its end
// offset; -1, -1 if there is none.
func (p *Partition) EpochEnd(epoch int32) (foundEpoch int32, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Epochs.End(epoch, p.q.End())
}

// EpochOf returns the leader epoch of the offset, -1 if unknown.
func (p *Partition) EpochOf(offset int64) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Epochs.Of(offset)
}

// FirstUnstable returns the start of the oldest transaction that is open or
// whose end is not below the high watermark.
func (p *Partition) FirstUnstable() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.FirstUnstable(p.highWatermark.Load())
}

// Aborted returns the aborted transactions that touch [from, to), by first offset.
func (p *Partition) Aborted(from, to int64) []AbortedTxn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.Aborted(from, to)
}

// Producers returns what is remembered of each producer, by id.
func (p *Partition) Producers() []ProducerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.q.Producers.Sorted()
	states := make([]ProducerState, len(all))
	for i, r := range all {
		states[i] = ProducerState{
			ProducerID: r.ID, Epoch: r.Epoch, LastSequence: r.LastSequence(), LastTimestamp: r.LastTimestamp,
			CoordinatorEpoch: r.CoordinatorEpoch, CurrentTxnStart: r.TxnStart, LastActivityMilli: r.Touched,
		}
	}
	return states
}

// TxnGuard returns the guard for an append that would open a transaction of the
// producer, and whether one is open already in that epoch.
func (p *Partition) TxnGuard(producer int64, epoch int16) (g TxnGuard, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.q.Producers.Get(producer)
	return p.q.Producers.Guard(producer), known != nil && known.TxnStart >= 0 && known.Epoch == epoch
}

// Damaged returns the ranges of offsets that are known to be damaged, as pairs
// of first and last.
func (p *Partition) Damaged() [][2]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var spans [][2]int64
	for _, h := range p.q.Holes() {
		spans = append(spans, [2]int64{h.First, h.Last})
	}
	return spans
}

// publishLocked copies what the queue says for readers. REQUIRES: mu held.
func (p *Partition) publishLocked() {
	p.start.Store(p.q.Start())
	p.end.Store(p.q.End())
}

// touchLocked notes that a frame is not covered by an index yet. REQUIRES: mu held.
func (p *Partition) touchLocked(lsn commitlog.LSN) {
	if p.dirty == 0 {
		p.dirty = lsn
	}
}

// advance raises the durable end after a commit of everything below upto; it
// reports whether it moved.
func (p *Partition) advance(end int64, upto commitlog.LSN) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if upto < p.rewound {
		return false
	}
	end = min(end, p.q.End())
	if end <= p.durable.Load() {
		return false
	}
	p.durable.Store(end)
	return true
}
