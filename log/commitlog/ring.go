package commitlog

import (
	"sync"
	"sync/atomic"
)

// ring holds the newest bytes of the stream in blocks of one size. A block stays until as many newer ones were begun as the ring has
// slots; bytes that are not written to the file yet are never overtaken, since Reserve bounds them. Readers find a block without a
// lock and hold it by a reference: a block that leaves the ring while it is held is replaced by a spare one and comes back to the
// spare ones at its last release. How many blocks readers may hold for long is bounded; beyond it they copy.
type ring struct {
	slots     []atomic.Pointer[block] // block number n is in slot n mod len.
	head      atomic.Uint64           // number of the newest block; the first is 1.
	size      int                     // bytes of a block.
	held      atomic.Int32            // blocks that readers hold.
	holdLimit int32

	mu    sync.Mutex // a leaf.
	spare []*block
}

// block is a piece of the ring. Whoever holds a reference may read buf where bytes have been placed and published.
type block struct {
	seq   atomic.Uint64
	base  atomic.Uint64 // LSN of buf[0].
	refs  atomic.Int32  // one of the ring while it is in a slot, one of each reader.
	holds atomic.Int32  // readers that count in ring.held.
	buf   []byte
	edge  [frameHeader]byte // scratch for the one frame header that crosses the end of this block.
}

// cursor is a place in the ring.
type cursor struct {
	seq uint64
	off int
}

func newRing(size, slots int) *ring {
	return &ring{slots: make([]atomic.Pointer[block], slots), size: size, holdLimit: int32(max(slots/2, 1))}
}

// begin puts a new block at the head, whose first byte has the given LSN. REQUIRES: Log.mu held; the oldest block is written.
func (r *ring) begin(base LSN) cursor {
	seq := r.head.Load() + 1
	slot := &r.slots[seq%uint64(len(r.slots))]
	if old := slot.Load(); old != nil {
		r.unref(old)
	}
	b := r.takeSpare()
	b.seq.Store(seq) // Before base: find reads them in the other order.
	b.base.Store(uint64(base))
	b.refs.Store(1)
	slot.Store(b)
	r.head.Store(seq)
	return cursor{seq: seq}
}

func (r *ring) takeSpare() *block {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		b := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return b
	}
	return &block{buf: make([]byte, r.size)}
}

// unref gives up a reference to a block.
func (r *ring) unref(b *block) {
	if b.refs.Add(-1) == 0 {
		r.mu.Lock()
		r.spare = append(r.spare, b)
		r.mu.Unlock()
	}
}

// retain takes a reference to the block of that number, nil if it has left the ring.
func (r *ring) retain(seq uint64) *block {
	b := r.slots[seq%uint64(len(r.slots))].Load()
	if b == nil {
		return nil
	}
	for {
		n := b.refs.Load()
		if n == 0 {
			return nil
		}
		if b.refs.CompareAndSwap(n, n+1) {
			break
		}
	}
	if b.seq.Load() != seq {
		r.unref(b)
		return nil
	}
	return b
}

// at returns the block in use of that number. REQUIRES: it holds bytes that are not written yet, so that it cannot leave.
func (r *ring) at(seq uint64) *block { return r.slots[seq%uint64(len(r.slots))].Load() }

// find returns the place of an LSN, if its block is still there.
func (r *ring) find(lsn LSN) (cursor, bool) {
	head := r.head.Load()
	lo, hi := uint64(1), head+1 // The block is in [lo-1, hi).
	if n := uint64(len(r.slots)); head > n {
		lo = head - n + 1
	}
	var at cursor
	for lo < hi {
		mid := lo + (hi-lo)/2
		b := r.at(mid)
		base, seq := b.base.Load(), b.seq.Load()
		switch {
		case seq != mid: // It has left since head was read: so have all before it.
			lo, at = mid+1, cursor{}
		case base <= uint64(lsn):
			lo, at = mid+1, cursor{seq: mid, off: int(uint64(lsn) - base)}
		default:
			hi = mid
		}
	}
	return at, at.seq != 0 && at.off < r.size
}

// advance moves a cursor that stands at the end of its block to the next one.
func (r *ring) advance(c cursor) cursor {
	if c.off == r.size {
		return cursor{seq: c.seq + 1}
	}
	return c
}

// advanceOrBegin returns where the byte of an LSN goes when c is where the byte before it went: c, or a new block. A cursor without a
// block begins one. REQUIRES: as for begin.
func (r *ring) advanceOrBegin(c cursor, lsn LSN) cursor {
	if c.seq == 0 || c.off == r.size {
		return r.begin(lsn)
	}
	return c
}

// put copies pieces to a place that was taken for them, and returns the place behind. REQUIRES: as for at.
func (r *ring) put(c cursor, pieces ...[]byte) cursor {
	for _, p := range pieces {
		for len(p) > 0 {
			c = r.advance(c)
			n := copy(r.at(c.seq).buf[c.off:], p)
			c.off += n
			p = p[n:]
		}
	}
	return c
}

// putHeader encodes a frame's header at a place, without taking memory.
func (r *ring) putHeader(c cursor, h *frameHead, seed uint32, payload [][]byte) cursor {
	c = r.advance(c)
	b := r.at(c.seq)
	if r.size-c.off >= frameHeader {
		h.encode(b.buf[c.off:], seed, payload)
		c.off += frameHeader
		return c
	}
	h.encode(b.edge[:], seed, payload)
	return r.put(c, b.edge[:])
}

// slices appends the memory of n bytes at a place to out. REQUIRES: as for at.
func (r *ring) slices(out [][]byte, c cursor, n int64) [][]byte {
	for n > 0 {
		c = r.advance(c)
		b := r.at(c.seq).buf[c.off:]
		b = b[:min(n, int64(len(b)))]
		out = append(out, b)
		c.off += len(b)
		n -= int64(len(b))
	}
	return out
}
