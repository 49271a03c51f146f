package coordinator

// Record is one record of an internal topic. A nil Value is a tombstone.
type Record struct {
	Key, Value []byte
}

// NoProducer is the producer id of records that belong to no transaction.
const NoProducer int64 = -1

// Producer is the transactional producer for whom records are appended.
type Producer struct {
	ID    int64
	Epoch int16
}

// Marker ends a producer's transaction on the partition.
type Marker struct {
	Producer         Producer
	Commit           bool
	CoordinatorEpoch int32
}

// Replay is what a journal calls, in the log's order, to have its records loaded.
type Replay struct {
	// Record is a record; producer is NoProducer unless it is part of a
	// transaction. Its bytes are only lent.
	Record func(r Record, producer int64)
	// End is the end of a transaction.
	End func(m Marker)
}

// Journal is a partition of an internal topic, led by this broker in one leader
// epoch. Once the epoch is over, every method fails.
type Journal interface {
	// Load reads the whole log up to its end, and returns when all of it is
	// committed.
	Load(into Replay, stop <-chan struct{}) error
	// Append appends a batch of records, at the time in milliseconds; producer is
	// nil unless they belong to a transaction. It does not wait for the disk. end
	// is the offset after the batch.
	Append(records []Record, producer *Producer, now int64) (end int64, err error)
	// AppendMarker appends the end of a transaction.
	AppendMarker(m Marker, now int64) (end int64, err error)
	// Commit waits until everything before end is durable and replicated.
	Commit(end int64) error
	// Confirm tells, without waiting, whether this broker still leads the
	// partition in the epoch.
	Confirm() error
}
