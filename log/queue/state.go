package queue

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mainstem/mainstem/log/commitlog"
)

// State codec. A partition's state is what replaces the frames up to AsOf:
//
//	u8      version, 1
//	u8      flags: 1 deleted, 2 async
//	uvarint asOf, LSN of the newest frame in the state
//	            (deleted: nothing follows)
//	string  topic name (uvarint length, bytes)
//	uvarint start, log start offset
//	uvarint end - start
//	uvarint high watermark, a lower bound
//	uvarint bytes of the live batches
//	varint  latest leader epoch
//	list    epochs: varint epoch, uvarint start
//	uvarint active base; varint first timestamp; uvarint bytes
//	list    producers: varint id; varint epoch; varint coordinator epoch;
//	            varint transaction start; varint last timestamp;
//	            uvarint touched (ms); u8 batches, oldest first: uvarint first
//	            sequence; uvarint last; uvarint last offset; varint max
//	            timestamp
//	list    ended transactions above the watermark: uvarint first, uvarint last
//	uvarint from: aborted transactions whose marker lies at or above it follow,
//	            earlier ones are as in the state before
//	list    aborted: varint producer; uvarint first; uvarint marker; uvarint
//	            stable
//	list    cuts: uvarint LSN; uvarint offset
//	list    holes: uvarint first; uvarint last
//
// A list is a uvarint count and its items. Integers are as in encoding/binary.
const stateVersion = 1

const (
	flagDeleted = 1 << 0
	flagAsync   = 1 << 1
)

// Errors of the formats in this package.
var (
	// ErrCorrupt: the bytes are not what was written.
	ErrCorrupt = errors.New("corrupt data")
	// ErrFormatTooNew: the bytes were written by a newer version.
	ErrFormatTooNew = errors.New("format is newer than this version reads")
)

// State is a partition's state outside of memory.
type State struct {
	Topic         string
	Deleted       bool
	Async         bool
	HighWatermark int64
	Queue         Queue
	AbortedFrom   int64 // the queue's aborted transactions are those with a marker at or above
}

// Tombstone returns the state of a partition that the frame at lsn deleted.
func Tombstone(lsn commitlog.LSN) *State {
	return &State{Deleted: true, Queue: Queue{asOf: lsn}}
}

// Append appends the state's encoding to b.
func (s *State) Append(b []byte) []byte {
	flags := byte(0)
	if s.Deleted {
		flags |= flagDeleted
	}
	if s.Async {
		flags |= flagAsync
	}
	q := &s.Queue
	b = append(b, stateVersion, flags)
	b = binary.AppendUvarint(b, uint64(q.asOf))
	if s.Deleted {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(s.Topic)))
	b = append(b, s.Topic...)
	b = binary.AppendUvarint(b, uint64(q.start))
	b = binary.AppendUvarint(b, uint64(q.end-q.start))
	b = binary.AppendUvarint(b, uint64(max(s.HighWatermark, 0)))
	b = binary.AppendUvarint(b, uint64(q.bytes))
	b = binary.AppendVarint(b, int64(q.Epochs.latest))
	b = binary.AppendUvarint(b, uint64(len(q.Epochs.starts)))
	for _, e := range q.Epochs.starts {
		b = binary.AppendVarint(b, int64(e.Epoch))
		b = binary.AppendUvarint(b, uint64(e.Start))
	}
	b = binary.AppendUvarint(b, uint64(q.Active.Base))
	b = binary.AppendVarint(b, q.Active.FirstTimestamp)
	b = binary.AppendUvarint(b, uint64(q.Active.Bytes))
	b = q.Producers.Append(b)
	b = appendAborted(b, q.aborted, s.AbortedFrom)
	b = binary.AppendUvarint(b, uint64(len(q.cuts)))
	for _, c := range q.cuts {
		b = binary.AppendUvarint(b, uint64(c.LSN))
		b = binary.AppendUvarint(b, uint64(c.Offset))
	}
	b = binary.AppendUvarint(b, uint64(len(q.holes)))
	for _, h := range q.holes {
		b = binary.AppendUvarint(b, uint64(h.First))
		b = binary.AppendUvarint(b, uint64(h.Last))
	}
	return b
}

// Append appends the encoding of all producers to b.
func (ps *Producers) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(ps.byID)))
	if len(ps.byID) == 1 {
		for _, p := range ps.byID {
			b = p.append(b)
		}
	} else {
		for _, p := range ps.Sorted() {
			b = p.append(b)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(ps.done)))
	for _, d := range ps.done {
		b = binary.AppendUvarint(b, uint64(d.first))
		b = binary.AppendUvarint(b, uint64(d.last))
	}
	return b
}

func (p *Producer) append(b []byte) []byte {
	b = binary.AppendVarint(b, p.ID)
	b = binary.AppendVarint(b, int64(p.Epoch))
	b = binary.AppendVarint(b, int64(p.CoordinatorEpoch))
	b = binary.AppendVarint(b, p.TxnStart)
	b = binary.AppendVarint(b, p.LastTimestamp)
	b = binary.AppendUvarint(b, uint64(max(p.Touched, 0)))
	b = append(b, p.n)
	for _, s := range p.Batches() {
		b = binary.AppendUvarint(b, uint64(s.First))
		b = binary.AppendUvarint(b, uint64(s.Last))
		b = binary.AppendUvarint(b, uint64(s.LastOffset))
		b = binary.AppendVarint(b, s.MaxTimestamp)
	}
	return b
}

func appendAborted(b []byte, a aborted, from int64) []byte {
	list := a.from(from)
	b = binary.AppendUvarint(b, uint64(from))
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, t := range list {
		b = binary.AppendVarint(b, t.ProducerID)
		b = binary.AppendUvarint(b, uint64(t.First))
		b = binary.AppendUvarint(b, uint64(t.Last))
		b = binary.AppendUvarint(b, uint64(t.LastStable))
	}
	return b
}

// DecodeState reads a state. It never takes more memory than a small multiple of len(b).
func DecodeState(b []byte) (*State, error) {
	d := decoder{b: b}
	if v := d.byte(); v != stateVersion && !d.failed {
		return nil, fmt.Errorf("decode state of version %d: %w", v, ErrFormatTooNew)
	}
	flags := d.byte()
	s := &State{Deleted: flags&flagDeleted != 0, Async: flags&flagAsync != 0, Queue: New()}
	q := &s.Queue
	q.asOf = commitlog.LSN(d.uvarint())
	if !s.Deleted {
		s.Topic = d.string()
		q.start = d.offset()
		q.end = q.start + d.offset()
		s.HighWatermark = d.offset()
		q.bytes = d.offset()
		d.epochs(&q.Epochs)
		q.Active = Active{Base: d.offset(), FirstTimestamp: d.varint(), Bytes: d.offset()}
		q.Producers = d.producers()
		s.AbortedFrom = d.offset()
		d.abortedTo(q)
		for range d.count(2) {
			q.cuts = append(q.cuts, Cut{commitlog.LSN(d.uvarint()), d.offset()})
		}
		for range d.count(2) {
			q.holes = append(q.holes, Span{d.offset(), d.offset()})
		}
	}
	if d.failed || len(d.b) > 0 || q.end < q.start {
		return nil, fmt.Errorf("decode state of %d bytes: %w", len(b), ErrCorrupt)
	}
	return s, nil
}

// DecodeProducers reads what Producers.Append wrote and returns the rest.
func DecodeProducers(b []byte) (Producers, []byte, error) {
	d := decoder{b: b}
	ps := d.producers()
	if d.failed {
		return Producers{}, nil, fmt.Errorf("decode producers of %d bytes: %w", len(b), ErrCorrupt)
	}
	return ps, d.b, nil
}

func (d *decoder) epochs(e *Epochs) {
	e.latest = d.int32()
	n := d.count(2)
	if n > 0 {
		e.starts = make([]EpochStart, 0, n)
	}
	for range n {
		e.starts = append(e.starts, EpochStart{d.int32(), d.offset()})
	}
}

func (d *decoder) abortedTo(q *Queue) {
	n := d.count(4)
	if n > 0 {
		q.aborted = make(aborted, 0, n)
	}
	for range n {
		q.aborted = append(q.aborted, AbortedTxn{ProducerID: d.varint(), First: d.offset(), Last: d.offset(), LastStable: d.offset()})
	}
}

func (d *decoder) producers() Producers {
	var ps Producers
	n := d.count(7)
	if n > 0 {
		ps.byID = make(map[int64]*Producer, n)
	}
	for range n {
		p := &Producer{ID: d.varint(), Epoch: d.int16(), CoordinatorEpoch: d.int32(), TxnStart: d.varint(), LastTimestamp: d.varint(), Touched: d.offset()}
		batches := d.byte()
		if batches > RememberedBatches {
			d.failed = true
			return ps
		}
		for range batches {
			p.push(SeqBatch{First: d.sequence(), Last: d.sequence(), LastOffset: d.offset(), MaxTimestamp: d.varint()})
		}
		ps.byID[p.ID] = p
		if p.TxnStart >= 0 {
			ps.open = append(ps.open, openTxn{p.ID, p.TxnStart})
		}
	}
	slices.SortFunc(ps.open, func(a, b openTxn) int { return cmp.Compare(a.first, b.first) })
	for range d.count(2) {
		ps.done = append(ps.done, doneTxn{d.offset(), d.offset()})
	}
	return ps
}

// decoder reads fields until one fails; the rest then reads as zero.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.failed = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.failed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// offset reads a uvarint that must fit half of an int64, so that sums cannot wrap.
func (d *decoder) offset() int64 {
	v := d.uvarint()
	if v > math.MaxInt64/2 {
		d.failed = true
		return 0
	}
	return int64(v)
}

func (d *decoder) int32() int32 {
	v := d.varint()
	if v != int64(int32(v)) {
		d.failed = true
	}
	return int32(v)
}

func (d *decoder) int16() int16 {
	v := d.varint()
	if v != int64(int16(v)) {
		d.failed = true
	}
	return int16(v)
}

func (d *decoder) sequence() int32 {
	v := d.uvarint()
	if v > math.MaxInt32 {
		d.failed = true
	}
	return int32(v)
}

// count reads the length of a list whose items take at least size bytes each.
func (d *decoder) count(size int) int {
	v := d.uvarint()
	if v > uint64(len(d.b)/size) {
		d.failed = true
		return 0
	}
	return int(v)
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.failed = true
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes(d.count(1))) }
