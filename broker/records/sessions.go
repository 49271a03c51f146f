package records

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mainstem/mainstem/broker/metrics"
)

// staleAfter is how long a session must be unused before any other may take its
// slot, and how old it must be before a larger one may.
const staleAfter = 120 * time.Second

// maxSessionParts bounds the partitions of all sessions together, as a client may
// name any number of them, also such that do not exist.
const maxSessionParts = 1 << 20

// sessions holds the fetch sessions in a bounded number of slots. Clients that
// never close theirs must not keep others out, and small ones not large ones, so
// when all slots are taken a new session gets the slot of one that is stale, or
// else of the smallest one that is old, if it is not larger itself.
type sessions struct {
	slots     int
	maxParts  int64
	evictions *metrics.Counter

	mu    sync.Mutex
	byID  map[int32]*session // guarded by mu
	parts int64              // of all sessions in byID, guarded by mu
}

func newSessions(slots int, evictions *metrics.Counter) *sessions {
	return &sessions{slots: slots, maxParts: maxSessionParts, evictions: evictions, byID: make(map[int32]*session)}
}

// get finds a session and notes its use. It is nil if there is none.
func (c *sessions) get(id int32) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byID[id]
	if s != nil {
		s.used.Store(int64(time.Since(s.created)))
	}
	return s
}

// add gives the session an id, unless there is no room for it.
func (c *sessions) add(s *session) bool {
	now := time.Now()
	c.mu.Lock()
	if c.parts+s.size.Load() > c.maxParts {
		c.mu.Unlock()
		return false
	}
	var victim *session
	if len(c.byID) >= c.slots {
		if victim = c.victimLocked(s.size.Load(), now); victim == nil {
			c.mu.Unlock()
			return false
		}
		c.dropLocked(victim)
		c.evictions.Inc()
	}
	for s.id == 0 || c.byID[s.id] != nil {
		s.id = rand.Int32()
	}
	s.created = now
	c.byID[s.id] = s
	c.parts += s.size.Load()
	c.mu.Unlock()
	if victim != nil {
		victim.close()
	}
	return true
}

// dropLocked takes a session out of the table.
// REQUIRES: mu held.
func (c *sessions) dropLocked(s *session) {
	delete(c.byID, s.id)
	c.parts -= s.size.Load()
}

// resize notes how many parts a session has now. One that has grown beyond the
// bound loses its slot; its client opens another, or does without.
func (c *sessions) resize(s *session, size int) {
	c.mu.Lock()
	n := int64(size)
	if c.byID[s.id] == s {
		c.parts += n - s.size.Load()
	}
	grown := n > s.size.Load()
	s.size.Store(n)
	crowded := grown && c.parts > c.maxParts
	c.mu.Unlock()
	if crowded {
		c.remove(s.id)
	}
}

// victimLocked returns the session whose slot one of the size may have. A thousand
// slots are looked through in microseconds, and only when all are taken.
// REQUIRES: mu held.
func (c *sessions) victimLocked(size int64, now time.Time) *session {
	var stalest, smallest *session
	var unused time.Duration
	for _, s := range c.byID {
		age := now.Sub(s.created)
		if idle := age - time.Duration(s.used.Load()); stalest == nil || idle > unused {
			stalest, unused = s, idle
		}
		if age > staleAfter && (smallest == nil || s.size.Load() < smallest.size.Load()) {
			smallest = s
		}
	}
	switch {
	case stalest != nil && unused > staleAfter:
		return stalest
	case smallest != nil && size >= smallest.size.Load():
		return smallest
	}
	return nil
}

// remove closes a session; an id that is unknown is fine.
func (c *sessions) remove(id int32) {
	c.mu.Lock()
	s := c.byID[id]
	if s != nil {
		c.dropLocked(s)
	}
	c.mu.Unlock()
	if s != nil {
		s.close()
	}
}

func (c *sessions) count() (sessions, partitions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byID), int(c.parts)
}
