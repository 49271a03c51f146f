package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// meter is what all producers of a run count.
type meter struct {
	acked, bytes, errors atomic.Int64 // since the start, warm-up included
	failure              atomic.Pointer[error]
	ack                  histogram // from the intended time to the answer, after warm-up
	late                 histogram // from the intended time to the hand-over, at a fixed rate
}

// fail counts a record that was not written.
func (m *meter) fail(err error) {
	m.errors.Add(1)
	m.failure.CompareAndSwap(nil, &err)
}

// count is the state of a meter at one moment.
type count struct{ records, bytes int64 }

func (m *meter) count() count { return count{m.acked.Load(), m.bytes.Load()} }

// producers send a load to one topic.
type producers struct {
	load  *benchLoad
	topic string
	// mark, when not 0, is put at the head of each value, behind the intended
	// time: a consumer knows the run's records by it.
	mark    uint64
	meter   meter
	text    []byte
	clients []*kgo.Client
	pool    sync.Pool

	start, measured, end time.Time
}

// stampSize is what a marked record's value holds at least: time and mark.
const stampSize = 16

// newProducers connects the clients; the caller closes.
func newProducers(r *remote, load *benchLoad, topic string, mark uint64) (*producers, error) {
	p := &producers{load: load, topic: topic, mark: mark, text: benchPayload(max(1<<20, 2*load.Size))}
	p.pool.New = func() any {
		s := &sending{p: p}
		s.done = s.finish
		if mark != 0 {
			s.buffer = make([]byte, load.Size)
		}
		return s
	}
	opts, err := load.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.DefaultProduceTopic(topic), kgo.RecordDeliveryTimeout(r.timeout))
	for range load.Connections {
		c, err := r.client(opts...)
		if err != nil {
			p.close()
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	return p, nil
}

func (p *producers) close() {
	for _, c := range p.clients {
		c.Close()
	}
}

// run sends until the load's time or number is reached, or ctx ends, and waits
// for the answers. It returns what was written within the measured time.
func (p *producers) run(ctx context.Context) (count, time.Duration) {
	p.start = time.Now()
	p.measured = p.start.Add(p.load.Warmup)
	p.end = p.measured.Add(p.load.Duration)
	if p.load.Records > 0 {
		p.measured = p.start
	}
	warmed := make(chan count, 1)
	warm := time.AfterFunc(time.Until(p.measured), func() { warmed <- p.meter.count() })
	var running sync.WaitGroup
	for i, c := range p.clients {
		running.Go(func() { p.send(ctx, c, i) })
	}
	running.Wait()
	counted, took := p.meter.count(), time.Since(p.measured)
	if p.load.Records == 0 && ctx.Err() == nil {
		took = p.load.Duration
	}
	early := warm.Stop()
	for _, c := range p.clients {
		_ = c.Flush(context.WithoutCancel(ctx)) // Each record's own delivery timeout bounds it and tells what failed.
	}
	switch {
	case p.load.Records > 0:
		return p.meter.count(), time.Since(p.start)
	case early:
		return count{}, 0 // It ended while warming up.
	}
	before := <-warmed
	return count{counted.records - before.records, counted.bytes - before.bytes}, took
}

// send is one client's part.
func (p *producers) send(ctx context.Context, c *kgo.Client, index int) {
	n := len(p.clients)
	every := time.Duration(0)
	if p.load.Rate > 0 {
		every = time.Duration(float64(time.Second) * float64(n) / p.load.Rate)
	}
	phase := every * time.Duration(index) / time.Duration(n) // Clients take turns.
	most := int64(-1)
	if p.load.Records > 0 {
		most = p.load.Records / int64(n)
		if int64(index) < p.load.Records%int64(n) {
			most++
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	random := rand.New(rand.NewPCG(uint64(index), 1))
	for i := int64(0); i != most && ctx.Err() == nil; i++ {
		intended := time.Now()
		if every > 0 {
			intended = p.start.Add(phase + time.Duration(i)*every)
			if d := time.Until(intended); d > 0 {
				timer.Reset(d)
				select {
				case <-timer.C:
				case <-ctx.Done():
					return
				}
			}
		}
		if most < 0 && !intended.Before(p.end) {
			return
		}
		p.hand(ctx, c, intended, random, every > 0)
	}
}

// hand gives one record to a client.
func (p *producers) hand(ctx context.Context, c *kgo.Client, intended time.Time, random *rand.Rand, paced bool) {
	s := p.pool.Get().(*sending)
	from := random.IntN(len(p.text) - p.load.Size)
	value := p.text[from : from+p.load.Size]
	if p.mark != 0 {
		copy(s.buffer, value)
		value = s.buffer
		binary.BigEndian.PutUint64(value, uint64(intended.UnixNano()))
		binary.BigEndian.PutUint64(value[8:], p.mark)
	}
	s.intended = intended
	s.record = kgo.Record{Value: value}
	if paced && !intended.Before(p.measured) {
		p.meter.late.add(time.Since(intended))
	}
	c.Produce(context.WithoutCancel(ctx), &s.record, s.done) // What was handed over is not taken back.
}

// sending is a record on its way.
type sending struct {
	p        *producers
	record   kgo.Record
	intended time.Time
	buffer   []byte
	done     func(*kgo.Record, error)
}

func (s *sending) finish(_ *kgo.Record, err error) {
	m := &s.p.meter
	if err != nil {
		m.fail(err)
	} else {
		m.acked.Add(1)
		m.bytes.Add(int64(s.p.load.Size))
		if !s.intended.Before(s.p.measured) {
			m.ack.add(time.Since(s.intended))
		}
	}
	s.p.pool.Put(s)
}

// benchPayload returns bytes of which about half can be compressed.
func benchPayload(n int) []byte {
	const piece = 32
	random := rand.New(rand.NewPCG(1, 2))
	fresh := func() (b [piece]byte) {
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	var words [64][piece]byte
	for i := range words {
		words[i] = fresh()
	}
	out := make([]byte, 0, n+piece)
	for len(out) < n {
		b := fresh()
		if random.IntN(2) == 0 {
			b = words[random.IntN(len(words))]
		}
		out = append(out, b[:]...)
	}
	return out[:n]
}
