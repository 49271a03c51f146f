package coordinator

import (
	"slices"
	"sync"
	"time"
)

// Options configure a Runtime.
type Options[M Machine] struct {
	// New makes the machine of a partition, without any state.
	New func(partition int32) M
	// Pause is how long a shard whose journal has failed waits before it loads
	// again; a second by default.
	Pause  time.Duration
	Events Events
}

// Events tell what shards do. Any may be nil. They are called on the shards'
// goroutines and must return soon.
type Events struct {
	// Loaded is called when a partition's records are replayed.
	Loaded func(partition int32, records int, took time.Duration)
	// Unreadable is called for a record that the machine cannot read: it is left out.
	Unreadable func(partition int32, err error)
	// Resigned is called when a journal has failed; the shard loads again. Loads
	// that fail after that are not told.
	Resigned func(partition int32, err error)
}

// Runtime has the shards of one internal topic on this broker.
type Runtime[M Machine] struct {
	opts    Options[M]
	running sync.WaitGroup

	mu     sync.RWMutex
	closed bool                // guarded by mu
	shards map[int32]*Shard[M] // guarded by mu
}

// New returns a runtime without shards.
func New[M Machine](o Options[M]) *Runtime[M] {
	if o.Pause <= 0 {
		o.Pause = time.Second
	}
	return &Runtime[M]{opts: o, shards: make(map[int32]*Shard[M])}
}

// Lead starts a shard for a partition that this broker leads in the epoch. One of
// an older epoch ends. It does not wait.
func (r *Runtime[M]) Lead(partition, epoch int32, j Journal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.shards[partition]
	if r.closed || old != nil && old.epoch >= epoch {
		return
	}
	if old != nil {
		old.end()
	}
	s := newShard(partition, epoch, j, &r.opts)
	r.shards[partition] = s
	r.running.Go(s.run)
}

// Leads tells in which epoch a partition has a shard; -1 if it has none.
func (r *Runtime[M]) Leads(partition int32) int32 {
	if s := r.Shard(partition); s != nil {
		return s.epoch
	}
	return -1
}

// Resign ends the shard of a partition, if there is one. It does not wait.
func (r *Runtime[M]) Resign(partition int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.shards[partition]; s != nil {
		s.end()
		delete(r.shards, partition)
	}
}

// Shard is the shard of a partition, nil if there is none. Its methods and Ask
// may be used with nil.
func (r *Runtime[M]) Shard(partition int32) *Shard[M] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.shards[partition]
}

// Shards are all shards, by partition.
func (r *Runtime[M]) Shards() []*Shard[M] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*Shard[M], 0, len(r.shards))
	for _, s := range r.shards {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Shard[M]) int { return int(a.partition - b.partition) })
	return all
}

// Close ends all shards and returns when they have ended.
func (r *Runtime[M]) Close() {
	r.mu.Lock()
	r.closed = true
	for _, s := range r.shards {
		s.end()
	}
	clear(r.shards)
	r.mu.Unlock()
	r.running.Wait()
}
