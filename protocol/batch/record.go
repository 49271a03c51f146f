package batch

import (
	"fmt"
	"iter"
)

// Record is one record of a batch. Its bytes are valid until the next record is asked for.
type Record struct {
	Attributes  int8
	OffsetDelta int32
	Offset      int64
	Timestamp   int64  // The batch's, if that has LogAppendTime.
	Key         []byte // nil is no key.
	Value       []byte // nil is a tombstone.
	Headers     []RecordHeader
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Key   string
	Value []byte // nil is null.
}

// Records walks over the records of a whole batch, for look-ups and tools. It ends after an error. What it holds in memory is
// one record, and what that has room to say.
func Records(b []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		h, err := ParseHeader(b)
		if err != nil {
			yield(Record{}, fmt.Errorf("read records: %w", err))
			return
		}
		RecordsOf(h, b)(yield)
	}
}

// RecordsOf is Records for who has parsed the batch's header.
func RecordsOf(h Header, b []byte) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if h.Size() > len(b) {
			yield(Record{}, fmt.Errorf("read records: %w", ErrShort))
			return
		}
		r := recordReader{window: b[HeaderLen:h.Size()]}
		if c := h.Codec(); c != None {
			var err error
			if r.src, err = openStream(c, r.window, DefaultMaxUncompressed); err != nil {
				yield(Record{}, fmt.Errorf("read records: %w", err))
				return
			}
			defer r.src.close()
			r.window, r.src.yields = nil, true
		}
		var rec Record
		for i := range h.NumRecords {
			if f := r.next(&h, &rec); f != sound {
				yield(Record{}, fmt.Errorf("read record %d: %w", i, f))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// recordReader reads records so that each is at hand as a whole.
type recordReader struct {
	window []byte  // What is at hand and not read yet.
	src    *stream // nil when the window is all.
	buf    []byte  // What window is part of, if there is a source.
}

// next reads a record into rec, whose headers' memory it uses again.
func (r *recordReader) next(h *Header, rec *Record) fault {
	if f := r.fill(maxVarint32); f != sound {
		return f
	}
	if len(r.window) == 0 {
		return faultFewRecords
	}
	n, k := varint32(r.window)
	switch {
	case k < 0:
		return faultVarint
	case k == 0 || n < 0:
		return faultRecordLength
	}
	if f := r.fill(k + int(n)); f != sound {
		return f
	}
	if k+int(n) > len(r.window) {
		return faultRecordLength
	}
	raw := r.window[k : k+int(n)]
	r.window = r.window[k+int(n):]
	return decodeRecord(raw, h, rec)
}

// fill makes the window hold n bytes, or all that are left. It takes memory only as bytes come.
func (r *recordReader) fill(n int) fault {
	if r.src == nil || len(r.window) >= n {
		return sound
	}
	have := copy(r.buf, r.window)
	for have < n {
		if have == len(r.buf) {
			grown := make([]byte, max(2*have, streamWindow))
			copy(grown, r.buf[:have])
			r.buf = grown
		}
		k, f := r.src.read(r.buf[have:])
		if f != sound {
			return f
		}
		if k == 0 {
			break
		}
		have += k
	}
	r.window = r.buf[:have]
	return sound
}

// decodeRecord decodes a record; parseRecord has checked all lengths before they are used.
func decodeRecord(raw []byte, h *Header, rec *Record) fault {
	var m meta
	if f := parseRecord(raw, &m); f != sound {
		return f
	}
	rec.Attributes = int8(raw[0])
	rec.OffsetDelta, rec.Offset = m.offsetDelta, h.BaseOffset+int64(m.offsetDelta)
	rec.Timestamp = recordTimestamp(h, &m)
	raw = raw[1:]
	_, k := varint64(raw)
	raw = raw[k:]
	_, k = varint32(raw)
	raw = raw[k:]
	rec.Key, raw = takeBytes(raw)
	rec.Value, raw = takeBytes(raw)
	count, k := varint32(raw)
	raw = raw[k:]
	rec.Headers = rec.Headers[:0]
	for range count {
		var key, value []byte
		key, raw = takeBytes(raw)
		value, raw = takeBytes(raw)
		rec.Headers = append(rec.Headers, RecordHeader{Key: string(key), Value: value})
	}
	return sound
}

// takeBytes takes a length and as many bytes. REQUIRES: they are there.
func takeBytes(b []byte) (field, rest []byte) {
	n, k := varint32(b)
	b = b[k:]
	if n < 0 {
		return nil, b
	}
	return b[:n:n], b[n:]
}

func recordTimestamp(h *Header, m *meta) int64 {
	if h.IsLogAppendTime() {
		return h.MaxTimestamp
	}
	return h.BaseTimestamp + m.timestampDelta
}

// FindTimestamp returns the first record, in the order of offsets, that has at least the offset from and at least the
// timestamp ts. It keeps nothing of the records, whatever their size.
func FindTimestamp(b []byte, ts, from int64) (offset, timestamp int64, found bool, err error) {
	h, err := ParseHeader(b)
	if err == nil && h.Size() > len(b) {
		err = ErrShort
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("find timestamp: %w", err)
	}
	w := walker{window: b[HeaderLen:h.Size()]}
	if c := h.Codec(); c != None {
		if w.src, err = openStream(c, w.window, DefaultMaxUncompressed); err != nil {
			return 0, 0, false, fmt.Errorf("find timestamp: %w", err)
		}
		defer w.src.close()
		w.window = nil
	}
	var m meta
	for i := range h.NumRecords {
		if f := w.next(&m); f != sound {
			return 0, 0, false, fmt.Errorf("find timestamp at record %d: %w", i, f)
		}
		offset, timestamp = h.BaseOffset+int64(m.offsetDelta), recordTimestamp(&h, &m)
		if offset >= from && timestamp >= ts {
			return offset, timestamp, true, nil
		}
	}
	return 0, 0, false, nil
}
