package commitlog

import (
	"fmt"
	"io"
)

// windowBytes is how much of a file a scan reads at once.
const windowBytes = 1 << 20

// window reads a file in large pieces for one who goes through it once.
type window struct {
	f   io.ReaderAt
	buf []byte
	at  int64 // position of buf[0] in the file.
	end int64 // what lies behind is not read.
}

// bytes returns n bytes at a position, fewer where the window's end or the file's comes first. They are valid until the next call.
func (w *window) bytes(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.end-pos))
	if n <= 0 {
		return nil, nil
	}
	if from := pos - w.at; from >= 0 && from+int64(n) <= int64(len(w.buf)) {
		return w.buf[from : from+int64(n)], nil
	}
	want := int(min(int64(max(n, windowBytes)), w.end-pos))
	if cap(w.buf) < want {
		w.buf = make([]byte, want)
	}
	w.buf, w.at = w.buf[:want], pos
	got, err := readFull(w.f, w.buf, pos)
	w.buf = w.buf[:got]
	if err != nil && !missing(err) {
		return nil, err
	}
	return w.buf[:min(n, got)], nil
}

// some returns at least n bytes at a position, and all that is in memory anyway, fewer where the end comes first.
func (w *window) some(pos int64, n int) ([]byte, error) {
	if b, err := w.bytes(pos, n); err != nil || len(b) < n {
		return b, err
	}
	return w.buf[pos-w.at:], nil
}

// scanner looks at the frames of one segment.
type scanner struct {
	seg  *segment
	w    window
	gone bool // the file is not there.
}

// newScanner scans a segment up to a position.
func (l *Log) newScanner(s *segment, end int64) (*scanner, error) {
	_, err := l.handle(s)
	if missing(err) {
		return &scanner{seg: s, gone: true}, nil
	}
	if err != nil {
		return nil, err
	}
	return &scanner{seg: s, w: window{f: segmentReader{l, s}, end: end}}, nil
}

// frame looks at what begins at a position. The payload is valid until the next call.
func (sc *scanner) frame(pos int64) (frameHead, []byte, verdict, error) {
	b, err := sc.bytes(pos, frameHeader+batchOutside)
	if err != nil {
		return frameHead{}, nil, frameBad, err
	}
	h, v := decodeFrameHead(b, sc.seg.seed, sc.seg.lsn(pos), sc.w.end-pos)
	if v == frameNewer {
		return h, nil, v, newerFrame(sc.seg.name, pos, b)
	}
	if v != frameGood {
		return h, nil, v, nil
	}
	b, err = sc.bytes(pos, frameHeader+h.length)
	if err != nil {
		return h, nil, frameBad, err
	}
	if len(b) < frameHeader+h.length || !h.payloadOK(b[frameHeader:]) {
		return h, nil, frameBadPayload, nil
	}
	return h, b[frameHeader:], frameGood, nil
}

func (sc *scanner) bytes(pos int64, n int) ([]byte, error) {
	if sc.gone {
		return nil, nil
	}
	b, err := sc.w.bytes(pos, n)
	if err != nil {
		return nil, fmt.Errorf("read segment %v: %w", sc.seg.id, err)
	}
	return b, nil
}

// next finds the first frame at or behind a position, whose header is right, and below a limit. Without one it returns the limit.
func (sc *scanner) next(pos, limit int64) (int64, frameHead, error) {
	for pos = alignUp(pos, frameAlign); pos+frameHeader <= limit; {
		if sc.gone {
			break
		}
		b, err := sc.w.some(pos, frameHeader)
		if err != nil {
			return 0, frameHead{}, fmt.Errorf("read segment %v: %w", sc.seg.id, err)
		}
		if len(b) < frameHeader {
			break
		}
		at := findMagic(b, frameMagic)
		if at < 0 {
			pos += int64(len(b)) &^ (frameAlign - 1)
			continue
		}
		pos += int64(at)
		if pos >= limit {
			break
		}
		h, _, v, err := sc.frame(pos)
		if err != nil {
			return 0, h, err
		}
		if v != frameBad {
			return pos, h, nil
		}
		pos += frameAlign
	}
	return limit, frameHead{}, nil
}

// findMagic returns where in b, in steps of the alignment, a magic stands, -1 if nowhere.
func findMagic(b []byte, magic uint32) int {
	for i := 0; i+4 <= len(b); i += frameAlign {
		if le.Uint32(b[i:]) == magic {
			return i
		}
	}
	return -1
}

// corrupt describes a damaged span of the segment.
func (sc *scanner) corrupt(from, to int64) *CorruptError {
	e := &CorruptError{
		File: sc.seg.name, Span: Span{Segment: sc.seg.id, From: from, To: to}, LSN: sc.seg.lsn(from), Cause: "no frame begins here",
	}
	if sc.gone {
		e.Cause, e.Truncated = "the file is missing", true
	}
	return e
}

// corruptPayload describes a frame of which only the header is right.
func (sc *scanner) corruptPayload(pos int64, h *frameHead) *CorruptError {
	e := sc.corrupt(pos, min(pos+h.size(), sc.seg.capacity))
	head := h.Header // A copy, so that headers need not be on the heap where nothing is damaged.
	e.Header, e.Cause = &head, "wrong checksum of the payload"
	return e
}

// Scan calls fn for the frames of a segment in order: for the owner to build an index that is missing. Damaged spans are quarantined,
// reported, and left out; those that were quarantined before are left out. An error of fn ends the scan and is returned.
func (l *Log) Scan(id SegmentID, fn func(Frame) error) error {
	s, err := l.acquire(id)
	if err != nil {
		return err
	}
	defer l.release(s)
	if s.kind == kindClustered {
		return l.scanClustered(s, fn)
	}
	end := l.writtenEnd(s)
	sc, err := l.newScanner(s, end)
	if err != nil {
		return err
	}
	m := l.manifest.Load()
	for pos := int64(dataStart); pos < end; {
		if q, ok := m.quarantinedAt(id, pos, pos+1); ok {
			pos = max(q.To, pos+1)
			continue
		}
		h, payload, v, err := sc.frame(pos)
		switch {
		case err != nil:
			return err
		case v == frameGood && h.Kind == kindEnd:
			return nil
		case v == frameGood:
			if err := fn(frameAt(s, pos, &h, payload)); err != nil {
				return err
			}
			pos += h.size()
		default:
			if pos, err = l.skipDamage(sc, pos, end, &h, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipDamage quarantines what is damaged from a position on and returns where to go on: behind the frame whose payload is bad, or at
// the next frame below a limit.
func (l *Log) skipDamage(sc *scanner, pos, limit int64, h *frameHead, v verdict) (int64, error) {
	if v == frameBadPayload {
		e := sc.corruptPayload(pos, h)
		return e.To, l.Quarantine(e)
	}
	to, _, err := sc.next(pos+frameAlign, limit)
	if err != nil {
		return 0, err
	}
	return to, l.Quarantine(sc.corrupt(pos, to))
}

// writtenEnd returns the position in a segment up to which its file holds what was placed.
func (l *Log) writtenEnd(s *segment) int64 {
	if r := l.manifest.Load().row(s.id); r != nil && r.sealed {
		return r.end
	}
	end := s.end.Load()
	if w := l.Written(); w < s.lsn(end) && !l.o.ReadOnly {
		return max(int64(w)-int64(s.base), dataStart)
	}
	return end
}

func frameAt(s *segment, pos int64, h *frameHead, payload []byte) Frame {
	return Frame{
		Header:  h.Header,
		Place:   Place{LSN: h.lsn, Segment: s.id, Offset: pos + frameHeader, Size: int32(h.length)},
		Payload: payload,
	}
}
