package commitlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mainstem/mainstem/log/vfs"
)

// segment is a file of the log while it is open. It lives as long as anyone holds a reference: the set of live segments has one, each
// reader has one while it reads.
type segment struct {
	segmentHead
	name string // within the directory.
	seed uint32 // see saltSeed.

	refs atomic.Int32
	file atomic.Pointer[fileHandle]
	end  atomic.Int64 // position behind the last frame that is placed.

	// Guarded by Log.mu.
	frames    int
	sealed    bool  // listed as sealed in the manifest.
	trimmedTo int64 // size of the file if it was cut off behind the end, else 0.
	index     string
}

// fileHandle boxes an open file.
type fileHandle struct{ vfs.File }

// newSegment makes the segment of a manifest row. The caller has the first reference.
func newSegment(r *segmentRow) *segment {
	s := &segment{segmentHead: r.segmentHead, name: segmentName(r.id), seed: saltSeed(r.salt), frames: r.frames, sealed: r.sealed, index: r.index}
	s.end.Store(r.end)
	s.refs.Store(1)
	return s
}

// lsn returns the LSN of a position in the file.
func (s *segment) lsn(pos int64) LSN { return s.base + LSN(pos) }

// retain takes a reference unless the last one is gone.
func (s *segment) retain() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// space returns the size of the file.
func (s *segment) space() int64 {
	if s.trimmedTo != 0 {
		return s.trimmedTo
	}
	return s.capacity
}

// row describes the segment as it is now.
func (s *segment) row() segmentRow {
	return segmentRow{segmentHead: s.segmentHead, sealed: s.sealed, end: s.end.Load(), frames: s.frames, index: s.index}
}

// handle returns the file. That of a sealed segment is opened for reading at the first use, and its header looked at; it may be closed
// again at any time, see files. Who reads such a one uses readAt.
func (l *Log) handle(s *segment) (vfs.File, error) {
	if h := s.file.Load(); h != nil {
		return h.File, nil
	}
	f, err := l.fs.Open(l.path(s.name))
	if err == nil {
		if err = l.checkHeader(s, f); err != nil {
			_ = f.Close() // The first error is the one to tell.
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	if !s.file.CompareAndSwap(nil, &fileHandle{f}) {
		_ = f.Close() // Another reader was faster; ours has done nothing.
		return l.handle(s)
	}
	l.files.opened(s)
	return f, nil
}

// readAt reads a part of a segment's file.
func (l *Log) readAt(s *segment, b []byte, off int64) (n int, err error) {
	for {
		f, err := l.handle(s)
		if err != nil {
			return 0, err
		}
		if n, err = readFull(f, b, off); !errors.Is(err, fs.ErrClosed) { // Else it was closed to make room for others.
			return n, err
		}
	}
}

// segmentReader reads a segment by readAt.
type segmentReader struct {
	l *Log
	s *segment
}

// ReadAt implements io.ReaderAt.
func (r segmentReader) ReadAt(b []byte, off int64) (int, error) { return r.l.readAt(r.s, b, off) }

// maxOpenSealed is how many files of sealed segments are open at a time.
const maxOpenSealed = 128

// openFiles bounds the open files of sealed segments: of too many the one that was opened first is closed.
type openFiles struct {
	mu   sync.Mutex // a leaf.
	list []*segment // in the order in which they were opened; some may be closed since.
}

// opened counts a sealed segment's file. One that is counted twice is closed early, and opened again when it is needed.
func (o *openFiles) opened(s *segment) {
	o.mu.Lock()
	o.list = append(o.list, s)
	var victim *segment
	if len(o.list) > maxOpenSealed {
		victim = o.list[0]
		o.list = o.list[:copy(o.list, o.list[1:])]
	}
	o.mu.Unlock()
	if victim != nil {
		_ = victim.closeFile() // It was synced when it was sealed, and only read since.
	}
}

// checkHeader compares a file's header with the manifest. The manifest has all that is needed, so a damaged header is only reported;
// one of a newer version is an error.
func (l *Log) checkHeader(s *segment, f vfs.File) error {
	b := make([]byte, segmentHeader)
	if _, err := readFull(f, b, 0); err != nil && !missing(err) {
		return err
	}
	h, err := decodeSegmentHead(b)
	if errors.Is(err, ErrFormatTooNew) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err == nil && h == s.segmentHead {
		return nil
	}
	e := &CorruptError{File: s.name, Span: Span{Segment: s.id, To: segmentHeader}, LSN: s.base, Cause: "the header differs from the manifest"}
	l.report("quarantine", l.Quarantine(e))
	return nil
}

// closeFile closes the file, if it is open. REQUIRES: it is sealed, or no one else uses it.
func (s *segment) closeFile() error {
	if h := s.file.Swap(nil); h != nil {
		return h.Close()
	}
	return nil
}

// segmentSet is the set of live segments at one moment. It is never changed.
type segmentSet struct {
	list []*segment // by id.
}

func (s *segmentSet) find(id SegmentID) *segment {
	i, ok := slices.BinarySearchFunc(s.list, id, func(s *segment, id SegmentID) int { return cmp.Compare(s.id, id) })
	if !ok {
		return nil
	}
	return s.list[i]
}

// with returns the set with segments added and others taken out.
func (s *segmentSet) with(add []*segment, without []SegmentID) *segmentSet {
	out := &segmentSet{list: make([]*segment, 0, len(s.list)+len(add))}
	for _, seg := range s.list {
		if !slices.Contains(without, seg.id) {
			out.list = append(out.list, seg)
		}
	}
	out.list = append(out.list, add...)
	slices.SortFunc(out.list, func(a, b *segment) int { return cmp.Compare(a.id, b.id) })
	return out
}

// acquire returns a live segment with a reference, which release gives back.
func (l *Log) acquire(id SegmentID) (*segment, error) {
	s := l.set.Load().find(id)
	if s == nil || !s.retain() {
		return nil, fmt.Errorf("read segment %v: %w", id, ErrSegmentGone)
	}
	return s, nil
}

// release gives a reference back. After the last one the file is recycled or removed in the background.
func (l *Log) release(s *segment) {
	if s.refs.Add(-1) == 0 {
		l.mu.Lock()
		l.unreferenced = append(l.unreferenced, s)
		l.mu.Unlock()
		l.wakeKeeper()
	}
}

// readFull reads all of b at a position. A file that ends before is io.ErrUnexpectedEOF.
func readFull(f io.ReaderAt, b []byte, off int64) (int, error) {
	for n := 0; ; {
		if n == len(b) {
			return n, nil
		}
		m, err := f.ReadAt(b[n:], off+int64(n))
		n += m
		if n == len(b) {
			return n, nil
		}
		if errors.Is(err, io.EOF) || err == nil && m == 0 {
			return n, io.ErrUnexpectedEOF
		}
		if err != nil {
			return n, err
		}
	}
}

// missing reports whether a read failed since the file, or its end, is not there.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF)
}
