package log

// Partition is one queue over the shared log. Its methods are safe for
// concurrent use.
type Partition struct{}

// ID returns the partition's id.
func (p *Partition) ID() PartitionID { panic("skeleton") }

// Topic returns the topic's name as given at creation.
func (p *Partition) Topic() string { panic("skeleton") }

// Owner returns what SetOwner stored.
func (p *Partition) Owner() any { panic("skeleton") }

// SetOwner attaches the caller's own object, found again in Events.Advanced.
func (p *Partition) SetOwner(any) { panic("skeleton") }

// Start returns the log start.
func (p *Partition) Start() int64 { panic("skeleton") }

// End returns the offset that the next record gets.
func (p *Partition) End() int64 { panic("skeleton") }

// Durable returns the end of what is durable (written, for async).
func (p *Partition) Durable() int64 { panic("skeleton") }

// HighWatermark returns the highest watermark set, or the persisted lower bound.
func (p *Partition) HighWatermark() int64 { panic("skeleton") }

// SetHighWatermark raises the watermark that is persisted as a lower bound.
func (p *Partition) SetHighWatermark(int64) { panic("skeleton") }

// ForceHighWatermark sets the watermark even backwards (unclean election).
func (p *Partition) ForceHighWatermark(int64) { panic("skeleton") }

// SetRoll sets by which rules the active base advances.
func (p *Partition) SetRoll(Roll) { panic("skeleton") }

// Durability returns the partition's durability.
func (p *Partition) Durability() Durability { panic("skeleton") }

// Append stores records; the caller then waits with Store.Commit.
func (p *Partition) Append(a Append) (Appended, error) { panic("skeleton") }

// Read returns whole batches from the one that contains offset on, none that
// reaches to or beyond upto, of at most maxBytes; with atLeastOne the first
// batch is returned even if larger. offset == End gives empty Batches.
func (p *Partition) Read(offset, upto int64, maxBytes int, atLeastOne bool) (*Batches, error) {
	panic("skeleton")
}

// Available returns the bytes Read would find from offset up to upto, at
// most max, without reading.
func (p *Partition) Available(offset, upto int64, max int) int { panic("skeleton") }

// OffsetForTime finds the first record below upto whose timestamp is at least
// ts and whose offset is at least the log start.
func (p *Partition) OffsetForTime(ts, upto int64) (offset, timestamp int64, epoch int32, ok bool, err error) {
	panic("skeleton")
}

// MaxTimestamp finds the first record below upto with the largest timestamp.
func (p *Partition) MaxTimestamp(upto int64) (offset, timestamp int64, epoch int32, ok bool, err error) {
	panic("skeleton")
}

// LatestEpoch returns the latest leader epoch, -1 if there is none.
func (p *Partition) LatestEpoch() int32 { panic("skeleton") }

// EpochEnd returns the largest known epoch not above epoch and its end
// offset; -1, -1 if there is none.
func (p *Partition) EpochEnd(epoch int32) (foundEpoch int32, end int64) { panic("skeleton") }

// EpochOf returns the leader epoch of the offset, -1 if unknown.
func (p *Partition) EpochOf(offset int64) int32 { panic("skeleton") }

// FirstUnstable returns the start of the oldest open transaction.
func (p *Partition) FirstUnstable() (int64, bool) { panic("skeleton") }

// Aborted returns the aborted transactions that touch [from, to), by first offset.
func (p *Partition) Aborted(from, to int64) []AbortedTxn { panic("skeleton") }

// Producers returns what is remembered of each producer, by id.
func (p *Partition) Producers() []ProducerState { panic("skeleton") }

// Truncate rewinds the log end to offset `to`; epoch is the leader epoch in
// whose name it happens. Durable on return.
func (p *Partition) Truncate(to int64, epoch int32) error { panic("skeleton") }

// Bytes returns the bytes of the partition's batches.
func (p *Partition) Bytes() int64 { panic("skeleton") }

// Batches is the result of a read. Its bytes stay valid until Release.
type Batches struct{}

// Buffers returns the bytes, whole batches back to back.
func (b *Batches) Buffers() [][]byte { panic("skeleton") }

// Size returns the number of bytes.
func (b *Batches) Size() int { panic("skeleton") }

// NextOffset returns the offset after the last batch.
func (b *Batches) NextOffset() int64 { panic("skeleton") }

// Release gives the memory and the pinned segments back.
func (b *Batches) Release() { panic("skeleton") }
