package metrics

import "sync/atomic"

// Counter only goes up. The zero value is ready; it must not be copied.
type Counter struct {
	n atomic.Uint64
}

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n, which is not negative.
func (c *Counter) Add(n int) { c.n.Add(uint64(n)) }

// Value returns the count.
func (c *Counter) Value() uint64 { return c.n.Load() }
