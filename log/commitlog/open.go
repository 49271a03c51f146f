package commitlog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mainstem/mainstem/log/vfs"
)

// ringSlack is how many blocks of the ring are kept free beside what may be unwritten: for the one being filled, and for those that a
// roll leaves half used.
const ringSlack = 4

// fill sets what is zero to its default and refuses what cannot work.
func (o *Options) fill() error {
	setDefault(&o.SegmentBytes, 128<<20)
	setDefault(&o.SegmentEntries, 512<<10)
	setDefault(&o.BlockBytes, 256<<10)
	setDefault(&o.RingBytes, 32<<20)
	setDefault(&o.ReserveBytes, 8<<20)
	setDefault(&o.MinFree, 64<<20)
	setDefault(&o.AsyncDelay, 500*time.Millisecond)
	setDefault(&o.AsyncBytes, 4<<20)
	o.SegmentBytes = alignUp(o.SegmentBytes, pageSize)
	switch {
	case o.FS == nil || o.Dir == "":
		return fmt.Errorf("FS and Dir are needed: %w", ErrUsage)
	case o.SegmentBytes < minSegmentBytes || o.SegmentBytes > 1<<32-pageSize:
		return fmt.Errorf("segments of %d bytes: from %d up to 4 GiB: %w", o.SegmentBytes, minSegmentBytes, ErrUsage)
	case o.BlockBytes < 1<<10 || o.BlockBytes%frameAlign != 0:
		return fmt.Errorf("blocks of %d bytes: at least 1 KiB, a multiple of %d: %w", o.BlockBytes, frameAlign, ErrUsage)
	case o.RingBytes/o.BlockBytes < 2*ringSlack:
		return fmt.Errorf("memory of %d bytes: at least %d blocks: %w", o.RingBytes, 2*ringSlack, ErrUsage)
	}
	return nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Open opens the log of a data directory, or makes a new one there: it takes the lock, reads the manifest, checks that the directory
// is this node's, and removes files of ours that the manifest does not name. It reads no segment; Scan and Recover do.
func Open(o Options) (*Log, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	slots := o.RingBytes / o.BlockBytes
	l := &Log{
		o: o, fs: o.FS,
		editing: make(chan struct{}, 1), sealTurn: make(chan struct{}, 1),
		ring:    newRing(o.BlockBytes, slots),
		usable:  int64(slots-ringSlack) * int64(o.BlockBytes),
		done:    make(chan struct{}),
		stop:    make(chan struct{}),
		wakeups: wakeups{writer: make(chan struct{}, 1), keeper: make(chan struct{}, 1)},
	}
	l.set.Store(&segmentSet{})
	if err := l.open(); err != nil {
		if l.lock != nil {
			err = errors.Join(err, l.lock.Close())
		}
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, nil
}

func (l *Log) open() error {
	if !l.o.ReadOnly {
		if err := l.fs.MkdirAll(l.o.Dir); err != nil {
			return err
		}
		lock, err := l.fs.Lock(l.path(lockName))
		if err != nil {
			return err
		}
		l.lock = lock
	}
	m, err := readManifest(l.fs, l.o.Dir)
	if err != nil {
		return err
	}
	if m == nil {
		return l.create()
	}
	if err := l.checkIdentity(m); err != nil {
		return err
	}
	l.adopt(m)
	if l.o.ReadOnly {
		return nil
	}
	return l.tidy()
}

// checkIdentity refuses the directory of another cluster or node.
func (l *Log) checkIdentity(m *manifest) error {
	if l.o.ClusterID == "" || l.o.ReadOnly {
		return nil
	}
	if m.clusterID == l.o.ClusterID && m.nodeID == l.o.NodeID {
		return nil
	}
	return &IdentityError{
		Dir: l.o.Dir, HaveCluster: m.clusterID, WantCluster: l.o.ClusterID, HaveNodeID: m.nodeID, WantNodeID: l.o.NodeID,
	}
}

// create writes the first manifest.
func (l *Log) create() error {
	if l.o.ReadOnly {
		return fmt.Errorf("no manifest in %s: %w", l.o.Dir, ErrUsage)
	}
	names, err := l.fs.List(l.o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if isSegmentName(name) {
			return fmt.Errorf("%s holds segments and no manifest: %w", l.o.Dir, ErrCorrupt)
		}
	}
	l.isNew = true
	m := &manifest{clean: true, clusterID: l.o.ClusterID, nodeID: l.o.NodeID, nextID: 1, nextBase: firstBase}
	if err := vfs.WriteAtomic(l.fs, l.path(manifestName), m.encode()); err != nil {
		return diskFull("write manifest", err)
	}
	l.adopt(m)
	return nil
}

// firstBase is where the stream of a new log begins; 0 stays free to mean nothing.
const firstBase = pageSize

// adopt takes over what the manifest says.
func (l *Log) adopt(m *manifest) {
	l.manifest.Store(m)
	l.wasClean = m.clean
	set := &segmentSet{}
	for i := range m.rows {
		s := newSegment(&m.rows[i])
		set.list = append(set.list, s)
		if s.sealed && s.kind == kindFrames && s.index == "" {
			l.unindexed++
		}
	}
	l.set.Store(set)
	l.setPositions(m.durable)
}

// setPositions moves all ends of the stream.
func (l *Log) setPositions(at LSN) {
	l.writtenLSN, l.durableLSN = at, at
	l.written.Store(uint64(at))
	l.durable.Store(uint64(at))
	l.next.Store(uint64(at))
}

// tidy removes files that carry our names and that the manifest does not name. Segments of the usual size wait to be recycled, since
// on a full disk there may be no other way to get one.
func (l *Log) tidy() error {
	names, err := l.fs.List(l.o.Dir)
	if err != nil {
		return err
	}
	m := l.manifest.Load()
	live := map[string]bool{manifestName: true, reserveName: true, m.checkpoint: true, CopyName(m.checkpoint): true}
	for i := range m.rows {
		live[segmentName(m.rows[i].id)] = true
		live[m.rows[i].index] = true
	}
	for _, name := range names {
		if live[name] || !ours(name) {
			continue
		}
		if s := l.stray(name); s != nil {
			l.recyclable = append(l.recyclable, s)
			if s.id >= m.nextID { // Its name must not be given to a new file before it is renamed itself.
				m = m.clone()
				m.nextID = s.id + 1
				l.manifest.Store(m)
			}
			continue
		}
		if err := l.fs.Remove(l.path(name)); err != nil {
			return fmt.Errorf("remove file that nothing names: %w", err)
		}
		if l.o.Events.Removed != nil {
			l.o.Events.Removed(name)
		}
	}
	return nil
}

// stray returns a segment's file that the manifest does not name, if it can be recycled.
func (l *Log) stray(name string) *segment {
	if !isSegmentName(name) || len(l.recyclable) == maxRecyclable {
		return nil
	}
	info, err := l.fs.Stat(l.path(name))
	if err != nil {
		l.report("look at unused segment", err) // It is removed instead.
		return nil
	}
	if info.Size != l.o.SegmentBytes {
		return nil
	}
	id, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 16, 64)
	if err != nil {
		return nil
	}
	return &segment{segmentHead: segmentHead{kind: kindFrames, id: SegmentID(id), capacity: info.Size}, name: name}
}
