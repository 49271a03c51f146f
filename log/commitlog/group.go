package commitlog

import "sync/atomic"

// group is what one write takes: frames of one segment that follow each other. It is open while frames are placed into it, closed when
// a writer takes it or its segment ends.
type group struct {
	id       uint64
	seg      *segment
	from, to int64  // positions in the file.
	start    cursor // where from is in the ring.
	waste    int64  // bytes of the ring that are skipped behind it since its segment ends.

	frames  int
	sync    bool // holds frames of durability Synced.
	async   bool // holds frames of durability Written.
	last    bool // ends its segment.
	touched []Touch

	copies atomic.Int32  // copies under way, and one for being open.
	copied chan struct{} // receives when the last copy ends after the group was closed.
}

// lsn returns the position behind the group.
func (g *group) lsn() LSN { return g.seg.lsn(g.to) }

// touch remembers that a tag's end moved. REQUIRES: Log.mu held.
func (g *group) touch(tag *Tag, end int64) {
	if tag.group == g.id {
		g.touched[tag.index].EndOffset = end
		return
	}
	tag.group, tag.index = g.id, int32(len(g.touched))
	g.touched = append(g.touched, Touch{Tag: tag, EndOffset: end})
}

// copyDone ends a copy.
func (g *group) copyDone() {
	if g.copies.Add(-1) == 0 {
		g.copied <- struct{}{}
	}
}

// waitCopied returns when all copies into a closed group have ended.
func (g *group) waitCopied() {
	if g.copies.Add(-1) != 0 {
		<-g.copied
	}
}

// newGroupLocked opens a group at the end of the current segment. REQUIRES: mu held, cur set, no open group.
func (l *Log) newGroupLocked() *group {
	var g *group
	if n := len(l.idleGroups); n > 0 {
		g = l.idleGroups[n-1]
		l.idleGroups = l.idleGroups[:n-1]
	} else {
		g = &group{copied: make(chan struct{}, 1)}
	}
	l.groupID++
	g.id, g.seg = l.groupID, l.cur
	g.from = l.pos
	g.to = l.pos
	l.at = l.ring.advanceOrBegin(l.at, l.cur.lsn(l.pos))
	g.start = l.at
	g.copies.Store(1)
	l.openGroup = g
	return g
}

// recycleGroupLocked puts a group whose commit was reported back. REQUIRES: mu held.
func (l *Log) recycleGroupLocked(g *group) {
	clear(g.touched)
	*g = group{touched: g.touched[:0], copied: g.copied}
	l.idleGroups = append(l.idleGroups, g)
}
