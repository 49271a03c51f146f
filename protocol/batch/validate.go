package batch

import "errors"

var (
	// ErrUndelimited is the Kind of bytes that cannot be taken apart into batches at all: Kafka answers CORRUPT_MESSAGE (2) for
	// every partition of the request.
	ErrUndelimited = errors.New("records cannot be taken apart into batches")
	// ErrCorrupt is the Kind of a batch with a wrong checksum: CORRUPT_MESSAGE (2).
	ErrCorrupt = errors.New("batch is corrupt")
	// ErrInvalidRecord is the Kind of a batch that breaks a rule: INVALID_RECORD (87).
	ErrInvalidRecord = errors.New("record is invalid")
	// ErrInvalidTimestamp is the Kind of a batch with a timestamp out of bounds or of the wrong type: INVALID_TIMESTAMP (32).
	ErrInvalidTimestamp = errors.New("timestamp is invalid")
)

// Checks says what a partition asks of the batches that clients produce to it.
type Checks struct {
	RequireKeys     bool   // The topic is compacted.
	CheckTimestamps bool   // The topic has CreateTime; the three below count.
	LogAppendTime   bool   // The topic has LogAppendTime.
	Now             int64  // Milliseconds since the epoch.
	BeforeMaxMs     int64  // message.timestamp.before.max.ms
	AfterMaxMs      int64  // message.timestamp.after.max.ms
	Partition       string // "topic-0", for the messages of record errors.
	MaxUncompressed int    // Bound of the records' bytes when decompressed; 0 is DefaultMaxUncompressed.
}

// Summary is what Validate found.
type Summary struct {
	Header
	// MaxTimestamp is the records' own maximum; it may differ from the header's (Header.MaxTimestamp), then SetTimestamps is due.
	MaxTimestamp int64
	// OffsetOfMaxTimestamp is the offset, counted from Header.BaseOffset, of the first record with MaxTimestamp.
	OffsetOfMaxTimestamp int64
	// Uncompressed is the length of the records when decompressed.
	Uncompressed int
	// Scattered says that the records' offset deltas are not 0, 1, 2, …; Recompress renumbers them.
	Scattered bool
}

// RecordError names a record that was refused.
type RecordError struct {
	Index   int32
	Message string
}

// InvalidError says why a batch was refused.
type InvalidError struct {
	Kind    error         // One of the four kinds above; errors.Is finds it.
	Records []RecordError // Only for null keys and timestamps.
	Message string        // The reason.
	Public  bool          // Kafka shows the message to the client.
}

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Message }

// Unwrap returns Kind.
func (e *InvalidError) Unwrap() error { return e.Kind }

// Delimit cuts the one batch out of the records field of a produce request. An error is an *InvalidError; ErrUndelimited means
// that the whole request is refused. An incomplete batch behind the first is left out, as Kafka does.
func Delimit(records []byte) (batch []byte, err error) { panic("skeleton") }

// Validate checks one whole batch of a client by all rules, record by record. An error is an *InvalidError.
func Validate(b []byte, c Checks) (Summary, error) { panic("skeleton") }
