package records

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/protocol"
)

// fetch is one Fetch request on its way. It is used again.
type fetch struct {
	h        *Handlers
	call     *protocol.Call
	req      *kmsg.FetchRequest
	byID     bool // topics are named by id
	follower bool
	deadline time.Time
	maxBytes int
	minBytes int

	// s is the session, own unless the request is incremental.
	s    *session
	own  *session
	slab []part // the parts of own, in the order of the request
	// incremental requests are answered with what has changed only.
	incremental bool
	next        int32 // the session's epoch after this request
	late        bool  // the session could not be had at Submit
	answerID    int32
	failed      error // answers the whole request

	rows    []fetchRow
	bytes   int           // of records in rows
	held    int           // memory that they take of the budget
	wait    time.Duration // of the client, before it fetches again
	granted int           // bytes of the broker's budget for them; not asked for while negative
	starved bool          // others hold all of it
	leaders leaders
	body    []byte
	cuts    []cut
	buffers protocol.Buffers

	// Method values, made once.
	finishFunc  protocol.Finish
	releaseFunc func()
}

func (h *Handlers) newFetch() *fetch {
	f := &fetch{h: h}
	f.finishFunc, f.releaseFunc = f.finish, f.release
	return f
}

func (h *Handlers) fetchAPI() protocol.API {
	return protocol.API{Key: 1, Min: 4, Max: 18, Detached: true, Submit: h.submitFetch}
}

// submitFetch looks whether there is enough to answer, so that only a fetch that
// has to wait is handed over to another goroutine.
func (h *Handlers) submitFetch(c *protocol.Call) protocol.Finish {
	f := h.fetches.Get().(*fetch)
	f.begin(c)
	if f.failed != nil {
		return f.finishFunc
	}
	if !f.openNow() {
		f.late = true
		c.MayPark()
		return f.finishFunc
	}
	if f.failed != nil {
		return f.finishFunc
	}
	if !f.weigh() {
		c.MayPark()
	}
	f.leave()
	return f.finishFunc
}

func (f *fetch) begin(c *protocol.Call) {
	req := c.Request.(*kmsg.FetchRequest)
	f.call, f.req = c, req
	f.byID = req.Version >= 13
	f.follower = req.ReplicaID >= 0
	if req.Version >= 15 {
		f.follower = req.ReplicaState.ID >= 0
	}
	f.deadline = time.Now().Add(time.Duration(req.MaxWaitMillis) * time.Millisecond)
	f.maxBytes = min(int(req.MaxBytes), f.h.live.Values().FetchMaxBytes)
	f.boundByQuota()
	f.minBytes = min(int(req.MinBytes), max(f.maxBytes, 0))
	f.granted = -1
	f.leaders.reset(f.h, c.Conn.Listener)
	if req.IsolationLevel != 0 && req.IsolationLevel != 1 {
		f.failed = kerr.UnknownServerError // As Kafka says it.
	}
}

// openNow finds or makes the session and enters it. It tells false if another
// request has the session's turn: then open waits for it.
func (f *fetch) openNow() bool {
	if f.isFull() {
		f.openFull()
		return true
	}
	if f.s = f.h.sessions.get(f.req.SessionID); f.s == nil {
		f.failed = kerr.FetchSessionIDNotFound
		return true
	}
	if !f.s.tryEnter() {
		return false
	}
	f.advance()
	if f.failed != nil {
		f.leave()
		return true
	}
	f.takeIn()
	return true
}

// open is openNow for a session whose turn another request has: that one is older,
// and gives way once the epoch has moved on.
func (f *fetch) open() {
	f.advance()
	if f.failed != nil {
		return
	}
	f.s.enter()
	f.takeIn()
}

func (f *fetch) isFull() bool {
	return f.req.Version < 7 || f.req.SessionEpoch == initialEpoch || f.req.SessionEpoch == finalEpoch
}

// openFull makes the request's own list of parts.
func (f *fetch) openFull() {
	if f.req.Version >= 7 && f.req.SessionID != 0 {
		f.h.sessions.remove(f.req.SessionID)
	}
	f.fill()
	f.s = f.own
}

func (f *fetch) advance() {
	f.next, f.failed = f.s.advance(f.req.SessionEpoch, f.byID)
}

// takeIn brings the session up to the request. A session in which nothing is left
// is over, and so is its answer's id.
// REQUIRES: the turn.
func (f *fetch) takeIn() {
	f.s.update(f.h, f.req)
	if len(f.s.parts) > 0 {
		f.incremental, f.answerID = true, f.s.id
		return
	}
	f.h.sessions.remove(f.s.id)
	f.s.leave()
	f.fill()
	f.s = f.own
}

// fill lists the partitions that a full request names, each once: of one that is
// named again the last position counts.
func (f *fetch) fill() {
	if f.own == nil {
		f.own = &session{waiter: replica.NewWaiter()}
	}
	n := 0
	for i := range f.req.Topics {
		n += len(f.req.Topics[i].Partitions)
	}
	if cap(f.slab) < n {
		f.slab = make([]part, 0, n)
	}
	f.own.byID = f.byID
	if f.own.parts == nil && (n > lookBack || f.wantsSession()) {
		f.own.parts = make(map[partKey]*part, n)
	}
	for i := range f.req.Topics {
		rt := &f.req.Topics[i]
		k := partKey{name: rt.Topic}
		if f.byID {
			k = partKey{id: rt.TopicID}
		}
		for j := range rt.Partitions {
			k.index = rt.Partitions[j].Partition
			f.fillPart(k, &rt.Partitions[j])
		}
	}
	f.own.size.Store(int64(len(f.slab)))
}

func (f *fetch) fillPart(k partKey, rp *kmsg.FetchRequestTopicPartition) {
	if pt := f.filled(k); pt != nil {
		pt.ask(rp, f.req.Version)
		return
	}
	f.slab = f.slab[:len(f.slab)+1]
	pt := &f.slab[len(f.slab)-1]
	pt.key, pt.hw, pt.start, pt.p, pt.fault = k, -1, -1, nil, nil
	pt.ask(rp, f.req.Version)
	pt.resolve(f.h, f.byID, nil)
	if f.own.parts != nil {
		f.own.parts[k] = pt
	}
	f.own.ready.push(pt)
}

// filled finds a part that was named before.
func (f *fetch) filled(k partKey) *part {
	if f.own.parts != nil {
		return f.own.parts[k]
	}
	for i := range f.slab {
		if f.slab[i].key == k {
			return &f.slab[i]
		}
	}
	return nil
}

// wantsSession tells whether the client asks for a session.
func (f *fetch) wantsSession() bool {
	return f.req.Version >= 7 && f.req.SessionEpoch == initialEpoch && !f.follower
}

// leave gives the session's turn back, if it is one that others can have.
func (f *fetch) leave() {
	if f.s != f.own && f.s != nil {
		f.s.leave()
	}
}

// finish waits until there is enough, or the time is over, and answers.
func (f *fetch) finish() protocol.Reply {
	f.run()
	f.wait = f.call.Throttled() // Of a failed one, too.
	f.countOut()
	f.encode()
	return protocol.Reply{Body: &f.buffers}
}

func (f *fetch) run() {
	if f.failed == nil {
		f.reenter()
	}
	if f.failed != nil {
		f.failWhole()
		return
	}
	f.await()
	f.call.Working()
	if f.incremental && !f.s.current(f.next) {
		// A later request of the session has come by another connection.
		f.failed = kerr.InvalidFetchSessionEpoch
		f.leave()
		f.failWhole()
		return
	}
	f.gather()
	if f.charge(); f.wait > 0 {
		f.withhold()
	} else if f.wantsSession() && f.s == f.own && len(f.slab) > 0 {
		f.promote()
	}
	f.leave()
}

// reenter takes the session's turn again, which is not held between Submit and
// Finish: nobody promises that there is a Finish if the client has gone.
func (f *fetch) reenter() {
	if f.late {
		f.open()
		return
	}
	if f.s == f.own {
		return
	}
	f.failed = kerr.InvalidFetchSessionEpoch
	if !f.s.current(f.next) {
		return
	}
	f.s.enter()
	switch {
	case f.s.isClosed():
		f.failed = kerr.FetchSessionIDNotFound
	case f.s.current(f.next):
		f.failed = nil
		return
	}
	f.leave()
}

// await parks the request until there is enough to answer.
func (f *fetch) await() {
	if f.weigh() {
		return
	}
	if f.s == f.own {
		f.hang()
	}
	f.h.parkedFetches.Add(1)
	defer f.h.parkedFetches.Add(-1)
	timer := time.NewTimer(time.Until(f.deadline))
	defer timer.Stop()
	for !f.weigh() {
		select {
		case <-f.s.waiter.Signal():
			if f.incremental && !f.s.current(f.next) {
				return
			}
		case <-timer.C:
			return
		case <-f.call.Ctx.Done():
			return
		case <-f.call.Draining():
			return
		}
	}
}

// hang watches all parts of a full request, and looks at each of them again, since
// they were not watched when they were looked at.
func (f *fetch) hang() {
	for i := range f.slab {
		pt := &f.slab[i]
		if pt.p != nil && !pt.watch.Hung() {
			pt.watch.Of = pt
			pt.watch.Hang(f.own.waiter, pt.p)
		}
		f.own.ready.push(pt)
	}
}

// promote makes a session of the request's own list.
func (f *fetch) promote() {
	s := &session{
		byID: f.byID, epoch: nextEpoch(initialEpoch), isolation: f.req.IsolationLevel,
		parts: f.own.parts, waiter: f.own.waiter, turn: make(chan struct{}, 1),
	}
	s.size.Store(int64(len(s.parts)))
	if !f.h.sessions.add(s) {
		return
	}
	f.hang()
	s.ready = f.own.ready
	f.answerID = s.id
	f.own, f.s, f.slab = nil, nil, nil
	s.leave()
}

// release gives the records' memory back and makes the request's ready for the
// next one.
func (f *fetch) release() {
	for i := range f.rows {
		if b := f.rows[i].batches; b != nil {
			b.Release()
		}
	}
	f.h.memory.change(-f.held)
	f.clear()
	f.h.fetches.Put(f)
}

func (f *fetch) clear() {
	if f.own != nil {
		for i := range f.slab {
			pt := &f.slab[i]
			pt.watch.Drop()
			f.own.ready.remove(pt)
			pt.p, pt.watch.Of, pt.key.name = nil, nil, ""
		}
		f.own.waiter.Take() // Clears the marks of watches that are dropped.
		if clear(f.own.parts); len(f.slab) > keptParts {
			f.own.parts = nil
		}
	}
	clear(f.rows)
	clear(f.buffers.Pieces)
	clear(f.buffers.Insets)
	f.slab, f.rows, f.cuts = f.slab[:0], f.rows[:0], f.cuts[:0]
	if cap(f.slab) > keptParts || cap(f.rows) > keptParts {
		f.slab, f.rows = nil, nil
	}
	if cap(f.body) > maxKept {
		f.body = nil
	}
	f.call, f.req, f.s, f.failed = nil, nil, nil, nil
	f.starved, f.wait = false, 0
	f.incremental, f.late, f.answerID, f.next = false, false, 0, 0
	f.bytes, f.held = 0, 0
}

// keptParts is the most partitions for which a request keeps memory.
const keptParts = 1024
