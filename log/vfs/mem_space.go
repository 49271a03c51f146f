package vfs

import "sync"

// space counts the bytes that a Mem's files take. Its lock is the innermost one.
type space struct {
	mu       sync.Mutex
	used     int64
	capacity int64 // 0 is no limit.
}

func (s *space) setCapacity(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacity = bytes
}

// take reserves up to n bytes and returns how many it got; with all, it is n or nothing.
func (s *space) take(n int64, all takeMode) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity > 0 {
		free := max(s.capacity-s.used, 0)
		if free < n && all == wholeOrNothing {
			return 0
		}
		n = min(n, free)
	}
	s.used += n
	return n
}

// takeMode says what take does when there is less than was asked for.
type takeMode uint8

const (
	asMuchAsFits takeMode = iota
	wholeOrNothing
)

func (s *space) give(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

func (s *space) limit() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capacity
}

func (s *space) report() (free, total uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.capacity
	if size == 0 {
		size = unlimited
	}
	return uint64(max(size-s.used, 0)), uint64(size)
}
