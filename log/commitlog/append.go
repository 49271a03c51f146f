package commitlog

import (
	"fmt"
)

// Place appends a frame whose payload is the pieces one after the other, and returns where it lies. The payload of a data frame is one
// record batch with a right checksum. The payload is copied once, outside the log's lock; when Place returns it may be reused.
// After it the caller must Commit or Kick. Frames are in the log in the order of the calls, so who orders frames of one partition
// holds the partition's lock.
func (r *Reservation) Place(h Header, tag *Tag, payload ...[]byte) (Place, error) {
	f := frameHead{Header: h}
	for _, p := range payload {
		f.length += len(p)
	}
	size := f.size()
	switch {
	case r.frames == 0 || size > r.bytes:
		return Place{}, fmt.Errorf("place frame of %d bytes: more than was reserved: %w", f.length, ErrUsage)
	case !h.Kind.known() || h.Kind == kindEnd || h.Kind == Data && f.length < batchHead:
		return Place{}, fmt.Errorf("place frame of %d bytes: %v: %w", f.length, h.Kind, ErrUsage)
	}
	if h.Kind != Data {
		f.payloadCRC = payloadChecksum(payload)
	}
	l := r.log
	l.mu.Lock()
	if err := l.poisoned; err != nil {
		l.mu.Unlock()
		return Place{}, err
	}
	for l.cur == nil || !l.fitsLocked(size, 1) {
		l.rollLocked()
	}
	g, at := l.takeLocked(size, r.durability)
	seg, pos := g.seg, g.to-size
	f.lsn, f.durable = seg.lsn(pos), l.durableLSN
	if tag != nil {
		g.touch(tag, h.BaseOffset+int64(h.OffsetCount))
	}
	g.copies.Add(1)
	r.bytes -= size
	r.frames--
	l.reservedBytes -= size
	l.reservedFrames--
	if r.frames == 0 {
		l.giveBackLocked(r)
	}
	l.mu.Unlock()

	l.counts.frames.Add(1)
	at = l.ring.put(l.ring.putHeader(at, &f, seg.seed, payload), payload...)
	l.ring.put(at, l.zero[:int(size)-frameHeader-f.length])
	g.copyDone()
	return Place{LSN: f.lsn, Segment: seg.id, Offset: pos + frameHeader, Size: int32(f.length)}, nil
}

// takeLocked gives the next bytes of the stream to a frame. REQUIRES: mu held; they fit into the current segment.
func (l *Log) takeLocked(size int64, d Durability) (*group, cursor) {
	g := l.openGroup
	if g == nil {
		g = l.newGroupLocked()
	}
	at := l.at
	end := cursor{seq: at.seq, off: at.off}
	for left := size; ; {
		if end.off == l.ring.size {
			end = l.ring.begin(l.cur.lsn(l.pos + size - left))
			if left == size {
				at = end
			}
		}
		n := min(left, int64(l.ring.size-end.off))
		end.off += int(n)
		if left -= n; left == 0 {
			break
		}
	}
	l.at = end
	l.pos += size
	g.to = l.pos
	g.frames++
	g.sync = g.sync || d == Synced
	g.async = g.async || d == Written
	l.cur.frames++
	l.cur.end.Store(l.pos)
	l.unwritten += size
	l.next.Store(uint64(l.cur.lsn(l.pos)))
	return g, at
}

// nextLocked returns the end of what is placed. REQUIRES: mu held.
func (l *Log) nextLocked() LSN { return LSN(l.next.Load()) }

// rollLocked goes on in the next segment, which is ready: reservations saw to that. REQUIRES: mu held.
func (l *Log) rollLocked() {
	if l.cur != nil {
		l.endSegmentLocked()
	}
	l.cur = l.ready[0]
	l.ready = l.ready[:copy(l.ready, l.ready[1:])]
	l.pos = dataStart
	l.at = cursor{}
	l.next.Store(uint64(l.cur.lsn(l.pos)))
	l.wakeKeeper()
}

// endSegmentLocked closes the current segment with its last frame. REQUIRES: mu held, cur set.
func (l *Log) endSegmentLocked() {
	f := frameHead{Header: Header{Kind: kindEnd}, durable: l.durableLSN}
	f.lsn = l.cur.lsn(l.pos)
	frames := l.cur.frames
	g, at := l.takeLocked(frameHeader, Synced)
	l.cur.frames = frames // It counts those that are handed out.
	l.ring.putHeader(at, &f, l.cur.seed, nil)
	g.last = true
	g.waste = int64(l.ring.size - l.at.off)
	l.unwritten += g.waste
	l.closed = append(l.closed, g)
	l.openGroup = nil
	l.unindexed++
	l.cur = nil
}
