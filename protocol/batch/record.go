package batch

import "iter"

// Record is one record of a batch. Its bytes are valid until the next record is asked for.
type Record struct {
	Attributes  int8
	OffsetDelta int32
	Offset      int64
	Timestamp   int64
	Key         []byte // nil is no key.
	Value       []byte // nil is a tombstone.
	Headers     []RecordHeader
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Key   string
	Value []byte
}

// Records walks over the records of a whole batch. After an error it ends.
func Records(b []byte) iter.Seq2[Record, error] { panic("skeleton") }

// FindTimestamp returns the first record at or above the offset from whose timestamp is at least ts.
func FindTimestamp(b []byte, ts, from int64) (offset, timestamp int64, found bool, err error) {
	panic("skeleton")
}
