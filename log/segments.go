package log

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mainstem/mainstem/log/commitlog"
)

// segment is a sealed segment of the log as the store sees it.
type segment struct {
	id         commitlog.SegmentID
	base, end  commitlog.LSN
	file       string
	bytes      int64 // of the frames
	index      atomic.Pointer[string]
	live       atomic.Int64 // payload bytes that were live when last counted
	indexBytes atomic.Int64
	dropped    atomic.Bool

	// The collector's notes: a partition that still had live data here.
	witness atomic.Pointer[witness]
}

// witness names data that was live in a segment when it was counted. While it
// is, the segment cannot be dead as a whole.
type witness struct {
	id  PartitionID
	row rowRange
}

// rowRange is what a partition has in a segment.
type rowRange struct{ first, last int64 }

func newSegment(i commitlog.SegmentInfo) *segment {
	s := &segment{id: i.ID, base: i.Base, end: i.End, file: i.File, bytes: i.EndOffset}
	if i.Index != "" {
		s.index.Store(&i.Index)
	}
	return s
}

// indexed reports whether the segment has an index in force.
func (s *segment) indexed() bool { return s.index.Load() != nil }

// segments are the sealed segments in the order of the log. Readers take an
// immutable list; changes replace it.
type segments struct {
	list atomic.Pointer[[]*segment]
	mu   sync.Mutex // for changes
}

// all returns the list, which is never changed.
func (s *segments) all() []*segment {
	if l := s.list.Load(); l != nil {
		return *l
	}
	return nil
}

// add appends a segment that was sealed; one that is there already is returned.
func (s *segments) add(i commitlog.SegmentInfo) *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.all() {
		if seg.id == i.ID {
			return seg
		}
	}
	seg := newSegment(i)
	list := append(append([]*segment(nil), s.all()...), seg)
	s.list.Store(&list)
	return seg
}

// remove takes dropped segments out.
func (s *segments) remove(gone map[commitlog.SegmentID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*segment
	for _, seg := range s.all() {
		if !gone[seg.id] {
			list = append(list, seg)
		}
	}
	s.list.Store(&list)
}

// restore puts segments back that could not be dropped after all.
func (s *segments) restore(back []*segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append(append([]*segment(nil), s.all()...), back...)
	slices.SortFunc(list, func(a, b *segment) int {
		if a.base < b.base {
			return -1
		}
		return 1
	})
	for _, seg := range back {
		seg.dropped.Store(false)
	}
	s.list.Store(&list)
}
