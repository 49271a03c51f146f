package commitlog

import "fmt"

// Reading. The newest bytes come from the ring without a copy, as long as readers do not hold too many of its blocks; older ones, and
// those beyond that bound, are copied into pooled buffers. What comes from a file is checked: header, salt, position, and the batch's
// checksum.

// spanGap is how far payloads may lie apart in a file to be read at once.
const spanGap = 4 << 10

// copyBelow is the size below which payloads are copied one behind the other rather than pinned one by one: the caller then has few
// buffers to write to a socket.
const copyBelow = 4 << 10

// maxSpan bounds what is read at once for several payloads.
const maxSpan = 1 << 20

// Pinned holds bytes of the log: parts of the ring, and buffers. Its zero value is empty. It is for one goroutine, and for use again
// after Release.
type Pinned struct {
	log     *Log
	buffers [][]byte
	size    int
	blocks  []*block
	pooled  []*[]byte
	// segments are what Hold has taken a reference to.
	segments []*segment

	copies  []byte // a pooled buffer for small payloads; its length is what is used.
	growing bool   // the last of buffers is the end of copies.
}

// Buffers returns the pinned bytes in order: a payload may be in several buffers. They must not be changed, and are valid until Release.
func (p *Pinned) Buffers() [][]byte { return p.buffers }

// Size returns how many bytes are pinned.
func (p *Pinned) Size() int { return p.size }

// Release gives all bytes back, and what Hold took.
func (p *Pinned) Release() {
	p.Clear()
	for _, s := range p.segments {
		p.log.release(s)
	}
	clear(p.segments)
	p.segments = p.segments[:0]
}

// Clear gives all bytes back.
func (p *Pinned) Clear() {
	for _, b := range p.blocks {
		p.log.ring.unhold(b)
	}
	for _, b := range p.pooled {
		p.log.buffers.give(b)
	}
	clear(p.blocks)
	clear(p.pooled)
	clear(p.buffers)
	p.buffers, p.blocks, p.pooled, p.size = p.buffers[:0], p.blocks[:0], p.pooled[:0], 0
	p.copies, p.growing = nil, false
}

func (p *Pinned) add(b []byte) {
	p.buffers = append(p.buffers, b)
	p.size += len(b)
	p.growing = false
}

// room returns memory for a small payload, behind the one before it if that was small too. It counts only when grow is called.
func (p *Pinned) room(n int) []byte {
	if n > cap(p.copies)-len(p.copies) {
		buf := p.log.buffers.take(smallBuffer)
		p.pooled = append(p.pooled, buf)
		p.copies, p.growing = (*buf)[:0], false
	}
	return p.copies[len(p.copies) : len(p.copies)+n]
}

// grow counts what was copied to the memory that room returned.
func (p *Pinned) grow(n int) {
	end := len(p.copies) + n
	p.copies = p.copies[:end]
	if p.growing {
		last := &p.buffers[len(p.buffers)-1]
		*last = p.copies[end-len(*last)-n : end : end]
	} else {
		p.buffers = append(p.buffers, p.copies[end-n:end:end])
		p.growing = true
	}
	p.size += n
}

// hold takes a reference to a block of the ring for as long as a reader likes, if readers do not hold too many already.
func (r *ring) hold(b *block) bool {
	if b.holds.Add(1) == 1 && r.held.Add(1) > r.holdLimit {
		r.letGo(b)
		return false
	}
	return true
}

func (r *ring) letGo(b *block) {
	if b.holds.Add(-1) == 0 {
		r.held.Add(-1)
	}
}

func (r *ring) unhold(b *block) {
	r.letGo(b)
	r.unref(b)
}

// Hold makes sure that Pin finds the segments of some places until p's Release, also when they are dropped meanwhile.
func (l *Log) Hold(p *Pinned, places []Place) error {
	p.log = l
	for i := range places {
		id := places[i].Segment
		if n := len(p.segments); n > 0 && p.segments[n-1].id == id {
			continue
		}
		s, err := l.acquire(id)
		if err != nil {
			return err
		}
		p.segments = append(p.segments, s)
	}
	return nil
}

// acquire is Log.acquire for a segment that may be held already.
func (p *Pinned) acquire(l *Log, id SegmentID) (*segment, error) {
	for _, s := range p.segments {
		if s.id == id && s.retain() {
			return s, nil
		}
	}
	return l.acquire(id)
}

// Pin adds the payloads at some places to p and returns how many, counted from the first. With an error, those before it are pinned
// all the same. A damaged payload is a CorruptError and quarantined; a segment that was dropped is ErrSegmentGone.
func (l *Log) Pin(p *Pinned, places []Place) (int, error) {
	for n := 0; n < len(places); {
		if l.pinRing(p, places[n]) {
			l.counts.ringHits.Add(1)
			n++
			continue
		}
		span := l.spanOf(places[n:])
		done, err := l.pinFile(p, places[n:n+span])
		l.counts.diskReads.Add(uint64(done))
		n += done
		if err != nil {
			return n, err
		}
	}
	return len(places), nil
}

// pinRing adds a payload from the ring.
func (l *Log) pinRing(p *Pinned, at Place) bool {
	if at.LSN == 0 {
		return false
	}
	c, ok := l.ring.find(at.LSN + frameHeader)
	if !ok {
		return false
	}
	p.log = l
	if at.Size < copyBelow {
		if !l.copyRing(p.room(int(at.Size)), c) {
			return false
		}
		p.grow(int(at.Size))
		return true
	}
	buffers, blocks, size := len(p.buffers), len(p.blocks), p.size
	for n := int(at.Size); n > 0; {
		c = l.ring.advance(c)
		b := l.ring.retain(c.seq)
		if b == nil {
			l.unpin(p, buffers, blocks, size)
			return false
		}
		end := min(l.ring.size, c.off+n)
		part := b.buf[c.off:end:end]
		if l.ring.hold(b) {
			p.blocks = append(p.blocks, b)
			p.add(part)
		} else {
			buf := l.buffers.take(len(part))
			copy(*buf, part)
			l.ring.unref(b)
			p.pooled = append(p.pooled, buf)
			p.add(*buf)
		}
		c.off += len(part)
		n -= len(part)
	}
	return true
}

// unpin takes back what was added since.
func (l *Log) unpin(p *Pinned, buffers, blocks, size int) {
	for _, b := range p.blocks[blocks:] {
		l.ring.unhold(b)
	}
	clear(p.blocks[blocks:])
	p.blocks, p.buffers, p.size, p.growing = p.blocks[:blocks], p.buffers[:buffers], size, false
}

// spanOf returns how many of the places, at least one, lie so close to each other in one file that they are read at once.
func (l *Log) spanOf(places []Place) int {
	n := 1
	for ; n < len(places); n++ {
		last, next := places[n-1], places[n]
		end := last.Offset + int64(last.Size)
		if next.LSN != 0 && next.End() > l.Written() { // It is in the ring only.
			break
		}
		if next.Segment != last.Segment || next.Offset < end || next.Offset-end > spanGap ||
			next.Offset+int64(next.Size)-places[0].Offset > maxSpan {
			break
		}
	}
	return n
}

// pinFile adds payloads that lie close to each other in one segment, read with one call, and returns how many are good.
func (l *Log) pinFile(p *Pinned, places []Place) (int, error) {
	s, err := p.acquire(l, places[0].Segment)
	if err != nil {
		return 0, err
	}
	defer l.release(s)
	before := int64(frameHeader)
	if s.kind == kindClustered {
		before = 0
	}
	last := places[len(places)-1]
	from := places[0].Offset - before
	if from < dataStart || last.Offset+int64(last.Size) > s.end.Load() {
		return 0, fmt.Errorf("read segment %v at %d: behind its end: %w", s.id, places[0].Offset, ErrUsage)
	}
	p.log = l
	buf := l.buffers.take(int(last.Offset + int64(last.Size) - from))
	kept := false
	defer func() {
		if !kept {
			l.buffers.give(buf)
		}
	}()
	_, err = l.readAt(s, *buf, from)
	if err != nil && !missing(err) {
		return 0, fmt.Errorf("read segment %v: %w", s.id, err)
	}
	for i, at := range places {
		b := (*buf)[at.Offset-before-from:][:int(before)+int(at.Size)]
		if e := l.verify(s, at, b, err != nil); e != nil {
			l.report("quarantine", l.Quarantine(e))
			return i, e
		}
		if at.Size < copyBelow {
			copy(p.room(int(at.Size)), b[before:])
			p.grow(int(at.Size))
			continue
		}
		if !kept {
			kept, p.pooled = true, append(p.pooled, buf)
		}
		p.add(b[before:])
	}
	return len(places), nil
}

// spanIn returns the span that a payload takes in a segment, with its frame's header and padding if it has any.
func spanIn(s *segment, at Place) Span {
	span := Span{Segment: s.id, From: at.Offset, To: at.Offset + int64(at.Size)}
	if s.kind == kindFrames {
		span.From, span.To = span.From-frameHeader, alignUp(span.To, frameAlign)
	}
	return span
}

// verify checks a payload, with its frame's header if it has one, as read from a file.
func (l *Log) verify(s *segment, at Place, b []byte, gone bool) *CorruptError {
	span := spanIn(s, at)
	cause, head := "", (*Header)(nil)
	if _, ok := l.manifest.Load().quarantinedAt(s.id, span.From, span.To); ok {
		cause = "quarantined"
	} else if gone {
		cause = "the file is missing or too short"
	} else if s.kind == kindClustered {
		if batchOK(b) {
			return nil
		}
		cause = "wrong checksum of the batch"
	} else {
		h, v := decodeFrameHead(b, s.seed, s.lsn(span.From), int64(len(b)))
		if v != frameGood || h.length != int(at.Size) {
			cause = "no such frame begins here"
		} else if h.payloadOK(b[frameHeader:]) {
			return nil
		} else {
			copied := h.Header
			cause, head = "wrong checksum of the payload", &copied
		}
	}
	return &CorruptError{File: s.name, Span: span, LSN: at.LSN, Header: head, Cause: cause, Truncated: gone}
}

// ReadHead reads the first bytes of a payload, as many as dst takes, at most all. Of a batch no more than the part that the frame
// protects is checked.
func (l *Log) ReadHead(at Place, dst []byte) (int, error) {
	dst = dst[:min(len(dst), int(at.Size))]
	if at.LSN != 0 {
		if c, ok := l.ring.find(at.LSN + frameHeader); ok && l.copyRing(dst, c) {
			return len(dst), nil
		}
	}
	s, err := l.acquire(at.Segment)
	if err != nil {
		return 0, err
	}
	defer l.release(s)
	return l.readHeadFile(s, at, dst)
}

// readHeadFile is ReadHead from a file.
func (l *Log) readHeadFile(s *segment, at Place, dst []byte) (int, error) {
	span := spanIn(s, at)
	before := int(at.Offset - span.From)
	want := before + max(len(dst), min(batchOutside, int(at.Size)))
	if span.From < dataStart || span.From+int64(want) > s.end.Load() {
		return 0, fmt.Errorf("read segment %v at %d: behind its end: %w", s.id, at.Offset, ErrUsage)
	}
	buf := l.buffers.take(want)
	defer l.buffers.give(buf)
	_, err := l.readAt(s, *buf, span.From)
	if err != nil && !missing(err) {
		return 0, fmt.Errorf("read segment %v: %w", s.id, err)
	}
	_, bad := l.manifest.Load().quarantinedAt(s.id, span.From, span.To)
	bad = bad || err != nil
	if s.kind == kindFrames && !bad {
		h, v := decodeFrameHead(*buf, s.seed, s.lsn(span.From), span.To-span.From)
		bad = v != frameGood || h.length != int(at.Size)
	}
	if bad {
		e := &CorruptError{File: s.name, Span: span, LSN: at.LSN, Cause: "no such frame begins here", Truncated: err != nil}
		l.report("quarantine", l.Quarantine(e))
		return 0, e
	}
	return copy(dst, (*buf)[before:]), nil
}

// copyRing copies bytes of the ring, if all of them are still there.
func (l *Log) copyRing(dst []byte, c cursor) bool {
	for len(dst) > 0 {
		c = l.ring.advance(c)
		b := l.ring.retain(c.seq)
		if b == nil {
			return false
		}
		n := copy(dst, b.buf[c.off:])
		l.ring.unref(b)
		c.off += n
		dst = dst[n:]
	}
	return true
}
