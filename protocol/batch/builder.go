package batch

import (
	"errors"
	"fmt"
	"math"
)

// Spec says what the header of a batch that is built shall hold.
type Spec struct {
	BaseOffset  int64
	LeaderEpoch int32
	Codec       Codec
	Level       int // Compression level; 0 is the codec's default.
	// LogAppendTime, when above 0, is the broker's time, which counts for all records.
	LogAppendTime int64
	Transactional bool
	Control       bool
	Producer      *Producer // nil is none.
}

// Producer is the idempotent producer of a batch.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // Of the first record; -1 for control batches.
}

// ErrEmpty says that a batch without records was asked for.
var ErrEmpty = errors.New("batch has no records")

// Builder builds a batch record by record.
type Builder struct {
	spec          Spec
	records       []byte // Encoded, not compressed.
	count         int32
	baseTimestamp int64
	maxTimestamp  int64
}

// NewBuilder returns an empty builder.
func NewBuilder(s Spec) *Builder {
	if s.Level == 0 {
		s.Level = s.Codec.DefaultLevel()
	}
	return &Builder{spec: s, maxTimestamp: math.MinInt64}
}

// Append adds a record. A nil key is no key, a nil value is a tombstone.
func (b *Builder) Append(timestamp int64, key, value []byte, headers ...RecordHeader) {
	if b.count == 0 {
		b.baseTimestamp = timestamp
	}
	b.maxTimestamp = max(b.maxTimestamp, timestamp)
	timestampDelta := timestamp - b.baseTimestamp
	size := 1 + sizeVarint(timestampDelta) + sizeVarint(int64(b.count)) + sizeField(key) + sizeField(value) +
		sizeVarint(int64(len(headers)))
	for _, h := range headers {
		size += sizeVarint(int64(len(h.Key))) + len(h.Key) + sizeField(h.Value)
	}
	out := appendVarint(b.records, int64(size))
	out = append(out, 0)
	out = appendVarint(out, timestampDelta)
	out = appendVarint(out, int64(b.count))
	out = appendField(out, key)
	out = appendField(out, value)
	out = appendVarint(out, int64(len(headers)))
	for _, h := range headers {
		out = append(appendVarint(out, int64(len(h.Key))), h.Key...)
		out = appendField(out, h.Value)
	}
	b.records = out
	b.count++
}

// sizeField returns the bytes that appendField adds.
func sizeField(v []byte) int {
	if v == nil {
		return 1
	}
	return sizeVarint(int64(len(v))) + len(v)
}

// appendField appends a length and the bytes; -1 for nil.
func appendField(out, v []byte) []byte {
	if v == nil {
		return appendVarint(out, -1)
	}
	return append(appendVarint(out, int64(len(v))), v...)
}

// Len returns the number of records.
func (b *Builder) Len() int { return int(b.count) }

// Size returns the size of the batch without compression.
func (b *Builder) Size() int { return HeaderLen + len(b.records) }

// Batch returns the finished batch. The builder may go on, and be asked again.
func (b *Builder) Batch() ([]byte, error) {
	if b.count == 0 {
		return nil, fmt.Errorf("build batch: %w", ErrEmpty)
	}
	out := make([]byte, HeaderLen, HeaderLen+len(b.records))
	out, err := Compress(b.spec.Codec, b.spec.Level, out, b.records)
	if err != nil {
		return nil, fmt.Errorf("build batch: %w", err)
	}
	if len(out) > math.MaxInt32 {
		return nil, fmt.Errorf("build batch: %w", ErrTooLarge)
	}
	h := Header{
		BaseOffset:      b.spec.BaseOffset,
		LeaderEpoch:     b.spec.LeaderEpoch,
		Magic:           magic2,
		Attributes:      int16(b.spec.Codec),
		LastOffsetDelta: b.count - 1,
		BaseTimestamp:   b.baseTimestamp,
		MaxTimestamp:    b.maxTimestamp,
		ProducerID:      -1,
		ProducerEpoch:   -1,
		BaseSequence:    -1,
		NumRecords:      b.count,
	}
	if b.spec.Transactional {
		h.Attributes |= attrTransactional
	}
	if b.spec.Control {
		h.Attributes |= attrControl
	}
	if b.spec.LogAppendTime > 0 {
		h.Attributes |= attrLogAppendTime
		h.MaxTimestamp = b.spec.LogAppendTime
	}
	if p := b.spec.Producer; p != nil {
		h.ProducerID, h.ProducerEpoch, h.BaseSequence = p.ID, p.Epoch, p.Sequence
	}
	seal(out, h)
	return out, nil
}

// seal writes the header of a batch whose records stand behind it: length and CRC are computed, the rest is h's.
func seal(b []byte, h Header) {
	h.Length = int32(len(b) - Overhead)
	h.put(b)
	h.CRC = checksum(b)
	h.put(b)
}
