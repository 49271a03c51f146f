package coordinator

// Machine is the state of one partition. Its methods are called by its shard
// alone, one at a time.
type Machine interface {
	// Replay takes in a record of the log. producer is NoProducer unless the
	// record is part of a transaction: then it counts once that has ended well.
	// The record's bytes are only lent. An error says that it cannot be read: it
	// is reported and left out.
	Replay(r Record, producer int64) error
	// ReplayEnd takes in the end of a transaction.
	ReplayEnd(m Marker) error
	// Loaded is the first turn after the last record.
	Loaded(t *Turn)
	// Resigned tells that the machine is dropped: what it has parked is to be
	// failed with err.
	Resigned(err error)
}
