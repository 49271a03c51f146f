package vfs

import (
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
)

// chunkSize is the piece in which a file's bytes are kept: as many sectors as a word has bits.
const chunkSize = 64 * SectorSize

// inode is a file of a Mem without its names: the bytes that are read, and the bytes that are durable where they differ.
type inode struct {
	mem     *Mem
	links   int // Names. Guarded by mem.mu.
	handles int // Open handles. Guarded by mem.mu.

	mu     sync.RWMutex
	rng    *rand.Rand
	chunks []*chunk // A nil chunk is zeros.
	size   int64    // What readers see.
	// durableSize is the size that a crash surely leaves; pendingSize is what it becomes by the next sync, if larger.
	durableSize, pendingSize int64
	// before is what was durable when the file was truncated; it may come back until the next sync.
	before *frozen
}

// chunk is a piece of a file. A sector is clean (durable as read), dirty (the next sync makes it durable), or a ghost: read,
// but dropped by a failed sync.
type chunk struct {
	data         [chunkSize]byte
	durable      *[chunkSize]byte // Valid in sectors that are dirty or ghosts.
	dirty, ghost uint64
}

// frozen is the durable content of a file.
type frozen struct {
	chunks []*chunk // All sectors clean.
	size   int64
}

func newInode(m *Mem, seed uint64) *inode {
	return &inode{mem: m, rng: rand.New(rand.NewPCG(seed, 0x696e6f))}
}

func (in *inode) visibleSize() int64 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.size
}

// read copies the bytes at off, as os.File.ReadAt does.
func (in *inode) read(p []byte, off int64) (int, error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.mem.crashed.Load() {
		return 0, ErrCrashed
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= in.size {
		return 0, io.EOF
	}
	var err error
	if int64(len(p)) > in.size-off {
		p, err = p[:in.size-off], io.EOF
	}
	for n := 0; n < len(p); {
		at := off + int64(n)
		inChunk := int(at % chunkSize)
		part := p[n:min(len(p), n+chunkSize-inChunk)]
		if c := in.chunkAt(at); c != nil {
			copy(part, c.data[inChunk:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	return len(p), err
}

// chunkAt returns the chunk that holds a position, nil if it is all zeros. REQUIRES: mu held.
func (in *inode) chunkAt(at int64) *chunk {
	if i := at / chunkSize; i < int64(len(in.chunks)) {
		return in.chunks[i]
	}
	return nil
}

// write stores bytes at off. When space ends it stores what fits.
func (in *inode) write(p []byte, off int64) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mem.crashed.Load() {
		return 0, ErrCrashed
	}
	var err error
	if grow := off + int64(len(p)) - in.size; grow > 0 && len(p) > 0 {
		if got := in.mem.space.take(grow, asMuchAsFits); got < grow {
			// What was taken may only fill a hole in front of the bytes; then it goes back.
			keep := max(int64(len(p))-(grow-got), 0)
			if keep == 0 {
				in.mem.space.give(got)
			}
			p, err = p[:keep], syscall.ENOSPC
		}
	}
	if len(p) == 0 {
		return 0, err
	}
	end := off + int64(len(p))
	in.growTo(end)
	for n := 0; n < len(p); {
		at := off + int64(n)
		inChunk := int(at % chunkSize)
		part := p[n:min(len(p), n+chunkSize-inChunk)]
		c := in.chunks[at/chunkSize]
		if c == nil {
			c = new(chunk)
			in.chunks[at/chunkSize] = c
		}
		c.markDirty(inChunk, inChunk+len(part), in.rng)
		copy(c.data[inChunk:], part)
		n += len(part)
	}
	return len(p), err
}

// growTo extends the file to end; space was taken. REQUIRES: mu held.
func (in *inode) growTo(end int64) {
	in.size = max(in.size, end)
	if end > in.durableSize {
		in.pendingSize = max(in.pendingSize, end)
	}
	if want := int((in.size + chunkSize - 1) / chunkSize); want > len(in.chunks) {
		in.chunks = append(in.chunks, make([]*chunk, want-len(in.chunks))...)
	}
}

// markDirty prepares the sectors of [from, to) for a write. A dirty sector may have reached the disk before it is written
// again, by chance; then that is what a crash falls back to.
func (c *chunk) markDirty(from, to int, rng *rand.Rand) {
	if c.durable == nil {
		c.durable = new([chunkSize]byte)
	}
	for s := from / SectorSize; s*SectorSize < to; s++ {
		bit := uint64(1) << s
		if (c.dirty|c.ghost)&bit == 0 || (c.dirty&bit != 0 && rng.Uint32()%4 == 0) {
			copy(c.durable[s*SectorSize:(s+1)*SectorSize], c.data[s*SectorSize:])
		}
		c.dirty |= bit
		c.ghost &^= bit
	}
}

// allocate extends the file to end.
func (in *inode) allocate(end int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mem.crashed.Load() {
		return ErrCrashed
	}
	if end <= in.size {
		return nil
	}
	if in.mem.space.take(end-in.size, wholeOrNothing) == 0 {
		return syscall.ENOSPC
	}
	in.growTo(end)
	return nil
}

// resize cuts the file or extends it with zeros. What was durable may come back until the next sync.
func (in *inode) resize(size int64) error {
	if end := size; end > in.visibleSize() {
		return in.allocate(end)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mem.crashed.Load() {
		return ErrCrashed
	}
	if size >= in.size {
		return nil
	}
	if in.before == nil {
		in.before = in.durableLocked()
	}
	in.mem.space.give(in.size - size)
	in.size, in.durableSize, in.pendingSize = size, min(in.durableSize, size), min(in.pendingSize, size)
	in.chunks = in.chunks[:(size+chunkSize-1)/chunkSize]
	if last := in.chunkAt(size); last != nil {
		last.cut(int(size % chunkSize))
	}
	return nil
}

// cut zeroes the bytes from a position on.
func (c *chunk) cut(from int) {
	clear(c.data[from:])
	if c.durable != nil {
		clear(c.durable[from:])
	}
	below := uint64(1)<<((from+SectorSize-1)/SectorSize) - 1
	c.dirty &= below
	c.ghost &= below
}

// sync makes durable what is dirty.
func (in *inode) sync() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mem.crashed.Load() {
		return ErrCrashed
	}
	for _, c := range in.chunks {
		if c != nil {
			c.dirty = 0
		}
	}
	in.durableSize = max(in.durableSize, in.pendingSize)
	in.pendingSize = 0
	in.before = nil
	return nil
}

// failSync turns what is dirty into ghosts.
func (in *inode) failSync() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, c := range in.chunks {
		if c != nil {
			c.ghost |= c.dirty
			c.dirty = 0
		}
	}
	in.pendingSize = 0
}

// durableLocked returns what a crash leaves if it keeps nothing that was not synced. REQUIRES: mu held.
func (in *inode) durableLocked() *frozen {
	f := &frozen{size: in.durableSize, chunks: make([]*chunk, (in.durableSize+chunkSize-1)/chunkSize)}
	for i := range f.chunks {
		c := in.chunks[i]
		if c == nil {
			continue
		}
		kept := &chunk{data: c.data}
		for s := range 64 {
			if (c.dirty|c.ghost)&(1<<s) != 0 {
				copy(kept.data[s*SectorSize:(s+1)*SectorSize], c.durable[s*SectorSize:])
			}
		}
		f.chunks[i] = kept
	}
	f.clearTail()
	return f
}

// clearTail zeroes the bytes of the last chunk that lie above the size.
func (f *frozen) clearTail() {
	if in := f.size % chunkSize; in != 0 {
		if c := f.chunks[len(f.chunks)-1]; c != nil {
			clear(c.data[in:])
		}
	}
}
