package records

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
)

// The epochs of KIP-227 that are no counts.
const (
	initialEpoch = 0  // a full fetch that asks for a session
	finalEpoch   = -1 // a full fetch that asks for none, and closes the one it names
)

// session is the partitions that a client fetches, and where it is in them.
//
// A fetch has the session's turn while it works on the parts, also while it is
// parked. It is no mutex, since its holder waits.
type session struct {
	id      int32
	byID    bool // topics are named by id
	created time.Time
	used    atomic.Int64 // when it was used last, in nanoseconds since created
	size    atomic.Int64 // number of parts

	turn chan struct{} // holds one token while nobody has the turn

	// Of the turn's holder.
	parts     map[partKey]*part
	isolation int8
	ready     queue // what a fetch has to look at; all other parts have nothing to tell
	waiter    *replica.Waiter

	mu     sync.Mutex
	epoch  int32 // of the next request, guarded by mu
	closed bool  // guarded by mu
}

func (s *session) enter() { <-s.turn }

func (s *session) tryEnter() bool {
	select {
	case <-s.turn:
		return true
	default:
		return false
	}
}

// leave gives the turn back. Who closes the session while somebody has the turn
// leaves the cleaning to him.
func (s *session) leave() {
	s.turn <- struct{}{}
	if s.isClosed() && s.tryEnter() {
		s.dropWatches()
		s.turn <- struct{}{}
	}
}

// close ends the session. A fetch that is parked in it goes on to its end.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.tryEnter() {
		s.dropWatches()
		s.turn <- struct{}{}
	}
}

// REQUIRES: the turn.
func (s *session) dropWatches() {
	for _, pt := range s.parts {
		pt.watch.Drop()
	}
}

func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// advance takes an incremental request in, if it is the one that is next. A parked
// fetch of an earlier epoch is woken to make room.
func (s *session) advance(epoch int32, byID bool) (next int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, kerr.FetchSessionIDNotFound
	case s.epoch != epoch:
		return 0, kerr.InvalidFetchSessionEpoch
	case s.byID != byID:
		return 0, kerr.FetchSessionTopicIDError
	}
	s.epoch = nextEpoch(epoch)
	s.waiter.Wake()
	return s.epoch, nil
}

// current tells whether the request after which next is due is the last one.
func (s *session) current(next int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch == next
}

func nextEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1
	}
	return epoch + 1
}

// update makes the changes that a request asks for: partitions that are new or
// that the client has moved, and those that it no longer wants.
// REQUIRES: the turn.
func (s *session) update(h *Handlers, req *kmsg.FetchRequest) {
	if s.isolation != req.IsolationLevel {
		s.isolation = req.IsolationLevel
		for _, pt := range s.parts {
			s.ready.push(pt) // What was idle may have something to tell now.
		}
	}
	for i := range req.Topics {
		rt := &req.Topics[i]
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			k := partKey{index: rp.Partition}
			if s.byID {
				k.id = rt.TopicID
			} else {
				k.name = rt.Topic
			}
			pt := s.parts[k]
			if pt == nil {
				pt = &part{key: k, hw: -1, start: -1}
				s.parts[k] = pt
				pt.resolve(h, s.byID, s.waiter)
			}
			pt.ask(rp, req.Version)
			s.ready.push(pt)
		}
	}
	for i := range req.ForgottenTopics {
		ft := &req.ForgottenTopics[i]
		for _, n := range ft.Partitions {
			k := partKey{index: n}
			if s.byID {
				k.id = ft.TopicID
			} else {
				k.name = ft.Topic
			}
			if pt := s.parts[k]; pt != nil {
				pt.watch.Drop()
				s.ready.remove(pt)
				delete(s.parts, k)
			}
		}
	}
	h.sessions.resize(s, len(s.parts))
}

// takeMarks queues the parts whose partitions have moved.
// REQUIRES: the turn.
func (s *session) takeMarks() {
	for x := s.waiter.Take(); x != nil; {
		next := x.Next()
		s.ready.push(x.Of.(*part))
		x = next
	}
}
