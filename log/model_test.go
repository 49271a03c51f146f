package log_test

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/protocol/batch"
)

// record is what the model knows of one offset.
type record struct {
	value    string
	epoch    int32
	producer int64 // -1: none
	txn      bool
	marker   int // 0: none, 1: commit, 2: abort
	size     int // of the batch, at its first record
	time     int64
}

// sent is a batch of an idempotent producer.
type sent struct {
	seq   int32
	base  int64
	count int
	bytes []byte
}

// model is the dumb twin of one partition: every record, from offset 0.
type model struct {
	id         log.PartitionID
	topic      string
	durability log.Durability
	records    []record
	start      int64 // acknowledged
	startMax   int64 // asked for
	safe       int64 // nothing below may be lost
	cutTo      int64 // a truncation that was not acknowledged, -1 if none
	epoch      int32 // acknowledged
	epochMax   int32 // asked for
	created    bool  // acknowledged
	deleted    bool  // acknowledged
	deleting   bool  // asked for

	producer int64
	seq      int32
	sent     []sent
	txnOpen  bool
}

func (m *model) end() int64 { return int64(len(m.records)) }

// add appends what a batch holds.
func (m *model) add(values []string, r record, size int) {
	for i, v := range values {
		r.value, r.size = v, 0
		if i == 0 {
			r.size = size
		}
		m.records = append(m.records, r)
	}
}

// cut forgets what lies at or above an offset.
func (m *model) cut(end int64) {
	m.records = m.records[:end]
	m.safe, m.start, m.startMax = min(m.safe, end), min(m.start, end), min(m.startMax, end)
	m.sent = slices.DeleteFunc(m.sent, func(s sent) bool { return s.base >= end })
	m.resume()
}

// resume works out where the producer stands after the records changed.
func (m *model) resume() {
	m.seq, m.txnOpen = 0, false
	for _, r := range m.records {
		if r.producer == m.producer {
			switch {
			case r.marker != 0:
				m.txnOpen = false
			default:
				m.seq++
				m.txnOpen = m.txnOpen || r.txn
			}
		}
	}
}

// producedFrom reports whether a producer touched what lies at or above an offset.
func (m *model) producedFrom(offset int64) bool {
	return slices.ContainsFunc(m.records[offset:], func(r record) bool { return r.producer >= 0 })
}

// boundary returns the base of the batch that contains an offset.
func (m *model) boundary(offset int64) int64 {
	for offset > 0 && offset < m.end() && m.records[offset].size == 0 {
		offset--
	}
	return offset
}

// bytes adds up the batches that reach beyond the log start.
func (m *model) bytes() int64 {
	sum := int64(0)
	for i := m.boundary(m.start); i < m.end(); i++ {
		sum += int64(m.records[i].size)
	}
	return sum
}

// txns works out the first unstable offset (-1: none) and the aborted
// transactions the slow way.
func (m *model) txns(highWatermark int64) (unstable int64, aborted []log.AbortedTxn) {
	unstable = -1
	starts := map[int64]int64{}
	lowest := func() int64 {
		low := int64(-1)
		for _, o := range starts {
			if low < 0 || o < low {
				low = o
			}
		}
		return low
	}
	for i, r := range m.records {
		first, isOpen := starts[r.producer]
		switch {
		case r.marker != 0:
			delete(starts, r.producer)
			if isOpen && int64(i) >= highWatermark && unstable < 0 {
				unstable = first
			}
			if r.marker == 2 && isOpen {
				stable := lowest()
				if stable < 0 {
					stable = int64(i) + 1
				}
				aborted = append(aborted, log.AbortedTxn{ProducerID: r.producer, First: first, Last: int64(i), LastStable: stable})
			}
		case r.txn && !isOpen:
			starts[r.producer] = int64(i)
		}
	}
	if open := lowest(); open >= 0 && (unstable < 0 || open < unstable) {
		unstable = open
	}
	return unstable, aborted
}

// recovered compares a partition after a start with what may have survived,
// and adopts what did.
func (m *model) recovered(w *world, p *log.Partition) {
	t := w.t
	switch {
	case m.deleted:
		require.Nil(t, p, "%v: deleted, and back", m.id)
		return
	case p == nil:
		require.True(t, m.deleting || !m.created, "%v: lost", m.id)
		m.deleted = true
		return
	}
	m.created, m.deleting = true, false
	require.Equal(t, m.topic, p.Topic())
	end := p.End()
	if m.cutTo >= 0 && end == m.cutTo {
		m.cut(end)
	}
	m.cutTo = -1
	require.GreaterOrEqual(t, end, m.safe, "%v: acknowledged records are missing", m.id)
	require.LessOrEqual(t, end, m.end(), "%v: records that were never appended", m.id)
	require.Equal(t, end, m.boundary(end), "%v: half a batch survived", m.id)
	m.cut(end)
	require.GreaterOrEqual(t, p.Start(), min(m.start, end))
	require.LessOrEqual(t, p.Start(), m.startMax)
	m.start, m.startMax = p.Start(), p.Start()
	require.GreaterOrEqual(t, p.LatestEpoch(), m.epoch, "%v: epochs went backwards", m.id)
	require.LessOrEqual(t, p.LatestEpoch(), m.epochMax)
	m.epoch, m.epochMax = p.LatestEpoch(), p.LatestEpoch()
	require.Equal(t, end, p.Durable())
	require.LessOrEqual(t, p.HighWatermark(), end)
	p.SetHighWatermark(end)
	m.safe = end
}

// compare checks a live partition against the model.
func (m *model) compare(w *world, p *log.Partition) {
	t := w.t
	require.Equal(t, m.end(), p.End())
	require.Equal(t, m.start, p.Start())
	require.Equal(t, m.bytes(), p.Bytes(), "%v", m.id)
	for at := m.start; at < m.end(); {
		b, err := p.Read(at, m.end(), 1+w.rng.IntN(20<<10), true)
		if err != nil && w.dark() {
			return
		}
		require.NoError(t, err, "%v: read at %d of %d to %d", m.id, at, m.start, m.end())
		require.Positive(t, b.Size(), "%v: read at %d of %d to %d", m.id, at, m.start, m.end())
		m.compareBatches(w, at, storetest.Split(t, b), b.NextOffset())
		at = b.NextOffset()
		b.Release()
	}
	unstable, aborted := m.txns(p.HighWatermark())
	first, ok := p.FirstUnstable()
	require.Equal(t, unstable >= 0, ok)
	if ok {
		require.Equal(t, max(unstable, m.start), first)
	}
	var want []log.AbortedTxn
	for _, a := range aborted {
		if a.Last >= m.start {
			want = append(want, a)
		}
	}
	slices.SortFunc(want, func(a, b log.AbortedTxn) int { return int(a.First - b.First) })
	require.Equal(t, want, p.Aborted(m.start, m.end()), "%v", m.id)
	for range 3 {
		if m.end() > m.start {
			at := m.start + w.rng.Int64N(m.end()-m.start)
			require.Equal(t, m.records[at].epoch, p.EpochOf(at), "%v: epoch of %d", m.id, at)
		}
	}
}

func (m *model) compareBatches(w *world, from int64, batches [][]byte, next int64) {
	t := w.t
	at := m.boundary(from)
	for _, b := range batches {
		h, err := batch.ParseHeader(b)
		require.NoError(t, err)
		require.Equal(t, at, h.BaseOffset)
		require.Equal(t, m.records[at].epoch, h.LeaderEpoch)
		if h.IsControl() {
			at = h.NextOffset()
			continue
		}
		for r, err := range batch.Records(b) {
			require.NoError(t, err)
			require.Equal(t, at, r.Offset)
			require.Equal(t, m.records[at].value, string(r.Value), "%v: offset %d", m.id, at)
			at++
		}
	}
	require.Equal(t, at, next)
}

// repeat sends the last batches of the producer again: what is stored must
// be known as such.
func (m *model) repeat(w *world, p *log.Partition) {
	for i := max(0, len(m.sent)-5); i < len(m.sent); i++ {
		s := m.sent[i]
		a, err := p.Append(log.Append{Records: slices.Clone(s.bytes), LeaderEpoch: p.LatestEpoch()})
		require.NoError(w.t, err, "%v: batch with sequence %d at %d again, log ends at %d", m.id, s.seq, s.base, p.End())
		require.True(w.t, a.Duplicate, "%v: sequence %d is stored twice", m.id, s.seq)
		require.Equal(w.t, s.base, a.BaseOffset)
		require.Equal(w.t, s.base+int64(s.count)-1, a.LastOffset)
	}
}

func (m *model) String() string { return fmt.Sprintf("%s-%d", m.topic, m.id.Partition) }
