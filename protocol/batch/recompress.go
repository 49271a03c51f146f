package batch

import (
	"fmt"
	"io"
	"math"
)

// Recompression says how to write a batch anew.
type Recompression struct {
	Codec Codec
	Level int // As in compression.<codec>.level.
	Limit int // The most that the new batch may take; 0 is DefaultMaxUncompressed.
}

// Recompress writes a batch anew with another codec, for topics whose compression.type is not the producer's; see
// Recompression.Apply.
func Recompress(b []byte, c Codec, level int) ([]byte, error) {
	return Recompression{Codec: c, Level: level}.Apply(b)
}

// Apply returns one batch with the same records, producer, timestamps and timestamp type, compressed by the codec, its records
// numbered 0, 1, 2, …; a batch that gets larger than the limit is ErrTooLarge. It holds in memory the new batch and a
// window of the old one. REQUIRES: b passed Validate; what did not gives an error.
func (r Recompression) Apply(b []byte) ([]byte, error) {
	h, err := ParseHeader(b)
	if err == nil && h.Size() > len(b) {
		err = ErrShort
	}
	if err != nil {
		return nil, fmt.Errorf("recompress: %w", err)
	}
	limit := r.Limit
	if limit == 0 {
		limit = DefaultMaxUncompressed
	}
	out := sink{buf: make([]byte, HeaderLen, h.Size()), limit: min(limit, math.MaxInt32)}
	if err := r.transcode(h, b[HeaderLen:h.Size()], &out); err != nil {
		return nil, fmt.Errorf("recompress to %v: %w", r.Codec, err)
	}
	h.Attributes = h.Attributes&^codecMask | int16(r.Codec)
	h.LastOffsetDelta = h.NumRecords - 1
	seal(out.buf, h)
	return out.buf, nil
}

// transcode writes the records from src to out.
func (r Recompression) transcode(h Header, src []byte, out *sink) error {
	t := transcoder{w: walker{window: src}, out: out}
	if c := h.Codec(); c != None {
		s, err := openStream(c, src, DefaultMaxUncompressed)
		if err != nil {
			return err
		}
		defer s.close()
		t.w = walker{src: s}
	}
	if r.Codec == None {
		return t.run(h.NumRecords)
	}
	e, err := openEncoder(r.Codec, r.Level, out)
	if err != nil {
		return err
	}
	defer e.release()
	t.out = e
	if err := t.run(h.NumRecords); err != nil {
		return err
	}
	return e.Close()
}

// transcoder copies records and numbers them.
type transcoder struct {
	w    walker
	out  io.Writer
	head []byte // The start of a record, built anew.
}

func (t *transcoder) run(count int32) error {
	for i := range count {
		if err := t.record(i); err != nil {
			return err
		}
	}
	if f := t.w.end(); f != sound {
		return f
	}
	return nil
}

// maxRecordHead is the most that stands before a record's key: attributes, timestamp delta, offset delta.
const maxRecordHead = 1 + maxVarint64 + maxVarint32

// record copies the next record and gives it the number i.
func (t *transcoder) record(i int32) error {
	if f := t.need(maxVarint32 + maxRecordHead); f != sound {
		return f
	}
	n, k := varint32(t.w.window)
	if k <= 0 || n < 1 {
		return faultRecordLength
	}
	start := t.w.window[k:min(k+int(n), len(t.w.window))]
	if len(start) == 0 {
		return faultRecordShort
	}
	_, timestampLen := varint64(start[1:])
	if timestampLen <= 0 {
		return badVarint(timestampLen)
	}
	stable := 1 + timestampLen // Attributes and timestamp stay as they are.
	offsetDelta, offsetLen := varint32(start[stable:])
	switch {
	case offsetLen <= 0:
		return badVarint(offsetLen)
	case offsetDelta == i:
		return t.copy(k + int(n))
	}
	t.head = appendVarint(t.head[:0], int64(int(n)-offsetLen+sizeVarint(int64(i))))
	t.head = append(t.head, start[:stable]...)
	t.head = appendVarint(t.head, int64(i))
	if _, err := t.out.Write(t.head); err != nil {
		return err
	}
	t.w.window = t.w.window[k+stable+offsetLen:]
	return t.copy(int(n) - stable - offsetLen)
}

// need makes n bytes be at hand, or all that are left.
func (t *transcoder) need(n int) fault {
	if t.w.src == nil {
		return sound
	}
	return t.w.fill(n)
}

// copy copies the next n bytes.
func (t *transcoder) copy(n int) error {
	for n > 0 {
		if f := t.need(1); f != sound {
			return f
		}
		if len(t.w.window) == 0 {
			return faultRecordLength
		}
		step := min(n, len(t.w.window))
		if _, err := t.out.Write(t.w.window[:step]); err != nil {
			return err
		}
		t.w.window = t.w.window[step:]
		n -= step
	}
	return nil
}
