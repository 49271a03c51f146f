package log_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// seeds returns how many histories a test plays: few by default, as many as
// MAINSTEM_SEEDS says.
func seeds(t testing.TB, few uint64) uint64 {
	n := os.Getenv("MAINSTEM_SEEDS")
	if n == "" {
		return few
	}
	many, err := strconv.ParseUint(n, 10, 64)
	require.NoError(t, err)
	return many
}

// world is a store, the disk beneath it, and what should be in it.
type world struct {
	t      testing.TB
	rng    *rand.Rand
	o      log.Options
	mem    *vfs.Mem
	fs     *errorfs.FS
	power  *errorfs.Failure // nil: no power cut is due
	s      *log.Store
	models []*model
	topics uint64
	values int
	now    int64
	stub   errorfs.Kind
	closed chan struct{} // the store was closed because the power went
}

func newWorld(t testing.TB, seed uint64, o log.Options) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), o: o, mem: vfs.NewMem(seed), now: 1_000_000}
}

// open starts the store on the disk as it is, and compares all of it.
func (w *world) open() {
	w.fs = errorfs.New(w.mem)
	w.fs.StubSyncs(w.stub)
	w.power = nil
	w.o.FS = w.fs
	s, err := log.Open(w.o)
	require.NoError(w.t, err)
	w.s = s
	w.adopt()
}

// adopt compares the store after a start with the model.
func (w *world) adopt() {
	for _, m := range w.models {
		m.recovered(w, w.s.Partition(m.id))
	}
	w.models = slices.DeleteFunc(w.models, func(m *model) bool { return m.deleted })
	seen := map[log.PartitionID]bool{}
	for _, m := range w.models {
		seen[m.id] = true
	}
	for p := range w.s.Partitions() {
		require.True(w.t, seen[p.ID()], "%v came back", p.ID())
	}
	var begin []log.EpochStart
	for _, m := range w.models {
		m.compare(w, w.s.Partition(m.id))
		m.epoch++
		m.epochMax++
		begin = append(begin, log.EpochStart{ID: m.id, Epoch: m.epoch})
	}
	require.NoError(w.t, w.s.BeginEpochs(begin))
	for _, m := range w.models {
		m.repeat(w, w.s.Partition(m.id))
	}
}

// lost reports that an operation failed, which only a power cut may cause.
func (w *world) lost(err error) bool {
	if err != nil {
		require.True(w.t, w.dark(), "%v", err)
	}
	return err != nil
}

// dark reports whether the power is out.
func (w *world) dark() bool { return w.power != nil && w.power.Hits() > 0 }

// cutPower has the power go after n more changes. A store that then waits for
// room that cannot come is closed, so that the wait ends.
func (w *world) cutPower(n int) {
	power, s, closed := w.fs.CutPower(n), w.s, make(chan struct{})
	w.power, w.closed = power, closed
	var once sync.Once
	w.fs.Watch(func(errorfs.Op) {
		if power.Hits() > 0 {
			once.Do(func() {
				go func() {
					defer close(closed)
					_ = s.Close() // What it says without power tells nothing.
				}()
			})
		}
	})
}

// abandon closes what a history that failed has left open.
func (w *world) abandon() {
	if w.s == nil {
		return
	}
	_ = w.s.Close() // The history has failed, or has closed it.
	if w.closed != nil && w.dark() {
		_, _ = w.fs.Stat("/data")
		<-w.closed
	}
}

// crash cuts the power, maybe once or twice more during the start after it.
func (w *world) crash() {
	if w.power == nil {
		w.cutPower(0)
	}
	for !w.dark() {
		_ = w.fs.Remove("/data/none") // One change more: the power goes at last.
	}
	_, _ = w.fs.Stat("/data") // It is noticed.
	<-w.closed
	w.mem = w.mem.Crash(w.rng)
	for range w.rng.IntN(3) {
		w.fs = errorfs.New(w.mem)
		w.fs.StubSyncs(w.stub)
		w.fs.CutPower(w.rng.IntN(40))
		w.o.FS = w.fs
		if s, err := log.Open(w.o); err == nil {
			_ = s.Close()
		}
		w.mem = w.mem.Crash(w.rng)
	}
	w.open()
}

// restart stops cleanly and starts again.
func (w *world) restart() {
	if w.lost(w.s.Close()) {
		w.crash()
		return
	}
	for _, m := range w.models {
		m.safe = m.end()
	}
	storetest.Check(w.t, w.mem)
	w.open()
}

// pick returns a partition of the model, nil if there is none.
func (w *world) pick() (*model, *log.Partition) {
	if len(w.models) == 0 {
		return nil, nil
	}
	m := w.models[w.rng.IntN(len(w.models))]
	return m, w.s.Partition(m.id)
}

// step does one thing; it reports whether the power is still on.
func (w *world) step() bool {
	switch n := w.rng.IntN(100); {
	case n < 4:
		return w.create()
	case n < 6:
		return w.delete()
	case n < 9:
		return w.moveStart()
	case n < 11:
		return w.truncate()
	case n < 13:
		return w.retain()
	case n < 15:
		return w.epoch()
	case n < 22:
		w.read()
		return true
	case n < 30:
		return w.marker()
	default:
		return w.append()
	}
}

func (w *world) create() bool {
	if len(w.models) > 12 {
		return true
	}
	w.topics++
	d := log.Durability(w.rng.IntN(2))
	var specs []log.CreateSpec
	var made []*model
	for i := range int32(1 + w.rng.IntN(3)) {
		m := &model{id: storetest.ID(w.topics, i), topic: fmt.Sprintf("topic-%d", w.topics), durability: d, epoch: -1, epochMax: 1, cutTo: -1, producer: int64(w.topics*10) + int64(i)}
		specs = append(specs, log.CreateSpec{ID: m.id, Name: m.topic, Durability: d, LeaderEpoch: 1})
		made = append(made, m)
	}
	w.models = append(w.models, made...)
	if w.lost(w.s.Create(specs)) {
		return false
	}
	for _, m := range made {
		m.created, m.epoch = true, 1
	}
	return true
}

func (w *world) delete() bool {
	m, _ := w.pick()
	if m == nil {
		return true
	}
	m.deleting = true
	if w.lost(w.s.Delete([]log.PartitionID{m.id})) {
		return false
	}
	require.Nil(w.t, w.s.Partition(m.id))
	m.deleted = true
	w.models = slices.DeleteFunc(w.models, func(o *model) bool { return o == m })
	return true
}

func (w *world) moveStart() bool {
	m, p := w.pick()
	if m == nil || m.start == m.end() {
		return true
	}
	to := m.start + w.rng.Int64N(m.end()-m.start) + 1
	m.startMax = to
	ticket, err := w.s.MoveStarts(map[*log.Partition]int64{p: to})
	if w.lost(err) || w.lost(w.s.Commit(ticket)) {
		return false
	}
	m.start = to
	m.safe = max(m.safe, min(to, m.end()))
	return true
}

func (w *world) truncate() bool {
	m, p := w.pick()
	if m == nil || m.start == m.end() {
		return true
	}
	to := m.boundary(m.end() - w.rng.Int64N(min(m.end()-m.start, 12)))
	if to < m.start || m.start > 0 && m.producedFrom(to) {
		return true // What a producer did below the log start may be forgotten by a truncation.
	}
	m.cutTo, m.safe = to, min(m.safe, to)
	if w.lost(p.Truncate(to, m.epoch)) {
		return false
	}
	m.cutTo = -1
	m.cut(to)
	require.Equal(w.t, to, p.End())
	require.LessOrEqual(w.t, p.Durable(), to)
	return true
}

func (w *world) retain() bool {
	bytes := int64(w.rng.IntN(100 << 10))
	ms := int64(w.rng.IntN(100_000))
	byTime := w.rng.IntN(2) == 0
	want := map[log.PartitionID]int64{}
	for _, m := range w.models {
		p := w.s.Partition(m.id)
		p.SetHighWatermark(p.Durable())
		want[m.id] = m.retained(p.HighWatermark(), byTime, w.now, ms, bytes)
		m.startMax = want[m.id]
	}
	err := w.s.Retain(time.UnixMilli(w.now), func(*log.Partition) log.Retention {
		if byTime {
			return log.Retention{Delete: true, Ms: ms, Bytes: -1}
		}
		return log.Retention{Delete: true, Ms: -1, Bytes: bytes}
	})
	if w.lost(err) {
		return false
	}
	for _, m := range w.models {
		require.Equal(w.t, want[m.id], w.s.Partition(m.id).Start(), "%v: by time %v, %d ms, %d bytes", m.id, byTime, ms, bytes)
		m.start = want[m.id]
		m.safe = max(m.safe, m.start)
	}
	return true
}

// retained works out where retention moves the start, the slow way.
func (m *model) retained(below int64, byTime bool, now, ms, bytes int64) int64 {
	left := m.bytes()
	start := m.start
	for at := m.boundary(m.start); at < m.end(); {
		next := at + 1
		for next < m.end() && m.records[next].size == 0 {
			next++
		}
		size := int64(m.records[at].size)
		if next > below || byTime && now-m.records[at].time <= ms || !byTime && left-size < bytes {
			break
		}
		left -= size
		start, at = next, next
	}
	return start
}

func (w *world) epoch() bool {
	m, _ := w.pick()
	if m == nil {
		return true
	}
	m.epochMax = m.epoch + 1
	if w.lost(w.s.BeginEpochs([]log.EpochStart{{ID: m.id, Epoch: m.epochMax}})) {
		return false
	}
	m.epoch = m.epochMax
	return true
}

func (w *world) read() {
	if m, p := w.pick(); m != nil && !w.dark() {
		m.compare(w, p)
	}
}

// append stores one to five batches in one partition, and waits or not.
func (w *world) append() bool {
	m, p := w.pick()
	if m == nil {
		return true
	}
	var ticket log.Ticket
	idempotent := w.rng.IntN(3) > 0 || m.txnOpen
	for range 1 + w.rng.IntN(5) {
		w.now += int64(w.rng.IntN(1000))
		values := make([]string, 1+w.rng.IntN(4))
		for i := range values {
			w.values++
			values[i] = fmt.Sprintf("value %d %s", w.values, strings.Repeat("x", w.rng.IntN(600)))
		}
		spec := batch.Spec{Codec: batch.Codec(w.rng.IntN(2) * 4)}
		r := record{epoch: m.epoch, producer: -1, time: w.now}
		if idempotent {
			spec.Transactional = m.txnOpen || w.rng.IntN(4) == 0
			spec.Producer = &batch.Producer{ID: m.producer, Epoch: 0, Sequence: m.seq}
			r.producer, r.txn = m.producer, spec.Transactional
		}
		b := storetest.Batch(w.t, spec, w.now, values...)
		again := slices.Clone(b)
		a, err := p.Append(log.Append{Records: b, LeaderEpoch: m.epoch})
		if w.lost(err) {
			return false
		}
		require.Equal(w.t, m.end(), a.BaseOffset)
		require.False(w.t, a.Duplicate)
		if idempotent {
			m.sent = append(m.sent, sent{m.seq, m.end(), len(values), again})
			m.seq += int32(len(values))
			m.txnOpen = m.txnOpen || spec.Transactional
		}
		m.add(values, r, len(b))
		ticket = ticket.Max(a.Ticket)
	}
	return w.finish(m, p, ticket)
}

// finish waits for an append, or leaves it to the background writer.
func (w *world) finish(m *model, p *log.Partition, ticket log.Ticket) bool {
	if w.rng.IntN(4) == 0 {
		w.s.Kick()
		return true
	}
	if w.lost(w.s.Commit(ticket)) {
		return false
	}
	require.Equal(w.t, m.end(), p.Durable())
	if m.durability == log.Fsync {
		m.safe = m.end()
	}
	return true
}

// marker ends the open transaction of a partition.
func (w *world) marker() bool {
	m, p := w.pick()
	if m == nil || !m.txnOpen {
		return true
	}
	kind := batch.MarkerType(w.rng.IntN(2))
	b := batch.Marker{Type: kind, ProducerID: m.producer, ProducerEpoch: 0, CoordinatorEpoch: 1, Timestamp: w.now}.Batch()
	a, err := p.Append(log.Append{Records: b, LeaderEpoch: m.epoch, Origin: log.Coordinator})
	if w.lost(err) {
		return false
	}
	require.Equal(w.t, m.end(), a.BaseOffset)
	r := record{epoch: m.epoch, producer: m.producer, txn: true, marker: 1, time: w.now}
	if kind == batch.Abort {
		r.marker = 2
	}
	m.add([]string{""}, r, len(b))
	m.txnOpen = false
	return w.finish(m, p, a.Ticket)
}

// configs are the settings under which histories are played.
func configs() map[string]func(*log.Options) {
	return map[string]func(*log.Options){
		"small":       func(*log.Options) {},
		"tiny":        func(o *log.Options) { o.SegmentBytes, o.SegmentEntries = 64<<10, 20 },
		"tiny-cache":  func(o *log.Options) { o.SegmentEntries, o.CacheRows = 40, 1 },
		"little-ring": func(o *log.Options) { o.RingBytes, o.BlockBytes = 64<<10, 4<<10 },
		"large":       func(o *log.Options) { o.SegmentBytes, o.SegmentEntries = 4<<20, 10000 },
	}
}

func TestHistoriesAgreeWithTheModelOverRestarts(t *testing.T) {
	for name, change := range configs() {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(t, 2) {
				o := storetest.Small(nil)
				change(&o)
				w := newWorld(t, seed, o)
				w.open()
				for range 6 {
					for range 150 {
						require.True(t, w.step())
					}
					w.restart()
				}
				require.NoError(t, w.s.Close())
			}
		})
	}
}

func TestHistoriesAgreeWithTheModelOverPowerCuts(t *testing.T) {
	for name, change := range configs() {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(t, 8) {
				playPowerCuts(t, seed, change, 0)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// playPowerCuts plays one history in which the power goes again and again.
func playPowerCuts(t testing.TB, seed uint64, change func(*log.Options), stub errorfs.Kind) {
	o := storetest.Small(nil)
	change(&o)
	w := newWorld(t, seed, o)
	w.stub = stub
	defer w.abandon()
	w.open()
	for range 5 {
		if w.rng.IntN(4) > 0 {
			w.cutPower(w.rng.IntN(500))
		}
		on := true
		for i := 0; on && i < 120; i++ {
			on = w.step()
		}
		if on && w.rng.IntN(4) == 0 {
			w.restart()
		} else {
			w.crash()
		}
	}
	require.NoError(t, w.s.Close())
	storetest.Check(t, w.mem)
}
