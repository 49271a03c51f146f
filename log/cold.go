package log

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
	"github.com/mainstem/mainstem/log/vfs"
)

// maxOpenIndexes bounds the index files that are kept open.
const maxOpenIndexes = 256

// indexCache keeps index files open, the least recently used go first.
type indexCache struct {
	fs  vfs.FS
	dir string

	mu   sync.Mutex
	open map[commitlog.SegmentID]*openIndex
	used *list.List // of *openIndex, the most recently used in front
}

// openIndex is an index file and how many use it now.
type openIndex struct {
	*queue.Index
	seg     commitlog.SegmentID
	refs    int
	dropped bool // closed by the last that releases it
	place   *list.Element
}

func newIndexCache(fs vfs.FS, dir string) *indexCache {
	return &indexCache{fs: fs, dir: dir, open: make(map[commitlog.SegmentID]*openIndex), used: list.New()}
}

// get opens a segment's index, or finds it open. The caller releases it.
func (c *indexCache) get(seg *segment) (*openIndex, error) {
	name := seg.index.Load()
	if name == nil {
		return nil, fmt.Errorf("open index of segment %s: %w", seg.file, fs.ErrNotExist)
	}
	c.mu.Lock()
	if x := c.open[seg.id]; x != nil {
		x.refs++
		c.used.MoveToFront(x.place)
		c.mu.Unlock()
		return x, nil
	}
	c.mu.Unlock()
	opened, err := queue.OpenIndex(c.fs, c.dir, *name) // Not under the lock: it reads.
	if err != nil {
		return nil, err
	}
	if seg.indexBytes.Load() == 0 {
		seg.indexBytes.Store(opened.Size())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.open[seg.id]; x != nil { // Another one was faster.
		x.refs++
		return x, opened.Close()
	}
	x := &openIndex{Index: opened, seg: seg.id, refs: 1}
	x.place = c.used.PushFront(x)
	c.open[seg.id] = x
	c.evictLocked()
	return x, nil
}

// evictLocked closes what nobody uses while there are too many. REQUIRES: mu held.
func (c *indexCache) evictLocked() {
	for e := c.used.Back(); e != nil && len(c.open) > maxOpenIndexes; {
		x := e.Value.(*openIndex)
		e = e.Prev()
		if x.refs == 0 {
			c.removeLocked(x)
		}
	}
}

// removeLocked takes an index out; it is closed now or by its last user. REQUIRES: mu held.
func (c *indexCache) removeLocked(x *openIndex) {
	c.used.Remove(x.place)
	delete(c.open, x.seg)
	x.dropped = true
	if x.refs == 0 {
		_ = x.Close() // It was only read.
	}
}

// release ends a use.
func (c *indexCache) release(x *openIndex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.refs--
	if x.dropped && x.refs == 0 {
		_ = x.Close() // It was only read.
	}
}

// replace forgets a segment's index, whose file changed or went.
func (c *indexCache) replace(seg commitlog.SegmentID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.open[seg]; x != nil {
		c.removeLocked(x)
	}
}

// close closes all.
func (c *indexCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.open {
		c.removeLocked(x)
	}
}

// segmentRow is a partition's row in one segment's index.
type segmentRow struct {
	seg *segment
	row queue.Row
}

// rowCache remembers which segments hold a partition. It is bounded by rows;
// the least recently used partitions go first.
type rowCache struct {
	mu    sync.Mutex
	limit int
	rows  int
	byID  map[PartitionID]*cachedRows
	used  *list.List
}

// cachedRows are a partition's rows in the order of the log.
type cachedRows struct {
	id    PartitionID
	rows  []segmentRow
	upto  commitlog.LSN // segments that end at or below it were looked at
	place *list.Element
}

func newRowCache(limit int) *rowCache {
	return &rowCache{limit: limit, byID: make(map[PartitionID]*cachedRows), used: list.New()}
}

// get returns what is remembered. The slice is not to be changed.
func (c *rowCache) get(id PartitionID) (rows []segmentRow, upto commitlog.LSN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.byID[id]
	if r == nil {
		return nil, 0
	}
	c.used.MoveToFront(r.place)
	return r.rows, r.upto
}

// put remembers a partition's rows.
func (c *rowCache) put(id PartitionID, rows []segmentRow, upto commitlog.LSN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.byID[id]
	if r == nil {
		r = &cachedRows{id: id}
		r.place = c.used.PushFront(r)
		c.byID[id] = r
		c.rows++
	}
	c.rows += len(rows) - len(r.rows)
	r.rows, r.upto = rows, upto
	for c.rows > c.limit && c.used.Len() > 1 {
		c.removeLocked(c.used.Back().Value.(*cachedRows))
	}
}

func (c *rowCache) removeLocked(r *cachedRows) {
	c.rows -= len(r.rows) + 1
	c.used.Remove(r.place)
	delete(c.byID, r.id)
}

// forget drops a partition.
func (c *rowCache) forget(id PartitionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.byID[id]; r != nil {
		c.removeLocked(r)
	}
}

// clear drops everything, as when segments go or an index is rebuilt.
func (c *rowCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID, c.used, c.rows = make(map[PartitionID]*cachedRows), list.New(), 0
}

// rows returns the partition's rows in the indexes of sealed segments, in the
// order of the log.
func (s *Store) rows(id PartitionID) ([]segmentRow, error) {
	known, upto := s.cache.get(id)
	if slices.ContainsFunc(known, isDropped) {
		known = slices.DeleteFunc(slices.Clone(known), isDropped)
	}
	all := s.segments.all()
	if n := len(all); n == 0 || all[n-1].end <= upto {
		return known, nil
	}
	rows := slices.Clone(known)
	complete := true
	for _, seg := range all {
		if seg.end <= upto {
			continue
		}
		if !seg.indexed() {
			complete = false // Its entries are in memory, or its index is being rebuilt.
			continue
		}
		row, ok, err := s.lookup(seg, id)
		if err != nil {
			return nil, err
		}
		if ok && row.Entries > 0 {
			rows = append(rows, segmentRow{seg, row})
		}
		if complete {
			upto = seg.end
		}
	}
	kept := rows
	for len(kept) > 0 && kept[len(kept)-1].seg.end > upto {
		kept = kept[:len(kept)-1] // Behind a segment without an index: looked up again next time.
	}
	s.cache.put(id, kept[:len(kept):len(kept)], upto)
	return rows, nil
}

func isDropped(r segmentRow) bool { return r.seg.dropped.Load() }

// lookup finds a partition's row in one index.
func (s *Store) lookup(seg *segment, id PartitionID) (queue.Row, bool, error) {
	x, err := s.indexes.get(seg)
	if err != nil {
		return queue.Row{}, false, s.indexFailed(seg, err)
	}
	defer s.indexes.release(x)
	row, ok, err := x.Lookup(id)
	return row, ok, s.indexFailed(seg, err)
}

// scanRow calls fn for entries of a row, see queue.Index.Scan.
func (s *Store) scanRow(r *segmentRow, offset, minTimestamp int64, fn func(*queue.Entry) bool) error {
	x, err := s.indexes.get(r.seg)
	if err != nil {
		return s.indexFailed(r.seg, err)
	}
	defer s.indexes.release(x)
	return s.indexFailed(r.seg, x.Scan(&r.row, offset, minTimestamp, fn))
}

// indexFailed has a damaged index rebuilt and reports the error. A segment
// that went meanwhile is named as such.
func (s *Store) indexFailed(seg *segment, err error) error {
	if err == nil {
		return nil
	}
	if !slices.Contains(s.segments.all(), seg) {
		return fmt.Errorf("%w: %w", commitlog.ErrSegmentGone, err)
	}
	if errors.Is(err, queue.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		s.background.mend(seg)
	}
	return err
}
