package commitlog

import (
	"math/bits"
	"sync"
)

// Read buffers are pooled by size: powers of two, and a page for what surrounds a payload of such a size. Larger ones are left to the
// collector.
const (
	minBufferBits = 13
	maxBufferBits = 20 // of maxSpan
	smallBuffer   = 64 << 10
)

// bufferPools lend read buffers.
type bufferPools struct {
	pools [maxBufferBits - minBufferBits + 1]sync.Pool
}

// poolOf returns the pool for buffers of n bytes, nil if there is none, and the capacity of its buffers.
func (p *bufferPools) poolOf(n int) (*sync.Pool, int) {
	class := max(bits.Len(uint(max(n-pageSize, 1)-1)), minBufferBits)
	if class > maxBufferBits {
		return nil, n
	}
	return &p.pools[class-minBufferBits], 1<<class + pageSize
}

// take lends a buffer of n bytes.
func (p *bufferPools) take(n int) *[]byte {
	pool, size := p.poolOf(n)
	if pool != nil {
		if b, ok := pool.Get().(*[]byte); ok {
			*b = (*b)[:n]
			return b
		}
	}
	b := make([]byte, n, size)
	return &b
}

// give takes a buffer back.
func (p *bufferPools) give(b *[]byte) {
	if pool, size := p.poolOf(cap(*b)); pool != nil && size == cap(*b) {
		pool.Put(b)
	}
}
