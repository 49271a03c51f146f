package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The batch header, big-endian, as drawn in doc.go. Never change.
const (
	// HeaderLen is the length of a batch's header.
	HeaderLen = 61
	// Overhead is what stands before the bytes that Length counts: base offset and length itself.
	Overhead = 12

	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posNumRecords      = 57

	magic2 = 2
)

// Attribute bits of a batch.
const (
	codecMask               = 0x07
	attrLogAppendTime       = 1 << 3
	attrTransactional       = 1 << 4
	attrControl             = 1 << 5
	attrDeleteHorizon       = 1 << 6
	noTimestamp       int64 = -1
)

var (
	// ErrShort says that fewer bytes are there than a header, or the batch, needs.
	ErrShort = errors.New("batch is cut short")
	// ErrMagic says that the bytes are no batch of format 2.
	ErrMagic = errors.New("batch has another format than 2")
	// ErrLength says that the length field is smaller than a header.
	ErrLength = errors.New("batch length is out of bounds")
)

// castagnoli is the table of CRC-32C; it is only read.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is a decoded batch header.
type Header struct {
	BaseOffset      int64
	Length          int32
	LeaderEpoch     int32
	Magic           int8
	CRC             uint32
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestamp   int64
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	NumRecords      int32
}

// ParseHeader decodes the header at the start of b. It needs the header's 61 bytes only; compare Size with len(b) to know
// whether the batch is whole.
func ParseHeader(b []byte) (Header, error) {
	if len(b) <= posMagic {
		return Header{}, fmt.Errorf("parse batch header of %d bytes: %w", len(b), ErrShort)
	}
	if m := int8(b[posMagic]); m != magic2 {
		return Header{}, fmt.Errorf("parse batch header with magic %d: %w", m, ErrMagic)
	}
	if len(b) < HeaderLen {
		return Header{}, fmt.Errorf("parse batch header of %d bytes: %w", len(b), ErrShort)
	}
	h := decodeHeader(b)
	if h.Length < HeaderLen-Overhead || h.Length > math.MaxInt32-Overhead {
		return Header{}, fmt.Errorf("parse batch header with length %d: %w", h.Length, ErrLength)
	}
	return h, nil
}

// decodeHeader reads the fields. REQUIRES: len(b) >= HeaderLen.
func decodeHeader(b []byte) Header {
	_ = b[HeaderLen-1]
	be := binary.BigEndian
	return Header{
		BaseOffset:      int64(be.Uint64(b[posBaseOffset:])),
		Length:          int32(be.Uint32(b[posLength:])),
		LeaderEpoch:     int32(be.Uint32(b[posLeaderEpoch:])),
		Magic:           int8(b[posMagic]),
		CRC:             be.Uint32(b[posCRC:]),
		Attributes:      int16(be.Uint16(b[posAttributes:])),
		LastOffsetDelta: int32(be.Uint32(b[posLastOffsetDelta:])),
		BaseTimestamp:   int64(be.Uint64(b[posBaseTimestamp:])),
		MaxTimestamp:    int64(be.Uint64(b[posMaxTimestamp:])),
		ProducerID:      int64(be.Uint64(b[posProducerID:])),
		ProducerEpoch:   int16(be.Uint16(b[posProducerEpoch:])),
		BaseSequence:    int32(be.Uint32(b[posBaseSequence:])),
		NumRecords:      int32(be.Uint32(b[posNumRecords:])),
	}
}

// put writes the fields, the CRC as it stands in h. REQUIRES: len(b) >= HeaderLen.
func (h Header) put(b []byte) {
	_ = b[HeaderLen-1]
	be := binary.BigEndian
	be.PutUint64(b[posBaseOffset:], uint64(h.BaseOffset))
	be.PutUint32(b[posLength:], uint32(h.Length))
	be.PutUint32(b[posLeaderEpoch:], uint32(h.LeaderEpoch))
	b[posMagic] = byte(h.Magic)
	be.PutUint32(b[posCRC:], h.CRC)
	be.PutUint16(b[posAttributes:], uint16(h.Attributes))
	be.PutUint32(b[posLastOffsetDelta:], uint32(h.LastOffsetDelta))
	be.PutUint64(b[posBaseTimestamp:], uint64(h.BaseTimestamp))
	be.PutUint64(b[posMaxTimestamp:], uint64(h.MaxTimestamp))
	be.PutUint64(b[posProducerID:], uint64(h.ProducerID))
	be.PutUint16(b[posProducerEpoch:], uint16(h.ProducerEpoch))
	be.PutUint32(b[posBaseSequence:], uint32(h.BaseSequence))
	be.PutUint32(b[posNumRecords:], uint32(h.NumRecords))
}

// Size returns the length of the whole batch.
func (h Header) Size() int { return int(h.Length) + Overhead }

// LastOffset returns the offset of the last record.
func (h Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// NextOffset returns the offset that follows the batch.
func (h Header) NextOffset() int64 { return h.LastOffset() + 1 }

// Codec returns the codec that the records are compressed with; it may be one that does not exist.
func (h Header) Codec() Codec { return Codec(h.Attributes & codecMask) }

// IsTransactional reports whether the batch belongs to a transaction.
func (h Header) IsTransactional() bool { return h.Attributes&attrTransactional != 0 }

// IsControl reports whether the records are control records.
func (h Header) IsControl() bool { return h.Attributes&attrControl != 0 }

// IsLogAppendTime reports whether MaxTimestamp is the timestamp of every record.
func (h Header) IsLogAppendTime() bool { return h.Attributes&attrLogAppendTime != 0 }

// HasDeleteHorizon reports whether BaseTimestamp holds the time after which tombstones may go.
func (h Header) HasDeleteHorizon() bool { return h.Attributes&attrDeleteHorizon != 0 }

// HasProducer reports whether the batch carries a producer id.
func (h Header) HasProducer() bool { return h.ProducerID >= 0 }

// LastSequence returns the sequence number of the last record, which wraps from the highest to 0, or -1 without sequences.
func (h Header) LastSequence() int32 {
	if h.BaseSequence < 0 {
		return -1
	}
	return AddSequence(h.BaseSequence, h.LastOffsetDelta)
}

// AddSequence returns the sequence number that stands n after s. REQUIRES: s and n are not negative.
func AddSequence(s, n int32) int32 {
	return int32((int64(s) + int64(n)) & math.MaxInt32)
}

// Stamp writes base offset and leader epoch, which lie outside the CRC. REQUIRES: b starts with a batch.
func Stamp(b []byte, baseOffset int64, leaderEpoch int32) {
	_ = b[posLeaderEpoch+3]
	binary.BigEndian.PutUint64(b[posBaseOffset:], uint64(baseOffset))
	binary.BigEndian.PutUint32(b[posLeaderEpoch:], uint32(leaderEpoch))
}

// SetTimestamps writes the maximum timestamp and the bit that says that it is the broker's time of append, and the CRC that
// follows from them. REQUIRES: b is a whole batch.
func SetTimestamps(b []byte, maxTimestamp int64, logAppendTime bool) {
	attributes := int16(binary.BigEndian.Uint16(b[posAttributes:]))
	if logAppendTime {
		attributes |= attrLogAppendTime
	} else {
		attributes &^= attrLogAppendTime
	}
	binary.BigEndian.PutUint16(b[posAttributes:], uint16(attributes))
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(maxTimestamp))
	binary.BigEndian.PutUint32(b[posCRC:], checksum(b))
}

// ChecksumOK reports whether b is as long as its header says and carries the right CRC.
func ChecksumOK(b []byte) bool {
	if len(b) < HeaderLen {
		return false
	}
	size := int64(int32(binary.BigEndian.Uint32(b[posLength:]))) + Overhead
	return size == int64(len(b)) && binary.BigEndian.Uint32(b[posCRC:]) == checksum(b)
}

// checksum computes the CRC of a whole batch. REQUIRES: len(b) >= HeaderLen.
func checksum(b []byte) uint32 { return crc32.Checksum(b[posAttributes:], castagnoli) }
