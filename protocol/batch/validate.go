package batch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Checks says what a partition asks of the batches that are produced to it.
type Checks struct {
	// Internal batches come from the broker itself: they may have any base offset and hold control records.
	Internal bool
	// RequireKeys refuses records without a key: the topic is compacted.
	RequireKeys bool
	// LogAppendTime says that the topic's timestamps are the broker's. The client must not claim that it set them so.
	LogAppendTime bool
	// CheckTimestamps refuses timestamps outside of [Now-BeforeMaxMs, Now+AfterMaxMs], but for -1, which is none.
	CheckTimestamps              bool
	Now, BeforeMaxMs, AfterMaxMs int64
	// Partition names the partition ("topic-0") in the messages of record errors.
	Partition string
	// MaxUncompressed bounds the records' bytes when decompressed; 0 is DefaultMaxUncompressed.
	MaxUncompressed int
}

// Summary is what Validate found.
type Summary struct {
	Header
	// MaxTimestamp is the records' own maximum; the header's may differ, see TimestampsExact.
	MaxTimestamp int64
	// OffsetOfMaxTimestamp is the offset of the first record that has MaxTimestamp.
	OffsetOfMaxTimestamp int64
	// Uncompressed is the length of the records when decompressed.
	Uncompressed int
	// Scattered says that the records' offset deltas are not 0, 1, 2, …, which Kafka accepts, and which would give readers offsets
	// that the batch does not have. Recompress, also to the same codec, numbers them anew.
	Scattered bool
}

// TimestampsExact reports whether the header's timestamp fields are right as they are for a topic with CreateTime; else
// SetTimestamps with MaxTimestamp is due.
func (s Summary) TimestampsExact() bool {
	return !s.IsLogAppendTime() && s.Header.MaxTimestamp == s.MaxTimestamp
}

// Delimit cuts the one batch out of the records field of a produce request of version 3 or later. An error is an
// *InvalidError; its Kind is ErrUndelimited where Kafka refuses all of the request. A batch behind the first that is
// incomplete is left out, as Kafka does.
func Delimit(records []byte) ([]byte, error) {
	size, err := delimit(records)
	switch {
	case err != nil:
		return nil, err
	case size == 0:
		return nil, invalid(ErrInvalidRecord, "there is no whole batch, and there must be one")
	case int8(records[posMagic]) != magic2:
		return nil, invalid(ErrInvalidRecord, "the batch has format %d, and must have 2", int8(records[posMagic]))
	}
	rest, err := delimit(records[size:])
	switch {
	case err != nil:
		return nil, invalid(ErrCorrupt, "what follows the batch is no batch: %v", err)
	case rest > 0:
		return nil, invalid(ErrInvalidRecord, "there is more than one batch, and there must be one")
	}
	return records[:size:size], nil
}

// minLegacyLength is the least that a message of format 0 takes after offset and length.
const minLegacyLength = 14

// delimit returns the size of the batch at the start of b, 0 if it is not there as a whole.
func delimit(b []byte) (int, error) {
	if len(b) < Overhead {
		return 0, nil
	}
	length := int32(binary.BigEndian.Uint32(b[posLength:]))
	if length < minLegacyLength {
		return 0, shown(ErrUndelimited, "Record size %d is less than the minimum record overhead (%d)", length, minLegacyLength)
	}
	if len(b) <= posMagic {
		return 0, nil
	}
	if magic := int8(b[posMagic]); magic < 0 || magic > magic2 {
		return 0, shown(ErrUndelimited, "Invalid magic found in record: %d", magic)
	}
	if int64(length) > int64(len(b)-Overhead) {
		return 0, nil
	}
	return int(length) + Overhead, nil
}

// Validate checks one whole batch by all rules, record by record, also when they are compressed; then they pass through a
// window of fixed size. It allocates nothing for a batch that is right. An error is an *InvalidError.
func Validate(b []byte, c Checks) (Summary, error) {
	h, err := validateHeader(b, c)
	if err != nil {
		return Summary{}, err
	}
	v := validation{checks: c, sum: Summary{Header: h}}
	v.lowest, v.highest = timestampBounds(c)
	// A claim of LogAppendTime makes each record wrong, or each that has no timestamp.
	v.refuseStamped = h.IsLogAppendTime() && c.LogAppendTime
	v.refuseUnstamped = h.IsLogAppendTime() && !c.LogAppendTime

	var f fault
	if codec := h.Codec(); codec == None {
		f = v.walk(&walker{window: b[HeaderLen:]})
		v.sum.Uncompressed = len(b) - HeaderLen
	} else {
		f, err = v.decompress(codec, b[HeaderLen:])
	}
	switch {
	case err != nil:
		return Summary{}, invalid(ErrInvalidRecord, "%v: %v", h.Codec(), err)
	case f != sound:
		return Summary{}, invalid(ErrInvalidRecord, "record %d: %v", v.at, f)
	case v.refused > 0:
		return Summary{}, v.refusal()
	}
	return v.sum, nil
}

// validateHeader checks all that can be told without the records.
func validateHeader(b []byte, c Checks) (Header, error) {
	h, err := ParseHeader(b)
	switch {
	case err != nil:
		return h, invalid(ErrInvalidRecord, "%v", err)
	case h.Size() > len(b):
		return h, invalid(ErrInvalidRecord, "the batch takes %d bytes, of which %d are there", h.Size(), len(b))
	case !c.Internal && h.BaseOffset != 0:
		return h, invalid(ErrInvalidRecord, "the base offset is %d, and must be 0", h.BaseOffset)
	case checksum(b[:h.Size()]) != h.CRC:
		return h, invalid(ErrCorrupt, "the checksum does not match")
	case h.Size() < len(b):
		return h, invalid(ErrInvalidRecord, "%d bytes follow the batch", len(b)-h.Size())
	case h.NumRecords <= 0:
		return h, invalid(ErrInvalidRecord, "the record count is %d", h.NumRecords)
	case int64(h.LastOffsetDelta)+1 != int64(h.NumRecords):
		return h, invalid(ErrInvalidRecord, "the last offset delta is %d with %d records", h.LastOffsetDelta, h.NumRecords)
	case !c.Internal && h.IsControl():
		return h, invalid(ErrInvalidRecord, "clients may not write control records")
	case !c.Internal && h.HasProducer() && h.BaseSequence < 0:
		return h, invalid(ErrInvalidRecord, "the base sequence is %d with a producer id", h.BaseSequence)
	case !h.Codec().Known():
		return h, invalid(ErrInvalidRecord, "there is no codec %d", int8(h.Codec()))
	}
	return h, nil
}

// timestampBounds returns the lowest and highest timestamp that is allowed.
func timestampBounds(c Checks) (lowest, highest int64) {
	if !c.CheckTimestamps || c.LogAppendTime {
		return math.MinInt64, math.MaxInt64
	}
	lowest, highest = c.Now-c.BeforeMaxMs, c.Now+c.AfterMaxMs
	if lowest > c.Now { // It wrapped.
		lowest = math.MinInt64
	}
	if highest < c.Now {
		highest = math.MaxInt64
	}
	return lowest, highest
}

// maxRecordErrors bounds the records that an error names, so that an answer cannot be many times the request.
const maxRecordErrors = 1000

// validation is one batch being checked.
type validation struct {
	checks          Checks
	sum             Summary
	lowest, highest int64
	refuseStamped   bool
	refuseUnstamped bool

	at      int32 // The record that is being read.
	refused int
	errors  []RecordError
	kind    error
}

// decompress walks over compressed records.
func (v *validation) decompress(c Codec, src []byte) (fault, error) {
	limit := v.checks.MaxUncompressed
	if limit == 0 {
		limit = DefaultMaxUncompressed
	}
	s, err := openStream(c, src, limit)
	if err != nil {
		return sound, err
	}
	defer s.close()
	f := v.walk(&walker{src: s})
	v.sum.Uncompressed = s.total
	return f, nil
}

// walk checks the records one after the other.
func (v *validation) walk(w *walker) fault {
	base, count := v.sum.BaseTimestamp, v.sum.NumRecords
	highest, at := int64(math.MinInt64), int32(0)
	var m meta
	for i := range count {
		if f := w.next(&m); f != sound {
			v.at = i
			return f
		}
		ts := base + m.timestampDelta
		if ts > highest {
			highest, at = ts, i
		}
		if m.offsetDelta != i {
			v.sum.Scattered = true
		}
		if m.keyLen < 0 && v.checks.RequireKeys || ts < v.lowest || ts > v.highest || v.refuseStamped || v.refuseUnstamped {
			v.examine(i, ts, &m)
		}
	}
	v.at = count
	v.sum.MaxTimestamp, v.sum.OffsetOfMaxTimestamp = highest, v.sum.BaseOffset+int64(at)
	return w.end()
}

// examine names what is wrong with a record that is suspected. The messages are those of Kafka, which users search for.
func (v *validation) examine(i int32, ts int64, m *meta) {
	switch {
	case m.keyLen < 0 && v.checks.RequireKeys:
		v.refuse(i, ErrInvalidRecord, func() string {
			return "Compacted topic cannot accept message without key in topic partition " + v.checks.Partition
		})
	case v.refuseStamped, v.refuseUnstamped && ts == noTimestamp:
		v.refuse(i, ErrInvalidTimestamp, func() string {
			return fmt.Sprintf("Invalid timestamp type in message DefaultRecord(offset=%d, timestamp=%d, key=%d bytes, "+
				"value=%d bytes). Producer should not set timestamp type to LogAppendTime.", i, ts, max(m.keyLen, 0), max(m.valueLen, 0))
		})
	case ts != noTimestamp && (ts < v.lowest || ts > v.highest):
		v.refuse(i, ErrInvalidTimestamp, func() string {
			return fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
				ts, i, v.lowest, v.highest)
		})
	}
}

// refuse counts a record that is refused and names it, if not too many are named already. Timestamps win over keys.
func (v *validation) refuse(i int32, kind error, message func() string) {
	v.refused++
	if len(v.errors) < maxRecordErrors {
		v.errors = append(v.errors, RecordError{Index: i, Message: message()})
	}
	if v.kind == nil || kind == ErrInvalidTimestamp { //nolint:errorlint // Kinds are bare.
		v.kind = kind
	}
}

// refusal returns the error for the records that were refused.
func (v *validation) refusal() *InvalidError {
	if v.kind == ErrInvalidTimestamp { //nolint:errorlint // Kinds are bare.
		e := shown(v.kind, "One or more records have been rejected due to invalid timestamp")
		e.Records = v.errors
		return e
	}
	first := ""
	for i, r := range v.errors[:min(len(v.errors), 3)] {
		if i > 0 {
			first += ", "
		}
		first += fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", r.Index, r.Message)
	}
	e := shown(v.kind, "One or more records have been rejected due to %d record errors in total, "+
		"and only showing the first three errors at most: [%s]", v.refused, first)
	e.Records = v.errors
	return e
}
