package log

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// maxReadBatches bounds the batches of one read.
const maxReadBatches = 4096

// maxAttempts bounds how often a read is planned anew because the segments
// that it was planned on went away.
const maxAttempts = 8

// batchesPool holds Batches between reads, for their slices.
type batchesPool struct{ pool sync.Pool }

func (b *batchesPool) get() *Batches {
	if r, ok := b.pool.Get().(*Batches); ok {
		return r
	}
	return &Batches{}
}

// Batches is the result of a read. Its bytes stay valid until Release, and
// their segments stay on disk. Of what Stream returned see More.
type Batches struct {
	store  *Store
	part   *Partition
	pinned commitlog.Pinned
	places []commitlog.Place
	ends   []int64 // offset behind each place
	next   int64
	size   int
	done   int // places of which Buffers or More has returned the bytes
	rest   int // bytes of the places that are left for More
}

// Buffers returns the bytes, whole batches back to back.
func (b *Batches) Buffers() [][]byte {
	if b.size == 0 {
		return nil
	}
	return b.pinned.Buffers()
}

// Size returns the number of bytes.
func (b *Batches) Size() int { return b.size }

// NextOffset returns the offset after the last batch.
func (b *Batches) NextOffset() int64 { return b.next }

// Release gives the memory and the pinned segments back. The Batches may not
// be used afterwards.
func (b *Batches) Release() {
	b.pinned.Release()
	b.reset(0)
	b.part = nil
	b.store.batches.pool.Put(b)
}

func (b *Batches) reset(offset int64) {
	b.places, b.ends, b.size, b.next = b.places[:0], b.ends[:0], 0, offset
	b.done, b.rest = 0, 0
}

// plan is what a read asks for and how far it is planned.
type plan struct {
	*Batches
	offset     int64 // of the read
	upto       int64 // no batch reaches beyond it
	maxBytes   int
	atLeastOne bool
	cuts       []queue.Cut
	full       bool // nothing more fits
}

// add plans a batch; it returns false when the plan is at its end.
func (r *plan) add(seg commitlog.SegmentID, e *queue.Entry) bool {
	if e.Base > r.next || e.Next() > r.upto || len(r.places) == maxReadBatches {
		r.full = true
		return false
	}
	if r.size+int(e.Size) > r.maxBytes && (len(r.places) > 0 || !r.atLeastOne) {
		r.full = true
		return false
	}
	r.places = append(r.places, commitlog.Place{LSN: e.LSN, Segment: seg, Offset: int64(e.Pos), Size: e.Size})
	r.ends = append(r.ends, e.Next())
	r.next = e.Next()
	r.size += int(e.Size)
	return r.size < r.maxBytes
}

// Read returns whole batches from the one that contains offset on, none that
// reaches beyond upto, of at most maxBytes; with atLeastOne the first batch is
// returned even if larger. offset == End gives empty Batches.
func (p *Partition) Read(offset, upto int64, maxBytes int, atLeastOne bool) (*Batches, error) {
	return p.read(plan{offset: offset, upto: upto, maxBytes: maxBytes, atLeastOne: atLeastOne}, math.MaxInt)
}

// Stream is Read, but gets only the first batches now, as many as go into a
// number of bytes, at least one unless that is zero; More gets the rest.
func (p *Partition) Stream(offset, upto int64, maxBytes int, atLeastOne bool, now int) (*Batches, error) {
	return p.read(plan{offset: offset, upto: upto, maxBytes: maxBytes, atLeastOne: atLeastOne}, now)
}

// read plans r and gets its first batches.
func (p *Partition) read(r plan, now int) (*Batches, error) {
	b := p.store.batches.get()
	b.store, b.part = p.store, p
	r.Batches = b
	for attempt := 0; ; attempt++ {
		b.reset(r.offset)
		try := r
		err := p.plan(&try)
		if err == nil {
			err = p.pin(b, now)
		}
		if err == nil {
			return b, nil
		}
		if errors.Is(err, commitlog.ErrSegmentGone) && attempt < maxAttempts {
			b.pinned.Release()
			continue
		}
		b.Release()
		return nil, err
	}
}

// plan finds the batches of a read, in files' indexes first if the offset is
// below what memory holds.
func (p *Partition) plan(r *plan) error {
	memory, err := p.beginPlan(r)
	if err != nil || r.offset >= r.upto || r.full {
		return err
	}
	if r.offset < memory {
		if err := p.planCold(r); err != nil {
			return err
		}
		if !r.full && r.size < r.maxBytes {
			p.mu.Lock()
			p.q.Each(r.next, r.add)
			p.mu.Unlock()
		}
	}
	if len(r.places) == 0 {
		return p.missing(r)
	}
	return nil
}

// beginPlan checks the bounds and plans what is in memory, if that begins at
// or below the offset. It returns where memory begins.
func (p *Partition) beginPlan(r *plan) (memory int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.q
	switch {
	case p.deleted != 0:
		return 0, ErrDeleted
	case r.offset < q.Start() || r.offset > q.End():
		return 0, fmt.Errorf("read %v at %d, log is %d to %d: %w", p.id, r.offset, q.Start(), q.End(), ErrOffsetOutOfRange)
	}
	for _, h := range q.Holes() {
		if h.First <= r.offset && r.offset <= h.Last {
			return 0, &StorageError{ID: p.id, First: h.First, Last: h.Last}
		}
		if h.First > r.offset {
			r.upto = min(r.upto, h.First)
			break
		}
	}
	r.upto = min(r.upto, q.End())
	memory = q.MemoryBase()
	if r.offset >= r.upto {
		return memory, nil
	}
	if r.offset >= memory {
		q.Each(r.offset, r.add)
		return memory, nil
	}
	r.cuts = q.Cuts()
	return memory, nil
}

// planCold plans what the indexes of sealed segments hold.
func (p *Partition) planCold(r *plan) error {
	rows, err := p.store.rows(p.id)
	if err != nil {
		return p.coldError(r.offset, err)
	}
	for i := range rows {
		row := &rows[i]
		if row.row.Last < r.next || row.row.First > r.next {
			continue // What a truncation left dead may stand out of order.
		}
		more := true
		err := p.store.scanRow(row, r.next, minTime, func(e *queue.Entry) bool {
			if e.Next() > r.next && queue.Live(r.cuts, e) {
				more = r.add(row.seg.id, e)
			}
			return more
		})
		if err != nil {
			return p.coldError(r.offset, err)
		}
		if !more {
			r.full = true
			return nil
		}
	}
	return nil
}

// coldError tells an index that cannot be read from a segment that went.
func (p *Partition) coldError(offset int64, err error) error {
	if errors.Is(err, commitlog.ErrSegmentGone) {
		return err
	}
	return &StorageError{ID: p.id, First: offset, Last: offset, Cause: err}
}

// missing tells why nothing was planned: the first batch is larger than
// allowed or reaches beyond upto, or there is a hole where a record was lost.
func (p *Partition) missing(r *plan) error {
	first, found, err := p.firstFrom(r.offset)
	if err != nil {
		return p.coldError(r.offset, err)
	}
	if found && first.Base <= r.offset {
		if first.Next() > r.upto || int(first.Size) > r.maxBytes && !r.atLeastOne {
			return nil
		}
		return commitlog.ErrSegmentGone // It moved from memory to an index meanwhile: plan anew.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.offset < p.q.Start() {
		return fmt.Errorf("read %v at %d, log begins at %d: %w", p.id, r.offset, p.q.Start(), ErrOffsetOutOfRange)
	}
	last := p.q.End() - 1
	if found {
		last = first.Base - 1
	}
	hole := queue.Span{First: r.offset, Last: last}
	p.q.AddHole(hole)
	return &StorageError{ID: p.id, First: hole.First, Last: hole.Last}
}

// pin gets the planned bytes, or the first of them if that is all that is wanted
// now. What is damaged becomes a hole; what lies before it is returned.
func (p *Partition) pin(b *Batches, now int) error {
	if len(b.places) == 0 {
		return nil
	}
	if b.done = len(b.places); now < b.size {
		b.done, b.rest = 0, b.size
		if now > 0 {
			first, size := b.fit(0, now)
			b.done, b.rest = first, b.size-size
		}
		if err := p.store.log.Hold(&b.pinned, b.places[b.done:]); err != nil {
			return err
		}
	}
	n, err := p.store.log.Pin(&b.pinned, b.places[:b.done]) // None if nothing is wanted now.
	if n == 0 && err != nil {
		return p.pinFailed(b.ends[0], err)
	}
	if n < b.done {
		b.done, b.rest, b.size = n, 0, b.pinned.Size()
		b.next = b.ends[n-1]
	}
	return nil
}

// pinFailed reports why the first batch of a read, which ends before end,
// could not be had.
func (p *Partition) pinFailed(end int64, err error) error {
	if errors.Is(err, commitlog.ErrSegmentGone) || errors.Is(err, commitlog.ErrClosed) {
		return err
	}
	e, found, ferr := p.firstFrom(end - 1)
	first := end - 1
	if ferr == nil && found {
		first = e.Base
	}
	var damage *commitlog.CorruptError
	if errors.As(err, &damage) {
		p.mu.Lock()
		news := p.q.AddHole(queue.Span{First: first, Last: end - 1})
		p.mu.Unlock()
		if news && damage.Header == nil { // Then the log could not tell whose it is.
			p.store.report(CorruptSpan{
				ID: p.id, Topic: p.topic, First: first, Last: end - 1,
				File: damage.File, Pos: damage.From, Size: damage.To - damage.From, Reason: damage.Cause,
			})
		}
	}
	return &StorageError{ID: p.id, First: first, Last: end - 1, Cause: err}
}

// Available returns the bytes Read would find from offset up to upto, at
// most limit, without reading. Where it would have to read to know, it returns
// the most that there may be; where Read would fail, it returns limit, so that
// nobody waits.
func (p *Partition) Available(offset, upto int64, limit int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.q
	upto = min(upto, q.End())
	if offset < q.Start() || offset > q.End() || p.deleted != 0 {
		return limit
	}
	if _, hole := q.HoleAt(offset); hole {
		return limit
	}
	if offset >= upto {
		return 0
	}
	if offset < q.MemoryBase() {
		return int(min(int64(limit), q.Bytes()))
	}
	size := 0
	q.Each(offset, func(_ commitlog.SegmentID, e *queue.Entry) bool {
		if e.Next() > upto {
			return false
		}
		size += int(e.Size)
		return size < limit
	})
	return min(size, limit)
}
