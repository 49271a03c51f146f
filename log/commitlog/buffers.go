package commitlog

import "sync"

// Read buffers are pooled by size; larger ones are left to the collector.
const (
	smallBuffer  = 64 << 10
	mediumBuffer = 256 << 10
	largeBuffer  = maxSpan + pageSize
)

// bufferPools lend read buffers.
type bufferPools struct {
	pools [3]sync.Pool // small, medium, large.
}

// poolOf returns the pool for buffers of n bytes, nil if there is none, and the capacity of its buffers.
func (p *bufferPools) poolOf(n int) (*sync.Pool, int) {
	switch {
	case n <= smallBuffer:
		return &p.pools[0], smallBuffer
	case n <= mediumBuffer:
		return &p.pools[1], mediumBuffer
	case n <= largeBuffer:
		return &p.pools[2], largeBuffer
	}
	return nil, n
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
