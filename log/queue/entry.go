package queue

import (
	"sort"

	"github.com/mainstem/mainstem/log/commitlog"
)

// Entry says where one batch of the queue lies in the log.
type Entry struct {
	Base         int64         // offset of the first record
	LSN          commitlog.LSN // of the frame
	MaxTimestamp int64
	Pos          uint32 // of the batch in its segment's file
	Size         int32  // bytes of the batch
	Count        int32  // offsets that the batch covers
	Epoch        int32  // leader epoch
}

// Last returns the offset of the last record.
func (e *Entry) Last() int64 { return e.Base + int64(e.Count) - 1 }

// Next returns the offset that follows the batch.
func (e *Entry) Next() int64 { return e.Base + int64(e.Count) }

// Run is a queue's entries in one segment, by offset.
type Run struct {
	Segment commitlog.SegmentID
	Entries []Entry
}

// runs are the entries that are in memory: those of segments without an index.
type runs []Run

// add appends an entry.
func (r *runs) add(seg commitlog.SegmentID, e Entry) {
	if n := len(*r); n > 0 && (*r)[n-1].Segment == seg {
		last := &(*r)[n-1]
		last.Entries = append(last.Entries, e)
		return
	}
	*r = append(*r, Run{Segment: seg, Entries: append(make([]Entry, 0, 1), e)})
}

// cut removes the entries at or above offset whose LSN is below lsn.
func (r *runs) cut(offset int64, lsn commitlog.LSN) {
	var kept runs
	for _, run := range *r {
		run.Entries = cutEntries(run.Entries, offset, lsn)
		if len(run.Entries) > 0 {
			kept = append(kept, run)
		}
	}
	*r = kept
}

// cutEntries is cut on the entries of one segment.
func cutEntries(es []Entry, offset int64, lsn commitlog.LSN) []Entry {
	n := 0
	for n < len(es) && (es[n].LSN >= lsn || es[n].Base < offset) {
		n++
	}
	if n == len(es) {
		return es
	}
	kept := append([]Entry(nil), es[:n]...) // A reader may hold the old ones.
	for _, e := range es[n:] {
		if e.LSN < lsn && e.Base >= offset {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// drop removes the entries of segments up to seg.
func (r *runs) drop(seg commitlog.SegmentID) {
	n := 0
	for n < len(*r) && (*r)[n].Segment <= seg {
		n++
	}
	if n == 0 {
		return
	}
	if n == len(*r) {
		*r = nil
		return
	}
	*r = append(runs(nil), (*r)[n:]...)
}

// count returns the number of entries.
func (r runs) count() int {
	n := 0
	for i := range r {
		n += len(r[i].Entries)
	}
	return n
}

// searchEntries returns the index of the first entry that reaches beyond offset.
func searchEntries(es []Entry, offset int64) int {
	return sort.Search(len(es), func(i int) bool { return es[i].Next() > offset })
}
