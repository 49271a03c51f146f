package protocol

import (
	"math/bits"
	"sync"
)

const (
	// minClass is the smallest pooled buffer, 1 << minClass bytes.
	minClass = 10
	// maxClass is the largest; what is bigger is left to the garbage collector.
	maxClass = 27
)

// pool keeps buffers for frames and answers, by size class.
type pool struct {
	classes [maxClass - minClass + 1]sync.Pool
	// boxes keeps the slice headers, so that putting a buffer back takes no
	// memory.
	boxes sync.Pool
}

// get gives an empty buffer with room for n bytes.
func (p *pool) get(n int) []byte {
	c := classOf(n)
	if c > maxClass {
		return make([]byte, 0, n)
	}
	if box, ok := p.classes[c-minClass].Get().(*[]byte); ok {
		b := *box
		*box = nil
		p.boxes.Put(box)
		return b[:0]
	}
	return make([]byte, 0, 1<<c)
}

// put takes back a buffer that nobody refers to any more.
func (p *pool) put(b []byte) {
	if cap(b) < 1<<minClass {
		return
	}
	// By the class that it can serve, which for a grown buffer lies below its
	// capacity.
	c := bits.Len(uint(cap(b))) - 1
	if c > maxClass {
		return
	}
	box, ok := p.boxes.Get().(*[]byte)
	if !ok {
		box = new([]byte)
	}
	*box = b
	p.classes[c-minClass].Put(box)
}

// classOf is the smallest class that holds n bytes.
func classOf(n int) int {
	if n <= 1<<minClass {
		return minClass
	}
	return bits.Len(uint(n - 1))
}
