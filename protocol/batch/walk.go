package batch

// meta is what validation and look-ups want of a record.
type meta struct {
	timestampDelta int64
	offsetDelta    int32
	keyLen         int32 // -1 is no key.
	valueLen       int32
}

// walker goes over the records of a batch, one at a time, without keeping them. Where the records are at hand it reads them
// in place; where they are compressed it holds a window of the decompressed stream.
type walker struct {
	window []byte  // What is not read yet of the bytes at hand.
	src    *stream // nil when the window is all.
}

// next reads a record. At the end of the bytes it says faultFewRecords.
func (w *walker) next(m *meta) fault {
	n, k := varint32(w.window)
	if k > 0 && n >= 0 && int(n) <= len(w.window)-k {
		rec := w.window[k : k+int(n)]
		w.window = w.window[k+int(n):]
		return parseRecord(rec, m)
	}
	return w.nextAtEdge(m)
}

// nextAtEdge reads a record that is not whole in the window.
func (w *walker) nextAtEdge(m *meta) fault {
	if w.src != nil {
		if f := w.fill(maxVarint32); f != sound {
			return f
		}
	}
	if len(w.window) == 0 {
		return faultFewRecords
	}
	n, k := varint32(w.window)
	switch {
	case k < 0:
		return faultVarint
	case k == 0, n < 0, w.src == nil && int(n) > len(w.window)-k:
		return faultRecordLength
	case w.src == nil:
		return w.next(m)
	}
	if size := k + int(n); size <= streamWindow {
		if f := w.fill(size); f != sound {
			return f
		}
		if size > len(w.window) {
			return faultRecordLength
		}
		return w.next(m)
	}
	w.window = w.window[k:]
	return w.nextLong(int(n), m)
}

// fill makes the window hold n bytes, or all that are left. REQUIRES: src is set, n <= streamWindow.
func (w *walker) fill(n int) fault {
	if len(w.window) >= n {
		return sound
	}
	var f fault
	w.window, f = w.src.fill(w.window, n)
	return f
}

// end checks that no byte is left.
func (w *walker) end() fault {
	if w.src != nil {
		if f := w.fill(1); f != sound {
			return f
		}
	}
	if len(w.window) > 0 {
		return faultManyRecords
	}
	return sound
}

// parseRecord reads the fields of a record that is at hand as a whole.
func parseRecord(rec []byte, m *meta) fault {
	if len(rec) == 0 {
		return faultRecordShort
	}
	rec = rec[1:] // The attributes, of which none is in use.
	timestampDelta, k := varint64(rec)
	if k <= 0 {
		return badVarint(k)
	}
	rec = rec[k:]
	offsetDelta, k := varint32(rec)
	if k <= 0 {
		return badVarint(k)
	}
	rec = rec[k:]
	keyLen, k := varint32(rec)
	if k <= 0 {
		return badVarint(k)
	}
	rec = rec[k:]
	if keyLen < -1 || int(keyLen) > len(rec) {
		return faultKeyLength
	}
	rec = rec[max(keyLen, 0):]
	valueLen, k := varint32(rec)
	if k <= 0 {
		return badVarint(k)
	}
	rec = rec[k:]
	if valueLen < -1 || int(valueLen) > len(rec) {
		return faultValueLength
	}
	rec = rec[max(valueLen, 0):]
	m.timestampDelta, m.offsetDelta, m.keyLen, m.valueLen = timestampDelta, offsetDelta, keyLen, valueLen
	if len(rec) == 1 && rec[0] == 0 {
		return sound // No headers and nothing behind: nearly all records.
	}
	return skipHeaders(rec)
}

// skipHeaders checks the headers of a record, which must fill what is left of it.
func skipHeaders(rec []byte) fault {
	count, k := varint32(rec)
	if k <= 0 {
		return badVarint(k)
	}
	rec = rec[k:]
	if count < 0 || int(count) > len(rec)/minHeaderLen {
		return faultHeaderCount
	}
	for range count {
		n, k := varint32(rec)
		if k <= 0 {
			return badVarint(k)
		}
		rec = rec[k:]
		if n < 0 || int(n) > len(rec) {
			return faultHeaderKeyLength
		}
		rec = rec[n:]
		if n, k = varint32(rec); k <= 0 {
			return badVarint(k)
		}
		rec = rec[k:]
		if n < -1 || int(n) > len(rec) {
			return faultHeaderValueLength
		}
		rec = rec[max(n, 0):]
	}
	if len(rec) > 0 {
		return faultTrailing
	}
	return sound
}

// minHeaderLen is the least that a record's header takes: two lengths.
const minHeaderLen = 2

// badVarint says what a varint's length of 0 or below means inside a record.
func badVarint(n int) fault {
	if n < 0 {
		return faultVarint
	}
	return faultRecordShort
}

// nextLong is parseRecord for a record of n bytes that is larger than the window: it goes through it piece by piece.
func (w *walker) nextLong(n int, m *meta) fault {
	l := longRecord{w: w, left: n}
	l.skip(1, faultRecordShort)
	m.timestampDelta = l.varint64()
	m.offsetDelta = l.varint32()
	m.keyLen = l.field(-1, faultKeyLength)
	m.valueLen = l.field(-1, faultValueLength)
	count := l.varint32()
	if l.fault == sound && (count < 0 || int(count) > l.left/minHeaderLen) {
		l.fault = faultHeaderCount
	}
	for i := int32(0); i < count && l.fault == sound; i++ {
		l.field(0, faultHeaderKeyLength)
		l.field(-1, faultHeaderValueLength)
	}
	if l.fault == sound && l.left > 0 {
		return faultTrailing
	}
	return l.fault
}

// longRecord reads the fields of a long record. After a fault its methods do nothing.
type longRecord struct {
	w     *walker
	left  int // Bytes of the record that are not read yet.
	fault fault
}

// atHand returns the bytes of the record that are in the window, n of them if it has so many.
func (l *longRecord) atHand(n int) []byte {
	if l.fault != sound {
		return nil
	}
	if l.fault = l.w.fill(min(n, l.left)); l.fault != sound {
		return nil
	}
	if len(l.w.window) < min(n, l.left) {
		l.fault = faultRecordLength
		return nil
	}
	return l.w.window[:min(l.left, len(l.w.window))]
}

func (l *longRecord) took(n int) {
	if n <= 0 {
		l.fault = badVarint(n)
		return
	}
	l.w.window = l.w.window[n:]
	l.left -= n
}

func (l *longRecord) varint64() int64 {
	b := l.atHand(maxVarint64)
	if l.fault != sound {
		return 0
	}
	v, n := varint64(b)
	l.took(n)
	return v
}

func (l *longRecord) varint32() int32 {
	b := l.atHand(maxVarint32)
	if l.fault != sound {
		return 0
	}
	v, n := varint32(b)
	l.took(n)
	return v
}

// field reads a length, which is at least lowest, and skips as many bytes.
func (l *longRecord) field(lowest int32, bad fault) int32 {
	n := l.varint32()
	if l.fault == sound && (n < lowest || int(n) > l.left) {
		l.fault = bad
	}
	l.skip(int(max(n, 0)), bad)
	return n
}

// skip passes over n bytes of the record.
func (l *longRecord) skip(n int, bad fault) {
	if l.fault == sound && n > l.left {
		l.fault = bad
	}
	for n > 0 && l.fault == sound {
		b := l.atHand(1)
		if l.fault != sound {
			return
		}
		step := min(n, len(b))
		l.w.window = l.w.window[step:]
		l.left -= step
		n -= step
	}
}
