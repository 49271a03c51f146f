package records

import "sync/atomic"

// budget shares memory out among those who hold it for a while. It never makes
// anyone wait: who comes late gets less.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take gives what is wanted, but no more than half of what is left.
func (b *budget) take(want int) int {
	for {
		used := b.used.Load()
		grant := min(int64(want), max((b.limit-used)/2, 0))
		if b.used.CompareAndSwap(used, used+grant) {
			return int(grant)
		}
	}
}

// change corrects what was taken by what it has turned out to be.
func (b *budget) change(by int) { b.used.Add(int64(by)) }
