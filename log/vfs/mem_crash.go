package vfs

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// ErrCrashed is wrapped by every error of a Mem, and of what was opened from it, after Crash.
var ErrCrashed = errors.New("filesystem lost power")

// Crash cuts the power: it returns the filesystem as the next start finds it. Whatever was opened from m fails afterwards
// with ErrCrashed. Called again it returns another outcome of the same crash. With a nil rng it takes m's own chances.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crashed.Store(true)
	if rng == nil {
		rng = m.rng
	}
	next := NewMem(rng.Uint64())
	next.tear = m.tear
	next.space.capacity = m.space.limit()
	c := crash{rng: rng, tear: m.tear, next: next, files: map[*inode]*inode{}}
	c.names(m)
	for _, path := range slices.Sorted(maps.Keys(m.dirs)) {
		next.dirs[path] = c.dir(c.durable[path])
	}
	return next
}

// crash is one outcome being drawn.
type crash struct {
	rng     *rand.Rand
	tear    bool
	next    *Mem
	durable map[string]map[string]*inode // Names of m by directory.
	files   map[*inode]*inode            // Files of m to files of next.
}

// chance draws how likely single things survive: none, all, or something between, so that the extremes are met too.
func (c *crash) chance() float64 {
	switch c.rng.IntN(6) {
	case 0:
		return 0
	case 1:
		return 1
	default:
		return c.rng.Float64()
	}
}

// names draws which changes of names survive. A file that moves between directories keeps its old name unless it got the
// new one. REQUIRES: m.mu held.
func (c *crash) names(m *Mem) {
	c.durable = map[string]map[string]*inode{}
	paths := slices.Sorted(maps.Keys(m.dirs))
	for _, path := range paths {
		c.durable[path] = maps.Clone(m.dirs[path].durable)
	}
	p := c.chance()
	var moves []func()
	for _, path := range paths {
		for _, op := range m.dirs[path].pending {
			if c.rng.Float64() >= p {
				continue
			}
			if op.kind != opMoveAway {
				op.apply(c.durable[path])
				continue
			}
			moves = append(moves, func() {
				if c.durable[filepath.Dir(op.to)][filepath.Base(op.to)] == op.in {
					op.apply(c.durable[path])
				}
			})
		}
	}
	for _, move := range moves {
		move()
	}
}

// dir builds a directory of what is durable in it. REQUIRES: m.mu held.
func (c *crash) dir(names map[string]*inode) *memDir {
	d := newMemDir()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		in := names[name]
		if c.files[in] == nil {
			c.files[in] = c.file(in)
		}
		c.files[in].links++
		d.names[name], d.durable[name] = c.files[in], c.files[in]
	}
	return d
}

// file draws the content of a file.
func (c *crash) file(in *inode) *inode {
	in.mu.RLock()
	defer in.mu.RUnlock()
	content := in.before
	if content == nil || c.rng.IntN(2) == 0 {
		content = c.content(in)
	}
	f := newInode(c.next, c.rng.Uint64())
	f.chunks = make([]*chunk, len(content.chunks))
	for i, from := range content.chunks {
		if from != nil {
			f.chunks[i] = &chunk{data: from.data}
		}
	}
	f.size, f.durableSize = content.size, content.size
	c.next.space.used += f.size
	return f
}

// content draws size and sectors of a file as it stands after a truncation, if there was one. REQUIRES: in.mu held.
func (c *crash) content(in *inode) *frozen {
	p := c.chance()
	size := in.durableSize
	if in.pendingSize > size {
		switch {
		case p == 1 || (p > 0 && c.rng.IntN(2) == 0):
			size = in.pendingSize
		case p > 0:
			size += c.rng.Int64N(in.pendingSize - size + 1)
		}
	}
	f := &frozen{size: size, chunks: make([]*chunk, (size+chunkSize-1)/chunkSize)}
	for i := range f.chunks {
		if from := in.chunks[i]; from != nil {
			f.chunks[i] = &chunk{data: from.data}
			c.sectors(f.chunks[i], from, p)
		}
	}
	f.clearTail()
	return f
}

// sectors puts back the durable bytes of the sectors that are lost.
func (c *crash) sectors(kept, from *chunk, p float64) {
	if from.dirty|from.ghost == 0 {
		return
	}
	for s := range chunkSize / SectorSize {
		bit := uint64(1) << s
		lo, hi := s*SectorSize, (s+1)*SectorSize
		switch {
		case from.ghost&bit != 0:
			copy(kept.data[lo:hi], from.durable[lo:hi])
		case from.dirty&bit == 0:
		case c.tear && p > 0 && c.rng.IntN(8) == 0:
			cut := lo + c.rng.IntN(SectorSize)
			if c.rng.IntN(2) == 0 {
				copy(kept.data[lo:cut], from.durable[lo:cut])
			} else {
				copy(kept.data[cut:hi], from.durable[cut:hi])
			}
		case c.rng.Float64() >= p:
			copy(kept.data[lo:hi], from.durable[lo:hi])
		}
	}
}
