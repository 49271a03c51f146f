package replica

import (
	"hash/maphash"
	"sync"
)

// indexShards is a power of two.
const indexShards = 64

// index is a map for many readers and one writer at a time. Its shards keep a
// look-up from meeting the lock of a change elsewhere, and a change from copying
// a map of a hundred thousand.
type index[K comparable, V any] struct {
	seed   maphash.Seed
	shards [indexShards]indexShard[K, V]
}

type indexShard[K comparable, V any] struct {
	mu sync.RWMutex
	m  map[K]V // guarded by mu
}

func newIndex[K comparable, V any]() *index[K, V] {
	x := &index[K, V]{seed: maphash.MakeSeed()}
	for i := range x.shards {
		x.shards[i].m = make(map[K]V)
	}
	return x
}

func (x *index[K, V]) shard(k K) *indexShard[K, V] {
	return &x.shards[maphash.Comparable(x.seed, k)%indexShards]
}

func (x *index[K, V]) get(k K) (V, bool) {
	s := x.shard(k)
	s.mu.RLock()
	v, ok := s.m[k]
	s.mu.RUnlock()
	return v, ok
}

func (x *index[K, V]) put(k K, v V) {
	s := x.shard(k)
	s.mu.Lock()
	s.m[k] = v
	s.mu.Unlock()
}

func (x *index[K, V]) remove(k K) {
	s := x.shard(k)
	s.mu.Lock()
	delete(s.m, k)
	s.mu.Unlock()
}

// all returns a snapshot of the values, in no order.
func (x *index[K, V]) all() []V {
	var out []V
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.RLock()
		for _, v := range s.m {
			out = append(out, v)
		}
		s.mu.RUnlock()
	}
	return out
}
