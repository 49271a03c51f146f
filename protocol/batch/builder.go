package batch

// Spec says what the header of a batch that is built shall hold.
type Spec struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	Level         int   // Compression level; 0 is the codec's default.
	LogAppendTime int64 // When above 0: the batch has LogAppendTime with this time.
	Transactional bool
	Control       bool
	Producer      *Producer // nil is no producer id.
}

// Producer is the idempotent producer of a batch.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // Of the first record; -1 for control batches.
}

// Builder builds a batch record by record.
type Builder struct{}

// NewBuilder returns an empty builder.
func NewBuilder(s Spec) *Builder { panic("skeleton") }

// Append adds a record.
func (b *Builder) Append(timestamp int64, key, value []byte, headers ...RecordHeader) {
	panic("skeleton")
}

// Batch returns the finished batch. The builder may not be used afterwards.
func (b *Builder) Batch() ([]byte, error) { panic("skeleton") }
