package vfs

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// unlimited is the size of the disk that a Mem without a capacity reports.
const unlimited = 1 << 40

// Mem is a filesystem in memory that can lose power; see Crash. It differs from a tame disk in what a crash leaves:
//
//   - of the 512-byte sectors written since the last sync an arbitrary subset is kept, each as it was at the end or at an
//     earlier write; a lost one shows the file's earlier bytes;
//   - names that were created, renamed or removed since the last SyncDir are so or not, each by chance; a rename within one
//     directory is never half done;
//   - after a sync that failed (FailSync) the bytes since the one before it can still be read until the crash, and then are
//     gone, also when a later sync of the file succeeded.
//
// Chances come from seeds, so a history run by one goroutine repeats exactly.
type Mem struct {
	crashed atomic.Bool
	space   space

	mu    sync.Mutex
	rng   *rand.Rand
	dirs  map[string]*memDir
	locks map[string]bool
	tear  bool
}

// memDir is a directory: what is seen, what is durable, and what happened between the two.
type memDir struct {
	names   map[string]*inode
	durable map[string]*inode
	pending []nameOp
}

// nameOp is a change of names that awaits SyncDir.
type nameOp struct {
	kind nameOpKind
	name string // The name that appears or goes; the old one of a rename.
	to   string // The new name of a rename; the new path of what moved away.
	in   *inode
}

type nameOpKind uint8

const (
	opLink nameOpKind = iota
	opUnlink
	opRename
	opMoveAway // The half of a rename between directories that the old one sees; opLink is the other.
)

// apply carries the change out on durable names. It touches nothing that another file has taken over.
func (o nameOp) apply(names map[string]*inode) {
	if o.kind != opLink && names[o.name] == o.in {
		delete(names, o.name)
	}
	switch o.kind {
	case opLink:
		names[o.name] = o.in
	case opRename:
		names[o.to] = o.in
	case opUnlink, opMoveAway:
	}
}

// NewMem returns an empty filesystem whose chances come from seed. The directories "." and "/" exist.
func NewMem(seed uint64) *Mem {
	return &Mem{
		rng:   rand.New(rand.NewPCG(seed, 0x6d656d)),
		dirs:  map[string]*memDir{".": newMemDir(), "/": newMemDir()},
		locks: map[string]bool{},
	}
}

func newMemDir() *memDir {
	return &memDir{names: map[string]*inode{}, durable: map[string]*inode{}}
}

// SetCapacity limits the bytes that files may take; growing beyond them fails with ErrNoSpace. 0 is no limit.
func (m *Mem) SetCapacity(bytes int64) { m.space.setCapacity(bytes) }

// TearSectors lets a crash cut a sector in two as well: one part new, the other old. Bytes that both have in common stay.
func (m *Mem) TearSectors() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tear = true
}

// lookupLocked finds a file. REQUIRES: mu held.
func (m *Mem) lookupLocked(op, name string) (*memDir, string, *inode, error) {
	if m.crashed.Load() {
		return nil, "", nil, pathError(op, name, ErrCrashed)
	}
	clean := filepath.Clean(name)
	dir, ok := m.dirs[filepath.Dir(clean)]
	if !ok {
		return nil, "", nil, pathError(op, name, fs.ErrNotExist)
	}
	base := filepath.Base(clean)
	return dir, base, dir.names[base], nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, err := m.createLocked("create", name)
	if err != nil {
		return nil, err
	}
	if err := in.resize(0); err != nil {
		return nil, pathError("create", name, err)
	}
	return m.openLocked(in, name, true), nil
}

// createLocked finds a file or makes it. REQUIRES: mu held.
func (m *Mem) createLocked(op, name string) (*inode, error) {
	dir, base, in, err := m.lookupLocked(op, name)
	if err != nil {
		return nil, err
	}
	if _, isDir := m.dirs[filepath.Clean(name)]; isDir {
		return nil, pathError(op, name, syscall.EISDIR)
	}
	if in == nil {
		in = newInode(m, m.rng.Uint64())
		in.links = 1
		dir.names[base] = in
		dir.pending = append(dir.pending, nameOp{kind: opLink, name: base, in: in})
	}
	return in, nil
}

// openLocked makes a handle. REQUIRES: mu held.
func (m *Mem) openLocked(in *inode, name string, writable bool) *memFile {
	in.handles++
	return &memFile{mem: m, in: in, name: name, writable: writable}
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenRW implements FS.
func (m *Mem) OpenRW(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, writable bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, in, err := m.lookupLocked("open", name)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	return m.openLocked(in, name, writable), nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, in, err := m.lookupLocked("remove", name)
	if err != nil {
		return err
	}
	if in == nil {
		return m.removeDirLocked(name)
	}
	delete(dir.names, base)
	dir.pending = append(dir.pending, nameOp{kind: opUnlink, name: base, in: in})
	m.unlinkLocked(in)
	return nil
}

// removeDirLocked removes an empty directory, durably. REQUIRES: mu held.
func (m *Mem) removeDirLocked(name string) error {
	clean := filepath.Clean(name)
	dir, ok := m.dirs[clean]
	if !ok {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if len(dir.names) > 0 || len(m.subdirsLocked(clean)) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(m.dirs, clean)
	return nil
}

// unlinkLocked takes a name away from a file and gives its space back if that was the last hold on it. REQUIRES: mu held.
func (m *Mem) unlinkLocked(in *inode) {
	in.links--
	m.releaseLocked(in)
}

// releaseLocked gives a file's space back if neither a name nor a handle holds it. REQUIRES: mu held.
func (m *Mem) releaseLocked(in *inode) {
	if in.links == 0 && in.handles == 0 {
		m.space.give(in.visibleSize())
	}
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, in, err := m.lookupLocked("rename", oldName)
	if err != nil {
		return err
	}
	to, newBase, replaced, err := m.lookupLocked("rename", newName)
	if err != nil {
		return err
	}
	if in == nil {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	if _, isDir := m.dirs[filepath.Clean(newName)]; isDir {
		return pathError("rename", newName, syscall.EISDIR)
	}
	if replaced == in {
		return nil
	}
	delete(from.names, oldBase)
	to.names[newBase] = in
	if from == to {
		to.pending = append(to.pending, nameOp{kind: opRename, name: oldBase, to: newBase, in: in})
	} else {
		to.pending = append(to.pending, nameOp{kind: opLink, name: newBase, in: in})
		from.pending = append(from.pending, nameOp{kind: opMoveAway, name: oldBase, to: filepath.Clean(newName), in: in})
	}
	if replaced != nil {
		m.unlinkLocked(replaced)
	}
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed.Load() {
		return pathError("mkdir", dir, ErrCrashed)
	}
	clean := filepath.Clean(dir)
	for d := clean; m.dirs[d] == nil; d = filepath.Dir(d) {
		if parent := m.dirs[filepath.Dir(d)]; parent != nil && parent.names[filepath.Base(d)] != nil {
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
	}
	for d := clean; m.dirs[d] == nil; d = filepath.Dir(d) {
		m.dirs[d] = newMemDir()
	}
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed.Load() {
		return nil, pathError("open", dir, ErrCrashed)
	}
	clean := filepath.Clean(dir)
	d, ok := m.dirs[clean]
	if !ok {
		return nil, pathError("open", dir, fs.ErrNotExist)
	}
	names := m.subdirsLocked(clean)
	for name := range d.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// subdirsLocked returns the names of the directories in dir. REQUIRES: mu held.
func (m *Mem) subdirsLocked(dir string) []string {
	var names []string
	for d := range m.dirs {
		if d != dir && filepath.Dir(d) == dir {
			names = append(names, filepath.Base(d))
		}
	}
	return names
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed.Load() {
		return Info{}, pathError("stat", name, ErrCrashed)
	}
	if _, ok := m.dirs[filepath.Clean(name)]; ok {
		return Info{IsDir: true}, nil
	}
	_, _, in, err := m.lookupLocked("stat", name)
	if err != nil {
		return Info{}, err
	}
	if in == nil {
		return Info{}, pathError("stat", name, fs.ErrNotExist)
	}
	return Info{Size: in.visibleSize()}, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed.Load() {
		return pathError("sync", dir, ErrCrashed)
	}
	d, ok := m.dirs[filepath.Clean(dir)]
	if !ok {
		return pathError("sync", dir, fs.ErrNotExist)
	}
	for _, op := range d.pending {
		op.apply(d.durable)
	}
	d.pending = nil
	return nil
}

// FailSyncDir does to a directory what a failed SyncDir does: the changes of names since the last one that succeeded are
// seen until the crash, and are undone by it.
func (m *Mem) FailSyncDir(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, ok := m.dirs[filepath.Clean(dir)]; ok {
		d.pending = nil
	}
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, err := m.createLocked("lock", name)
	if err != nil {
		return nil, err
	}
	clean := filepath.Clean(name)
	if m.locks[clean] {
		return nil, &LockedError{Name: name, PID: syscall.Getpid()}
	}
	err = in.resize(0)
	if err == nil {
		_, err = in.write([]byte(strconv.Itoa(syscall.Getpid())+"\n"), 0)
	}
	if err != nil && !IsNoSpace(err) {
		return nil, pathError("lock", name, err)
	}
	m.locks[clean] = true
	return &memLock{mem: m, name: clean}, nil
}

// memLock is a lock that is held.
type memLock struct {
	mem  *Mem
	name string
	once sync.Once
}

// Close releases the lock.
func (l *memLock) Close() error {
	l.once.Do(func() {
		l.mem.mu.Lock()
		defer l.mem.mu.Unlock()
		delete(l.mem.locks, l.name)
	})
	return nil
}

// Space implements FS.
func (m *Mem) Space(dir string) (free, total uint64, err error) {
	if _, err := m.Stat(dir); err != nil {
		return 0, 0, err
	}
	free, total = m.space.report()
	return free, total, nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

var _ FS = (*Mem)(nil)
