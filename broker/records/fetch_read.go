package records

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
)

// batches are the records of a row: whole batches, that are given back in the end.
type batches interface {
	protocol.Source
	Buffers() [][]byte
	Size() int
	Rest() int
	Release()
}

// fetchRow is one partition of the answer.
type fetchRow struct {
	key            partKey
	code           int16
	hw, lso, start int64
	committed      bool // the aborted transactions are listed
	aborted        []log.AbortedTxn
	batches        batches
	diverging      bool
	epoch          int32 // where the logs part, if diverging
	end            int64
	hint           hint
	stats          *metrics.Topic // of its topic; nil for an error
}

// look finds out what the part has to tell now.
func (f *fetch) look(pt *part) {
	pt.bytes, pt.err, pt.view = 0, nil, replica.View{}
	if pt.p == nil || pt.p.Topic().Gone() {
		var w *replica.Waiter
		if f.incremental || pt.watch.Hung() {
			w = f.s.waiter
		}
		pt.resolve(f.h, f.byID, w)
	}
	switch {
	case pt.p == nil:
		pt.err = pt.fault
		return
	case f.follower:
		pt.err = kerr.NotLeaderForPartition // Only replicas may follow; none is served so far.
		return
	case f.maxBytes < 0 || pt.maxBytes < 0:
		pt.err = kerr.UnknownServerError // As Kafka says it.
		return
	}
	pt.at.Committed = f.req.IsolationLevel == 1
	pt.view, pt.err = pt.p.View(pt.at)
}

// idle tells that the last look has found nothing that the client needs to hear. A
// full answer names each partition anyway.
func (f *fetch) idle(pt *part) bool {
	if pt.err != nil || pt.view.Diverging || pt.at.Offset < pt.view.Upto {
		return false
	}
	return !f.incremental || pt.hw == pt.view.HighWatermark && pt.start == pt.view.Start
}

// weigh looks at the parts that have something to tell, and decides whether that is
// enough for an answer now. Parts that turn out to be idle are not looked at again
// before they move.
func (f *fetch) weigh() (enough bool) {
	s := f.s
	s.takeMarks()
	if f.req.MaxWaitMillis <= 0 {
		return true
	}
	total, missing := 0, int64(0)
	for pt := s.ready.head; pt != nil; {
		next := pt.next
		f.look(pt)
		switch {
		case pt.missing():
			missing++
		case pt.err != nil || pt.view.Diverging:
			return true
		case f.idle(pt):
			s.ready.remove(pt)
		default:
			total += f.weight(pt, total == 0)
		}
		if total >= f.minBytes && total > 0 {
			return true
		}
		pt = next
	}
	return f.minBytes <= total || missing == s.size.Load()
}

// weight is how many bytes the part would add to the answer. The first one may
// exceed its limit, as it gets at least one batch.
func (f *fetch) weight(pt *part, first bool) int {
	if pt.at.Offset >= pt.view.Upto {
		return 0
	}
	if f.minBytes <= 1 {
		return 1
	}
	limit := min(int(pt.maxBytes), f.maxBytes)
	if first {
		limit = max(limit, f.minBytes)
	}
	return pt.p.Available(pt.at.Offset, pt.view.Upto, limit)
}

// gather reads what the answer holds.
func (f *fetch) gather() {
	if f.incremental {
		f.gatherReady()
	} else {
		for i := range f.slab {
			f.answer(&f.slab[i])
		}
	}
	if f.granted >= 0 {
		f.held = f.memory()
		f.h.memory.change(f.held - f.granted)
	}
}

// memory is what the records in the rows take while they are sent.
func (f *fetch) memory() int {
	now, later := 0, 0
	for i := range f.rows {
		if b := f.rows[i].batches; b != nil {
			now += b.Size() - b.Rest()
			later += b.Rest()
		}
	}
	return now + min(later, laterBytes)
}

// spentWait is how long a fetch waits at least for memory that others hold.
const spentWait = time.Second

// answerBytes is how much one answer holds at most if the client does not ask for
// more at least: the next one is then read while the client works on this one, and
// memory is used again while it is warm.
const answerBytes = 8 << 20

// nowBytes is how much of an answer is read before it is begun: damage in there is
// told at once. The rest is read while the answer is written.
const nowBytes = 512 << 10

// laterBytes is the most memory that the rest of an answer takes at a time.
const laterBytes = 1 << 20

// admit takes a part of the budget before the first record is read. If others hold
// all of it, clients that do not read their answers for example, the fetch waits
// for a while, and is answered without records in the end.
func (f *fetch) admit() bool {
	if f.granted >= 0 {
		return !f.starved
	}
	want := max(min(f.maxBytes, max(f.minBytes, answerBytes)), 1)
	granted, ok := f.h.memory.take(want)
	if !ok {
		late := time.NewTimer(max(time.Until(f.deadline), spentWait))
		defer late.Stop()
		granted, ok = f.h.memory.wait(want, f.call.Ctx.Done(), f.call.Draining(), late.C)
	}
	f.granted, f.starved = granted, !ok
	return ok
}

// gatherReady goes once through the parts that have something to tell. Those whose
// records are in the answer go to the end of the queue, so that the others come
// first next time; when the answer is full the rest waits.
func (f *fetch) gatherReady() {
	q := &f.s.ready
	for pt, left := q.head, q.n; left > 0; left-- {
		next := pt.next
		if f.bytes > 0 && f.bytes >= f.granted {
			return
		}
		if sent := f.answer(pt); sent > 0 {
			q.remove(pt)
			q.push(pt)
		} else if f.idle(pt) {
			q.remove(pt)
		}
		pt = next
	}
}

// answer reads from the part and makes a row of what the client is to be told. It
// returns the bytes of records in it.
func (f *fetch) answer(pt *part) int {
	f.look(pt)
	row := fetchRow{key: pt.key, hw: -1, lso: -1, start: -1}
	if pt.err == nil {
		pt.err = f.read(pt, &row)
	}
	if pt.err != nil {
		f.refuse(pt, &row)
		f.rows = append(f.rows, row)
		return 0
	}
	row.diverging, row.epoch, row.end = pt.view.Diverging, pt.view.Epoch, pt.view.End
	row.hw, row.lso, row.start = pt.view.HighWatermark, pt.view.LastStable, pt.view.Start
	row.committed = pt.at.Committed
	sent := 0
	if row.batches != nil {
		sent = row.batches.Size()
		f.bytes += sent
	}
	row.stats = pt.p.Topic().Stats
	row.stats.Fetches.Inc()
	if f.incremental && sent == 0 && !row.diverging && row.hw == pt.hw && row.start == pt.start {
		return 0
	}
	if pt.hw, pt.start = row.hw, row.start; row.diverging {
		pt.hw = -1 // So that the partition is named again once the client has cut its log.
	}
	f.rows = append(f.rows, row)
	return sent
}

// read reads the part's records into the row, within what is left for the answer.
func (f *fetch) read(pt *part, row *fetchRow) error {
	if pt.view.Diverging {
		return nil
	}
	if pt.at.Offset >= pt.view.Upto || !f.admit() {
		return nil
	}
	limit := max(min(int(pt.maxBytes), f.granted-f.bytes), 0)
	first := f.bytes == 0
	if limit == 0 && !first {
		return nil
	}
	b, err := pt.p.Stream(pt.at.Offset, pt.view.Upto, limit, first, max(nowBytes-f.bytes, 0))
	if err != nil || b == nil {
		return err
	}
	if b.Size() == 0 {
		b.Release()
		return nil
	}
	if pt.at.Committed {
		row.aborted = pt.p.Aborted(pt.at.Offset, b.NextOffset())
	}
	row.batches = b
	return nil
}

// refuse makes an error of the row.
func (f *fetch) refuse(pt *part, row *fetchRow) {
	row.code = f.code(pt.err)
	row.committed = pt.missing() // Kafka sends an empty list instead of null then.
	pt.hw = -1
	t := f.topic(pt)
	if t == nil {
		return
	}
	t.Stats.FailedFetches.Inc()
	if f.req.Version >= 16 && (errors.Is(pt.err, kerr.NotLeaderForPartition) || errors.Is(pt.err, kerr.FencedLeaderEpoch)) {
		row.hint = f.leaders.hintFor(t, pt.key.index)
	}
}

// topic is the part's topic, nil if there is none. The part itself knows it only if
// the partition is here.
func (f *fetch) topic(pt *part) *replica.Topic {
	switch {
	case pt.p != nil:
		return pt.p.Topic()
	case f.byID:
		return f.h.replicas.TopicByID(pt.key.id)
	}
	return f.h.replicas.Topic(pt.key.name)
}

// code is what the client is told of an error. That its own request made no sense
// is not worth a report.
func (f *fetch) code(err error) int16 {
	if errors.Is(err, kerr.UnknownServerError) {
		return kerr.UnknownServerError.Code
	}
	code, _ := f.call.ErrorCode(err)
	return code
}

// failWhole answers the whole request with an error. Below v13 each partition
// carries it too, for clients that know no other place.
func (f *fetch) failWhole() {
	f.answerID = 0
	if f.req.Version >= 13 || f.req.Version >= 7 && !f.isFull() {
		return
	}
	for i := range f.req.Topics {
		rt := &f.req.Topics[i]
		for j := range rt.Partitions {
			row := fetchRow{key: partKey{name: rt.Topic, index: rt.Partitions[j].Partition}, hw: -1, lso: -1, start: -1, committed: true}
			row.code = f.code(f.failed)
			f.rows = append(f.rows, row)
		}
	}
}
