package errorfs

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/mainstem/mainstem/log/vfs"
)

// ErrInjected is what operations fail with if their rule names no other error.
var ErrInjected = errors.New("injected failure")

// Op is an operation that was asked for.
type Op struct {
	Kind Kind // One kind.
	Path string
	To   string // The new name of a Rename.
	Off  int64  // Of Read, Write and Allocate.
	Len  int64  // The size of Truncate too.
}

// Rule says which operations fail, and how.
type Rule struct {
	// Kinds are the operations that count; 0 is All.
	Kinds Kind
	// Path is part of the path of operations that count. "" is in all paths.
	Path string
	// Match decides further. It must not call the filesystem.
	Match func(Op) bool
	// After is how many operations that count pass before the first fails.
	After int
	// Times is how many fail from then on; 0 is one, Forever is all.
	Times int
	// Err is the error; nil is ErrInjected. For a full disk take vfs.ErrNoSpace.
	Err error
	// Short lets half of the bytes of a failing write arrive.
	Short bool
}

// Forever is the number of Times of a rule that never ends.
const Forever = -1

// Failure is a rule at work.
type Failure struct {
	fs      *FS
	rule    Rule
	matched int // Guarded by fs.mu, as the next ones.
	hits    int
	first   Op
}

// Hits returns how many operations failed by the rule.
func (f *Failure) Hits() int {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.hits
}

// Matched returns how many operations counted, failing or not.
func (f *Failure) Matched() int {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.matched
}

// First returns the first operation that failed by the rule.
func (f *Failure) First() Op {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.first
}

// Stop ends the rule.
func (f *Failure) Stop() {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.failures = slices.DeleteFunc(f.fs.failures, func(other *Failure) bool { return other == f })
}

// FS is a filesystem with failures. Its methods are safe for concurrent use.
type FS struct {
	inner vfs.FS

	mu       sync.Mutex
	failures []*Failure
	counts   map[Kind]int
	stubbed  Kind
	watch    func(Op)
}

// New wraps a filesystem. Without rules it only counts.
func New(inner vfs.FS) *FS { return &FS{inner: inner, counts: map[Kind]int{}} }

// Fail adds a rule. The first rule that an operation falls under decides.
func (f *FS) Fail(r Rule) *Failure {
	if r.Kinds == 0 {
		r.Kinds = All
	}
	if r.Times == 0 {
		r.Times = 1
	}
	if r.Err == nil {
		r.Err = ErrInjected
	}
	failure := &Failure{fs: f, rule: r}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, failure)
	return failure
}

// CutPower makes every operation fail after n more that change something, as if the power went then. What the disk keeps is
// for vfs.Mem.Crash to say.
func (f *FS) CutPower(n int) *Failure {
	down := false
	return f.Fail(Rule{
		Times: Forever,
		Err:   vfs.ErrCrashed,
		Match: func(op Op) bool {
			if !down && op.Kind&Mutations != 0 {
				n--
				down = n < 0
			}
			return down
		},
	})
}

// StubSyncs makes operations of the kinds, which must be in Syncs, succeed without doing anything.
func (f *FS) StubSyncs(kinds Kind) {
	if kinds&^Syncs != 0 {
		panic("only syncs can be stubbed, not " + (kinds &^ Syncs).String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stubbed = kinds
}

// Watch calls fn before each operation, in the goroutine that asked for it.
func (f *FS) Watch(fn func(Op)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = fn
}

// Count returns how many operations of the kinds were asked for.
func (f *FS) Count(kinds Kind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for kind, count := range f.counts {
		if kinds&kind != 0 {
			n += count
		}
	}
	return n
}

// verdict is what becomes of an operation.
type verdict struct {
	err     error
	short   bool
	stubbed bool
}

// judge counts an operation and says what becomes of it.
func (f *FS) judge(op Op) verdict {
	f.mu.Lock()
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(op)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op.Kind]++
	for _, failure := range f.failures {
		if failure.countLocked(op) {
			return verdict{err: failure.rule.Err, short: failure.rule.Short}
		}
	}
	return verdict{stubbed: f.stubbed&op.Kind != 0}
}

// countLocked reports whether the operation fails by the rule. REQUIRES: fs.mu held.
func (f *Failure) countLocked(op Op) bool {
	r := &f.rule
	inPath := strings.Contains(op.Path, r.Path) || (op.To != "" && strings.Contains(op.To, r.Path))
	if r.Kinds&op.Kind == 0 || !inPath || (r.Match != nil && !r.Match(op)) {
		return false
	}
	f.matched++
	if f.matched <= r.After || (r.Times != Forever && f.hits >= r.Times) {
		return false
	}
	if f.hits == 0 {
		f.first = op
	}
	f.hits++
	return true
}

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) { return f.open(Create, name, f.inner.Create) }

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) { return f.open(Open, name, f.inner.Open) }

// OpenRW implements vfs.FS.
func (f *FS) OpenRW(name string) (vfs.File, error) { return f.open(OpenRW, name, f.inner.OpenRW) }

func (f *FS) open(kind Kind, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	if v := f.judge(Op{Kind: kind, Path: name}); v.err != nil {
		return nil, failed(kind, name, v.err)
	}
	inner, err := open(name)
	if err != nil {
		return nil, err
	}
	return &file{fs: f, inner: inner}, nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	if v := f.judge(Op{Kind: Remove, Path: name}); v.err != nil {
		return failed(Remove, name, v.err)
	}
	return f.inner.Remove(name)
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error {
	if v := f.judge(Op{Kind: Rename, Path: oldName, To: newName}); v.err != nil {
		return failed(Rename, oldName, v.err)
	}
	return f.inner.Rename(oldName, newName)
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	if v := f.judge(Op{Kind: MkdirAll, Path: dir}); v.err != nil {
		return failed(MkdirAll, dir, v.err)
	}
	return f.inner.MkdirAll(dir)
}

// List implements vfs.FS.
func (f *FS) List(dir string) ([]string, error) {
	if v := f.judge(Op{Kind: List, Path: dir}); v.err != nil {
		return nil, failed(List, dir, v.err)
	}
	return f.inner.List(dir)
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.Info, error) {
	if v := f.judge(Op{Kind: Stat, Path: name}); v.err != nil {
		return vfs.Info{}, failed(Stat, name, v.err)
	}
	return f.inner.Stat(name)
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	v := f.judge(Op{Kind: SyncDir, Path: dir})
	switch {
	case v.err != nil:
		if mem, ok := f.inner.(interface{ FailSyncDir(dir string) }); ok && !powerIsOut(v.err) {
			mem.FailSyncDir(dir)
		}
		return failed(SyncDir, dir, v.err)
	case v.stubbed:
		return nil
	}
	return f.inner.SyncDir(dir)
}

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (io.Closer, error) {
	if v := f.judge(Op{Kind: Lock, Path: name}); v.err != nil {
		return nil, failed(Lock, name, v.err)
	}
	return f.inner.Lock(name)
}

// Space implements vfs.FS.
func (f *FS) Space(dir string) (free, total uint64, err error) {
	if v := f.judge(Op{Kind: Space, Path: dir}); v.err != nil {
		return 0, 0, failed(Space, dir, v.err)
	}
	return f.inner.Space(dir)
}

var _ vfs.FS = (*FS)(nil)
