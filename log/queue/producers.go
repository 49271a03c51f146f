package queue

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/mainstem/mainstem/protocol/batch"
)

// Errors of the checks on producers. Callers map them to Kafka's codes.
var (
	// ErrOutOfOrderSequence: the sequence does not follow the last one, or overlaps it (45).
	ErrOutOfOrderSequence = errors.New("out of order sequence number")
	// ErrProducerEpoch: the producer epoch is older than the one known (47).
	ErrProducerEpoch = errors.New("invalid producer epoch")
	// ErrTxnState: a batch outside of the transaction that its producer has open (48).
	ErrTxnState = errors.New("invalid transaction state")
	// ErrCoordinatorEpoch: a marker of a transaction coordinator that was replaced (52).
	ErrCoordinatorEpoch = errors.New("transaction coordinator fenced")
)

// RememberedBatches is how many batches of a producer are remembered to tell
// a repeated one, which is also how many a client may have in flight.
const RememberedBatches = 5

// SeqBatch is a remembered batch of a producer.
type SeqBatch struct {
	First, Last  int32 // sequence numbers
	LastOffset   int64
	MaxTimestamp int64
}

// BaseOffset returns the offset of the batch's first record.
func (b SeqBatch) BaseOffset() int64 {
	return b.LastOffset - int64((b.Last-b.First)&math.MaxInt32)
}

// Producer is what is remembered of one producer id.
type Producer struct {
	ID               int64
	TxnStart         int64 // first offset of the open transaction, -1 if none
	Touched          int64 // broker's clock in milliseconds at the last batch or marker
	LastTimestamp    int64 // of the last batch or marker
	CoordinatorEpoch int32 // of the last marker, -1 if none
	Epoch            int16
	n                uint8  // batches in use
	markers          uint32 // since the log was opened
	batches          [RememberedBatches]SeqBatch
}

// Batches returns the remembered batches, oldest first.
func (p *Producer) Batches() []SeqBatch { return p.batches[:p.n] }

// LastSequence returns the last sequence number of the epoch, -1 if none.
func (p *Producer) LastSequence() int32 {
	if p.n == 0 {
		return -1
	}
	return p.batches[p.n-1].Last
}

// push remembers a batch.
func (p *Producer) push(b SeqBatch) {
	if p.n == RememberedBatches {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = b
	p.n++
}

// setEpoch begins a producer epoch: the sequence starts anew.
func (p *Producer) setEpoch(epoch int16) {
	if p.Epoch != epoch {
		p.Epoch, p.n = epoch, 0
	}
}

// Producers are the producers of one queue and its transactions.
type Producers struct {
	byID map[int64]*Producer // nil while there is none
	open []openTxn           // by first offset
	done []doneTxn           // ended, but the marker is not known to be below the high watermark
	// waiting are first batches that wait to be verified; memory only.
	waiting map[int64]waiting
}

// openTxn is a transaction without a marker.
type openTxn struct{ producer, first int64 }

// doneTxn is a transaction whose marker lies at last.
type doneTxn struct{ first, last int64 }

// Get returns the producer or nil.
func (ps *Producers) Get(id int64) *Producer { return ps.byID[id] }

// Len returns the number of producers.
func (ps *Producers) Len() int { return len(ps.byID) }

// Sorted returns the producers by id.
func (ps *Producers) Sorted() []*Producer {
	if len(ps.byID) == 0 {
		return nil
	}
	all := make([]*Producer, 0, len(ps.byID))
	for _, p := range ps.byID {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Producer) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Check decides on a batch that a client or a coordinator wants to append. A
// batch that is stored already comes back as the remembered one. A
// coordinator's batch on behalf of a producer has no sequence; of it only the
// epoch and the transaction count.
func (ps *Producers) Check(h *batch.Header) (*SeqBatch, error) {
	if !h.HasProducer() {
		return nil, nil
	}
	p := ps.byID[h.ProducerID]
	if p == nil {
		return nil, nil // Nothing is known: any sequence is accepted.
	}
	if h.ProducerEpoch < p.Epoch {
		return nil, ErrProducerEpoch
	}
	if h.ProducerEpoch == p.Epoch && h.BaseSequence >= 0 {
		first, last := h.BaseSequence, h.LastSequence()
		for i := range p.Batches() {
			if b := &p.batches[i]; b.First == first && b.Last == last {
				return b, nil
			}
		}
	}
	if h.BaseSequence >= 0 && h.BaseSequence != p.nextSequence(h.ProducerEpoch) {
		return nil, ErrOutOfOrderSequence
	}
	if p.TxnStart >= 0 && !h.IsTransactional() {
		return nil, ErrTxnState
	}
	return nil, nil
}

// nextSequence returns the sequence that a batch of the epoch must have.
func (p *Producer) nextSequence(epoch int16) int32 {
	if last := p.LastSequence(); epoch == p.Epoch && last >= 0 {
		return batch.AddSequence(last, 1)
	}
	return 0
}

// CheckMarker decides on a transaction marker.
func (ps *Producers) CheckMarker(m batch.Marker) error {
	p := ps.byID[m.ProducerID]
	switch {
	case p == nil:
		return nil
	case m.ProducerEpoch < p.Epoch:
		return ErrProducerEpoch
	case m.CoordinatorEpoch < p.CoordinatorEpoch:
		return ErrCoordinatorEpoch
	}
	return nil
}

// get returns the producer, made if need be.
func (ps *Producers) get(id int64) *Producer {
	p := ps.byID[id]
	if p == nil {
		p = &Producer{ID: id, TxnStart: -1, CoordinatorEpoch: -1, Epoch: -1, LastTimestamp: -1}
		ps.put(p)
	}
	return p
}

func (ps *Producers) put(p *Producer) {
	if ps.byID == nil {
		ps.byID = make(map[int64]*Producer, 1)
	}
	ps.byID[p.ID] = p
}

// data notes a batch that was appended at h.BaseOffset.
func (ps *Producers) data(h *batch.Header, now int64) {
	p := ps.get(h.ProducerID)
	p.setEpoch(h.ProducerEpoch)
	if h.BaseSequence >= 0 {
		p.push(SeqBatch{First: h.BaseSequence, Last: h.LastSequence(), LastOffset: h.LastOffset(), MaxTimestamp: h.MaxTimestamp})
	}
	p.LastTimestamp, p.Touched = h.MaxTimestamp, now
	delete(ps.waiting, p.ID)
	if h.IsTransactional() && p.TxnStart < 0 {
		p.TxnStart = h.BaseOffset
		ps.open = append(ps.open, openTxn{p.ID, h.BaseOffset})
	}
}

// marker notes a transaction marker at offset and returns the aborted
// transaction that it ended, if any.
func (ps *Producers) marker(m batch.Marker, offset, now int64) (AbortedTxn, bool) {
	p := ps.get(m.ProducerID)
	p.setEpoch(m.ProducerEpoch)
	p.markers++
	delete(ps.waiting, p.ID)
	p.CoordinatorEpoch, p.LastTimestamp, p.Touched = m.CoordinatorEpoch, m.Timestamp, now
	first := p.TxnStart
	if first < 0 {
		return AbortedTxn{}, false
	}
	p.TxnStart = -1
	ps.open = slices.DeleteFunc(ps.open, func(o openTxn) bool { return o.producer == p.ID })
	ps.done = append(ps.done, doneTxn{first, offset})
	if m.Type != batch.Abort {
		return AbortedTxn{}, false
	}
	stable := offset + 1
	if len(ps.open) > 0 {
		stable = ps.open[0].first
	}
	return AbortedTxn{ProducerID: p.ID, First: first, Last: offset, LastStable: stable}, true
}

// firstUnstable returns the lowest offset of a transaction that is open, or
// whose marker is not below the high watermark.
func (ps *Producers) firstUnstable(highWatermark int64) (int64, bool) {
	first, found := int64(math.MaxInt64), false
	if len(ps.open) > 0 {
		first, found = ps.open[0].first, true
	}
	for _, d := range ps.done {
		if d.last >= highWatermark && d.first < first {
			first, found = d.first, true
		}
	}
	return first, found
}

// settle forgets ended transactions whose marker is below the high watermark.
func (ps *Producers) settle(highWatermark int64) {
	if len(ps.done) == 0 {
		return
	}
	ps.done = slices.DeleteFunc(ps.done, func(d doneTxn) bool { return d.last < highWatermark })
	if len(ps.done) == 0 {
		ps.done = nil
	}
}

// Expire forgets producers that were idle since before the time and have no
// transaction open, and returns how many.
func (ps *Producers) Expire(before int64) int {
	n := 0
	for id, p := range ps.byID {
		if p.TxnStart < 0 && p.Touched < before {
			delete(ps.byID, id)
			n++
		}
	}
	if len(ps.byID) == 0 {
		ps.byID = nil
	}
	return n
}

// Rewound returns what was known when the log ended at an offset. Producers
// that nothing at or above it touched are as they are now; for the others
// counts what a replay up to the offset found.
func (ps *Producers) Rewound(end int64, touched map[int64]bool, replayed *Producers) Producers {
	var r Producers
	for _, p := range ps.byID {
		was := p
		if touched[p.ID] {
			was = replayed.byID[p.ID]
		}
		if was == nil {
			continue
		}
		q := *was
		if p.TxnStart >= 0 && p.TxnStart < end {
			q.TxnStart = p.TxnStart // Open now and begun before: it was open all the while.
		}
		r.put(&q)
		if q.TxnStart >= 0 {
			r.open = append(r.open, openTxn{q.ID, q.TxnStart})
		}
	}
	slices.SortFunc(r.open, func(a, b openTxn) int { return cmp.Compare(a.first, b.first) })
	for _, d := range ps.done {
		if d.last < end {
			r.done = append(r.done, d)
		}
	}
	return r
}

// reset replaces everything, as after a truncation.
func (ps *Producers) reset(to Producers) { *ps = to }
