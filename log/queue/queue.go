package queue

import (
	"cmp"
	"slices"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/protocol/batch"
)

// Cut is a truncation: entries at or above Offset that lie before LSN are dead.
type Cut struct {
	LSN    commitlog.LSN
	Offset int64
}

// Span is a range of offsets, both included.
type Span struct{ First, Last int64 }

// Queue is the state of one partition and its entries in memory.
type Queue struct {
	Producers Producers
	Epochs    Epochs
	Active    Active
	Roll      Roll
	asOf      commitlog.LSN // of the newest frame in the state
	start     int64
	end       int64
	bytes     int64 // of the live batches
	runs      runs
	aborted   aborted
	cuts      []Cut  // LSN and Offset rise
	holes     []Span // damaged records, by offset
}

// New returns an empty queue.
func New() Queue { return Queue{Epochs: newEpochs(), Active: Active{FirstTimestamp: -1}} }

// Start returns the log start.
func (q *Queue) Start() int64 { return q.start }

// End returns the offset that follows the last record.
func (q *Queue) End() int64 { return q.end }

// Bytes returns the bytes of the live batches.
func (q *Queue) Bytes() int64 { return q.bytes }

// AsOf returns the LSN of the newest frame that the state holds.
func (q *Queue) AsOf() commitlog.LSN { return q.asOf }

// Holes returns the damaged offsets that are known. Not to be changed.
func (q *Queue) Holes() []Span { return q.holes }

// Cuts returns the truncations that still matter. Not to be changed.
func (q *Queue) Cuts() []Cut { return q.cuts }

// EntriesInMemory counts the entries that are in memory.
func (q *Queue) EntriesInMemory() int { return q.runs.count() }

// note advances asOf and reports whether the frame is new to the state.
func (q *Queue) note(lsn commitlog.LSN) bool {
	if lsn <= q.asOf {
		return false
	}
	q.asOf = lsn
	return true
}

// Note records that a frame without a meaning of its own here (create) was applied.
func (q *Queue) Note(lsn commitlog.LSN) bool { return q.note(lsn) }

// Data applies a batch at its place. marker is what a control batch holds,
// nil for all others. While replaying, a batch that does not continue the
// queue leaves a hole, or cuts the queue if it lies below the end.
func (q *Queue) Data(seg commitlog.SegmentID, e Entry, h *batch.Header, marker *batch.Marker, now int64) {
	if e.LSN <= q.asOf {
		q.runs.add(seg, e)
		return
	}
	switch {
	case e.Base > q.end:
		q.addHole(Span{q.end, e.Base - 1})
	case e.Base < q.end:
		q.cutTail(e.LSN, e.Base, 0)
	}
	q.asOf = e.LSN
	q.runs.add(seg, e)
	q.end = e.Next()
	q.bytes += int64(e.Size)
	q.Active.add(e.Base, e.Last(), e.MaxTimestamp, int64(e.Size), q.Roll)
	q.Epochs.Assign(e.Epoch, e.Base)
	switch {
	case marker != nil:
		if txn, ok := q.Producers.marker(*marker, e.Base, now); ok {
			q.aborted = append(q.aborted, txn)
		}
	case h.HasProducer() && !h.IsControl():
		q.Producers.data(h, now)
	}
}

// Damaged applies a batch of which only the place in the queue is known.
func (q *Queue) Damaged(lsn commitlog.LSN, base int64, count int32, epoch int32) {
	if !q.note(lsn) {
		if q.Live(&Entry{Base: base, LSN: lsn}) {
			q.addHole(Span{base, base + int64(count) - 1})
			q.holes = cutHoles(q.holes, q.start, q.end)
		}
		return
	}
	if base > q.end {
		q.addHole(Span{q.end, base - 1})
	}
	if base < q.end {
		q.cutTail(lsn, base, 0)
	}
	q.addHole(Span{base, base + int64(count) - 1})
	q.end = base + int64(count)
	q.Epochs.Assign(epoch, base)
}

// BeginEpoch applies the begin of a leader epoch at an offset, which is the
// end unless records were lost.
func (q *Queue) BeginEpoch(lsn commitlog.LSN, epoch int32, at int64) {
	if !q.note(lsn) {
		return
	}
	if at > q.end {
		q.addHole(Span{q.end, at - 1})
		q.end = at
	}
	q.Epochs.Assign(epoch, q.end)
}

// MoveStart applies a move of the log start that removes so many bytes. It
// commutes with the frames of appends, so it is applied even if the state
// holds later frames: a replay that meets it again must not call it.
func (q *Queue) MoveStart(lsn commitlog.LSN, start, removed int64) {
	q.asOf = max(q.asOf, lsn)
	if start <= q.start {
		return
	}
	q.start = start
	if q.end < start {
		q.end = start
	}
	q.bytes = max(q.bytes-removed, 0)
	q.Epochs.moveStart(start)
	q.Active.moveStart(start)
	q.aborted.moveStart(start)
	q.holes = cutHoles(q.holes, start, q.end)
}

// Truncate applies a truncation to the end offset, which lies between two
// batches. producers is what was known at that end.
func (q *Queue) Truncate(lsn commitlog.LSN, end, removed int64, producers Producers) {
	if lsn <= q.asOf {
		q.runs.cut(end, lsn)
		return
	}
	q.cutTail(lsn, end, removed)
	q.asOf = lsn
	q.Producers.reset(producers)
}

// cutTail drops what lies at or above end.
func (q *Queue) cutTail(lsn commitlog.LSN, end, removed int64) {
	q.runs.cut(end, lsn)
	q.end = end
	q.start = min(q.start, end)
	q.bytes = max(q.bytes-removed, 0)
	q.Epochs.truncate(end)
	q.Active.truncate(end)
	q.aborted.truncate(end)
	q.holes = cutHoles(q.holes, q.start, end)
	q.addCut(Cut{lsn, end})
}

// addCut keeps the cuts rising: a cut at or below an older one replaces it.
func (q *Queue) addCut(c Cut) {
	n := len(q.cuts)
	for n > 0 && q.cuts[n-1].Offset >= c.Offset {
		n--
	}
	q.cuts = append(q.cuts[:n], c)
}

// ForgetCuts drops the cuts that no remaining segment needs: those whose
// frames all lie before the oldest LSN that is left.
func (q *Queue) ForgetCuts(oldest commitlog.LSN) {
	n := 0
	for n < len(q.cuts) && q.cuts[n].LSN <= oldest {
		n++
	}
	if n > 0 {
		q.cuts = append([]Cut(nil), q.cuts[n:]...)
	}
}

// Live reports whether an entry, wherever it was found, is still part of the
// queue; it may lie below the log start.
func (q *Queue) Live(e *Entry) bool { return Live(q.cuts, e) }

// Live is Queue.Live over a copy of the cuts.
func Live(cuts []Cut, e *Entry) bool {
	for _, c := range cuts {
		if e.LSN < c.LSN && e.Base >= c.Offset {
			return false
		}
	}
	return true
}

// Adopt replaces the state by a newer one that was read from disk; entries in
// memory stay. An older state changes nothing.
func (q *Queue) Adopt(s *State) {
	n := &s.Queue
	if n.asOf < q.asOf {
		return
	}
	older := q.aborted
	older.truncate(s.AbortedFrom)
	n.runs, n.aborted, n.Roll = q.runs, append(older, n.aborted...), q.Roll
	*q = *n
}

// Recovered ends a replay: entries that cuts have made dead leave memory, and
// so does what lies below the log start.
func (q *Queue) Recovered() {
	for _, c := range q.cuts {
		q.runs.cut(c.Offset, c.LSN)
	}
	q.aborted.moveStart(q.start)
	q.holes = cutHoles(q.holes, q.start, q.end)
}

// AddHole marks offsets as damaged; it reports whether that was news.
func (q *Queue) AddHole(s Span) bool {
	if h, ok := q.HoleAt(s.First); ok && h.Last >= s.Last {
		return false
	}
	q.addHole(s)
	return true
}

func (q *Queue) addHole(s Span) {
	i, _ := slices.BinarySearchFunc(q.holes, s, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	q.holes = slices.Insert(q.holes, i, s)
	merged := q.holes[:1]
	for _, h := range q.holes[1:] {
		if last := &merged[len(merged)-1]; h.First <= last.Last+1 {
			last.Last = max(last.Last, h.Last)
		} else {
			merged = append(merged, h)
		}
	}
	q.holes = merged
}

// cutHoles keeps what of the holes lies in [start, end).
func cutHoles(holes []Span, start, end int64) []Span {
	if len(holes) == 0 {
		return nil
	}
	kept := holes[:0]
	for _, h := range holes {
		h.First, h.Last = max(h.First, start), min(h.Last, end-1)
		if h.First <= h.Last {
			kept = append(kept, h)
		}
	}
	return kept
}

// HoleAt returns the hole that contains the offset.
func (q *Queue) HoleAt(offset int64) (Span, bool) {
	for _, h := range q.holes {
		if h.First <= offset && offset <= h.Last {
			return h, true
		}
	}
	return Span{}, false
}

// FirstUnstable returns the lowest offset of a transaction that is open or
// whose marker is not below the high watermark.
func (q *Queue) FirstUnstable(highWatermark int64) (int64, bool) {
	first, ok := q.Producers.firstUnstable(highWatermark)
	return max(first, q.start), ok
}

// Settle forgets what was kept of ended transactions for the sake of the high watermark.
func (q *Queue) Settle(highWatermark int64) { q.Producers.settle(highWatermark) }

// Aborted returns the aborted transactions that touch [from, to), by first offset.
func (q *Queue) Aborted(from, to int64) []AbortedTxn { return q.aborted.between(from, to) }

// MemoryBase returns the offset of the first entry in memory, End if none is.
func (q *Queue) MemoryBase() int64 {
	if len(q.runs) == 0 {
		return q.end
	}
	return q.runs[0].Entries[0].Base
}

// Each calls fn for the entries in memory from the one that reaches beyond
// offset on, until fn returns false.
func (q *Queue) Each(offset int64, fn func(seg commitlog.SegmentID, e *Entry) bool) {
	for i := range q.runs {
		r := &q.runs[i]
		if r.Entries[len(r.Entries)-1].Next() <= offset {
			continue
		}
		for j := searchEntries(r.Entries, offset); j < len(r.Entries); j++ {
			if !fn(r.Segment, &r.Entries[j]) {
				return
			}
		}
	}
}

// InSegment returns the entries in memory of one segment. Appends may follow
// in later segments only; the slice is not to be changed.
func (q *Queue) InSegment(seg commitlog.SegmentID) []Entry {
	for i := range q.runs {
		if q.runs[i].Segment == seg {
			return q.runs[i].Entries
		}
	}
	return nil
}

// Load adds entries that a file holds of an unindexed segment, in order.
func (q *Queue) Load(seg commitlog.SegmentID, es []Entry) {
	for _, e := range es {
		q.runs.add(seg, e)
	}
}

// Runs returns the entries in memory by segment. Not to be changed.
func (q *Queue) Runs() []Run { return q.runs }

// Drop forgets the entries of segments up to seg, whose index is in force.
func (q *Queue) Drop(seg commitlog.SegmentID) { q.runs.drop(seg) }
