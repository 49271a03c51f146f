package records

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

// Acks of a produce.
const (
	acksNone   = 0
	acksLeader = 1
	acksAll    = -1
)

// adminClient is the client id that may write to the broker's own topics.
const adminClient = "__admin_client"

// produce is one Produce request on its way. It is used again.
type produce struct {
	h        *Handlers
	call     *protocol.Call
	req      *protocol.ProduceRequest
	deadline time.Time
	wait     time.Duration // of the client, before it produces again
	rows     []row
	ticket   log.Ticket
	appended int // rows that were appended
	failed   bool
	leaders  leaders
	pending  []replica.Pending
	enlisted []*row    // rows whose partitions the transaction may not include yet
	joining  Enlisting // what was asked about them, nil if there are none
	body     []byte
	buffers  protocol.Buffers

	// Method values, made once.
	finishFunc  protocol.Finish
	silentFunc  protocol.Finish
	readyFunc   func() bool
	releaseFunc func()
}

// row is one partition of the request.
type row struct {
	topic   int // index into the request's topics
	index   int32
	records []batch.RecordError
	batch   []byte
	cut     error // what was wrong with the records field

	found    *replica.Topic
	part     *replica.Partition
	appended bool
	epoch    int32
	end      int64 // the offset after the last record

	// A row that waits for its transaction's coordinator: what is to be appended,
	// and what was known of the transaction before it was asked.
	valid   []byte
	stamped int64
	guard   log.TxnGuard
	asked   int // how often the coordinator was asked

	code              int16
	base, time, start int64
	message           *string
	hint              hint
}

// failure is an error with what a client is told besides its code.
type failure struct {
	err     error
	message string
	records []batch.RecordError
	// started says that the answer names the log start: the log was asked.
	started bool
}

func (h *Handlers) newProduce() *produce {
	p := &produce{h: h}
	p.finishFunc, p.silentFunc, p.readyFunc, p.releaseFunc = p.finish, p.finishSilent, p.ready, p.release
	return p
}

// produceAPI is the row of the API table. Versions 0 to 2 are advertised for the
// sake of old librdkafka, which else takes compression for unsupported, and are
// not served.
func (h *Handlers) produceAPI() protocol.API {
	return protocol.API{
		Key: 0, Min: 3, Max: 13, Advertise: &[2]int16{0, 13},
		MaxBytes: h.live.Values().RequestMaxBytes,
		Decode:   protocol.DecodeProduce,
		Submit:   h.submitProduce,
	}
}

// submitProduce checks and appends, in the request's turn.
func (h *Handlers) submitProduce(c *protocol.Call) protocol.Finish {
	p := h.produces.Get().(*produce)
	p.call, p.req = c, c.Body.(*protocol.ProduceRequest)
	p.deadline = time.Now().Add(time.Duration(p.req.TimeoutMillis) * time.Millisecond)
	p.leaders.reset(h, c.Conn.Listener)
	h.chargeProduce(c)
	if whole := p.collect(); whole != nil {
		for i := range p.rows {
			p.fail(&p.rows[i], *whole)
		}
	} else {
		for i := range p.rows {
			r := &p.rows[i]
			if f := p.store(r); f != nil {
				p.fail(r, *f)
			}
		}
		p.enlist()
	}
	if p.req.Acks == acksNone {
		return p.unanswered()
	}
	if p.appended > 0 || p.joining != nil {
		c.ReadyWhen(p.readyFunc)
	}
	return p.finishFunc
}

// unanswered ends a request of acks=0. One that waits for its transaction's
// coordinator takes its turn behind those that do so before it; what comes behind
// it, such as the end of the transaction, must not overtake it.
func (p *produce) unanswered() protocol.Finish {
	if p.joining != nil {
		p.call.Alone()
		return p.silentFunc
	}
	c := p.call
	if r := p.finishSilent(); r.Close {
		return c.Reply(r)
	}
	return c.None()
}

// finishSilent appends what has waited. The only way to tell the client of an error
// is to hang up.
func (p *produce) finishSilent() protocol.Reply {
	p.join()
	failed := p.failed
	if p.appended > 0 {
		p.h.replicas.Kick()
	}
	p.release()
	return protocol.Reply{None: true, Close: failed}
}

// collect makes a row of each partition and cuts its batch out of the bytes. It
// returns what is wrong with the whole request, if anything is: bytes that cannot
// be taken apart, or transactional records of a client that names no transaction.
func (p *produce) collect() (whole *failure) {
	for t := range p.req.Topics {
		topic := &p.req.Topics[t]
		for i := range topic.Partitions {
			m := &topic.Partitions[i]
			r := row{topic: t, index: m.Index, base: -1, time: -1, start: -1}
			r.batch, r.cut = batch.Delimit(m.Records)
			if whole == nil {
				whole = p.wholeFailure(&r)
			}
			p.rows = append(p.rows, r)
		}
	}
	p.rows = mergeRows(p.req, p.rows)
	if whole == nil {
		whole = p.mixedProducers()
	}
	return whole
}

func (p *produce) wholeFailure(r *row) *failure {
	if errors.Is(r.cut, batch.ErrUndelimited) {
		f := p.invalid(r.cut)
		return &f
	}
	if r.cut != nil || p.req.TransactionalID != nil {
		return nil
	}
	if hd, err := batch.ParseHeader(r.batch); err == nil && hd.IsTransactional() {
		return &failure{err: kerr.TransactionalIDAuthorizationFailed}
	}
	return nil
}

// store checks one row's batch and appends it.
func (p *produce) store(r *row) *failure {
	topic := &p.req.Topics[r.topic]
	if p.req.Version >= 13 {
		r.found = p.h.replicas.TopicByID(topic.ID)
	} else {
		r.found = p.h.replicas.Topic(topic.Name)
	}
	if r.found == nil {
		return &failure{err: p.unknownTopic()}
	}
	r.found.Stats.Produces.Inc()
	part, lookup := replica.Find(r.found, r.index)
	if errors.Is(lookup, kerr.UnknownTopicOrPartition) {
		return &failure{err: lookup}
	}
	if f := p.checkEnvelope(r); f != nil {
		return f
	}
	if lookup != nil {
		return &failure{err: lookup}
	}
	r.part = part
	epoch, err := part.Writable(p.req.Acks == acksAll)
	if err != nil {
		return &failure{err: err, started: errors.Is(err, kerr.NotEnoughReplicas)}
	}
	b, stamped, f := p.validate(r)
	if f != nil {
		return f
	}
	r.valid, r.epoch, r.stamped, r.guard = b, epoch, stamped, p.firstGuard(b)
	return p.append(r)
}

// append stores a valid batch. If it would be the first of its transaction on the
// partition it waits for the coordinator instead.
func (p *produce) append(r *row) *failure {
	b, epoch, stamped := r.valid, r.epoch, r.stamped
	a, err := r.part.AppendTxn(b, epoch, r.guard)
	if errors.Is(err, log.ErrTxnUnverified) {
		return p.unverified(r)
	}
	if err != nil {
		// An old epoch would not have come past the coordinator.
		asked := r.guard == log.Unverified && errors.Is(err, kerr.InvalidProducerEpoch)
		return &failure{err: p.goneByID(err), started: !asked}
	}
	r.appended = true
	r.base, r.end, r.start, r.time = a.BaseOffset, a.LastOffset+1, a.Start, stamped
	if a.Duplicate {
		// Kafka answers a repeated batch with the time of the first.
		r.time = a.MaxTimestamp
	} else {
		r.found.Stats.BytesIn.Add(len(b))
		r.found.Stats.MessagesIn.Add(int(a.LastOffset-a.BaseOffset) + 1)
	}
	p.ticket = p.ticket.Max(a.Ticket)
	p.appended++
	return nil
}

// ready tells whether all that was appended is durable already.
func (p *produce) ready() bool {
	if p.joining != nil {
		return false
	}
	for i := range p.rows {
		if r := &p.rows[i]; r.appended && r.part.Log().Durable() < r.end {
			return false
		}
	}
	return true
}

// finish waits until what was appended may be acknowledged, and answers.
func (p *produce) finish() protocol.Reply {
	p.join()
	if p.appended > 0 {
		p.h.parkedProduces.Add(1)
		p.await()
		p.h.parkedProduces.Add(-1)
	}
	p.call.Working()
	p.wait = p.call.Throttled()
	p.body = p.encode(p.body[:0])
	p.buffers = protocol.Buffers{Pieces: append(p.buffers.Pieces[:0], p.body), Release: p.releaseFunc}
	return protocol.Reply{Body: &p.buffers}
}

// await waits for one sync of all that was appended, then, for acks=all, for the
// other replicas. Whether the broker still leads is asked last.
func (p *produce) await() {
	err := p.h.replicas.Commit(p.ticket)
	p.pending = p.pending[:0]
	for i := range p.rows {
		r := &p.rows[i]
		if !r.appended {
			continue
		}
		if err != nil {
			p.fail(r, failure{err: err})
			continue
		}
		p.pending = append(p.pending, replica.Pending{Partition: r.part, Epoch: r.epoch, End: r.end})
	}
	if err != nil {
		return
	}
	if p.req.Acks == acksAll {
		replica.AwaitReplicated(p.pending, time.Until(p.deadline), p.call.Draining())
	}
	next := 0
	for i := range p.rows {
		r := &p.rows[i]
		if !r.appended {
			continue
		}
		a := &p.pending[next]
		next++
		if a.Err == nil && p.req.Acks != acksAll {
			a.Err = r.part.Confirm(r.epoch)
		}
		if a.Err != nil {
			p.fail(r, failure{err: p.goneByID(a.Err)})
		}
	}
}

// fail makes a row's answer an error.
func (p *produce) fail(r *row, f failure) {
	p.failed = true
	r.base, r.time, r.start = -1, -1, -1
	r.code, _ = p.call.ErrorCode(f.err)
	r.records = f.records
	if f.message != "" {
		r.message = &f.message
	}
	if f.started && r.part != nil && !errors.Is(f.err, kerr.UnknownTopicOrPartition) &&
		!errors.Is(f.err, kerr.NotLeaderForPartition) && !errors.Is(f.err, kerr.KafkaStorageError) {
		r.start = r.part.Log().Start()
	}
	if p.req.Version >= 10 && errors.Is(f.err, kerr.NotLeaderForPartition) {
		r.hint = p.leaders.hintFor(r.found, r.index)
	}
	if r.found != nil {
		r.found.Stats.FailedProduces.Inc()
	}
}

// unknownTopic is the error for a topic that is not there.
func (p *produce) unknownTopic() error {
	if p.req.Version >= 13 {
		return kerr.UnknownTopicID
	}
	return kerr.UnknownTopicOrPartition
}

// goneByID turns the error for a partition that was deleted meanwhile into the one
// for a client that named it by id.
func (p *produce) goneByID(err error) error {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return p.unknownTopic()
	}
	return err
}

// release makes the request's memory ready for the next one.
func (p *produce) release() {
	clear(p.rows)
	clear(p.enlisted)
	clear(p.pending)
	clear(p.buffers.Pieces)
	p.rows, p.enlisted, p.pending = p.rows[:0], p.enlisted[:0], p.pending[:0]
	p.call, p.req, p.ticket, p.appended, p.failed, p.wait = nil, nil, log.Ticket{}, 0, false, 0
	if cap(p.body) > maxKept {
		p.body = nil
	}
	if cap(p.rows) > maxKept/256 {
		p.rows, p.enlisted, p.pending = nil, nil, nil
	}
	p.h.produces.Put(p)
}

// maxKept is the most memory that a request keeps for the next one.
const maxKept = 1 << 20
