package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

// rawLoad is a load whose generation costs next to no CPU, so that on a small
// machine the broker is measured and not the client: a request is encoded once,
// and sent again and again over plain connections with other numbers in it.
type rawLoad struct {
	Connections int
	InFlight    int // unanswered requests of a connection
	Partitions  int // in all
	Topics      int // that they are shared out to, a hundred at most; 0 is one of just this name
	PerRequest  int // partitions in a request, one batch each
	Records     int // in a batch
	Size        int // of a record's value
	Codec       int
	Bytes       int64 // ends the load before its time
}

// rawResult is what a raw load has seen.
type rawResult struct {
	requests, bytes int64 // of whole frames
	refused         int64 // requests that met a partition without a leader
	took            time.Duration
	latencies       []time.Duration
}

// Versions that name topics instead of giving ids, and that all brokers here serve.
const (
	rawProduceVersion = 9
	rawFetchVersion   = 11
)

// produceRaw writes at full rate for so long.
func produceRaw(ctx context.Context, address, topic string, l rawLoad, d time.Duration) (rawResult, error) {
	sending, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	batch := rawBatch(&l)
	var written atomic.Int64
	more := func(n int) bool {
		return sending.Err() == nil && (l.Bytes == 0 || written.Add(int64(n)) <= l.Bytes)
	}
	var all rawResult
	var mu sync.Mutex
	var running sync.WaitGroup
	errs := make([]error, l.Connections)
	began := time.Now()
	for i := range l.Connections {
		running.Go(func() {
			r, err := rawProducer(ctx, address, newRawFrames(topic, &l, i, batch), l.InFlight, more)
			mu.Lock()
			defer mu.Unlock()
			errs[i] = err
			all.requests += r.requests
			all.refused += r.refused
			all.bytes += r.bytes
			all.latencies = append(all.latencies, r.latencies...)
		})
	}
	running.Wait()
	all.took = time.Since(began)
	slices.Sort(all.latencies)
	if all.refused > 0 {
		errs = append(errs, fmt.Errorf("%d requests were refused, %d taken", all.refused, all.requests))
	}
	return all, errors.Join(errs...)
}

// settle writes one batch to each partition until all are taken: a broker may
// know the leaders of a new topic a little later than it says.
func settle(ctx context.Context, address, topic string, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	l := rawLoad{Partitions: partitions, PerRequest: min(partitions, 100), Records: 1, Size: 1}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer := answerReader{in: bufio.NewReader(conn)}
	f := newRawFrames(topic, &l, 0, rawBatch(&l))
	sent := int64(0)
	for group := range f.groups {
		for taken := false; !taken; sent++ {
			if ctx.Err() != nil {
				return fmt.Errorf("topic %s has partitions without leader for minutes: %w", topic, ctx.Err())
			}
			if _, err := conn.Write(f.request(group, sent)); err != nil {
				return err
			}
			if taken, err = answer.produce(sent); err != nil {
				return err
			}
			if !taken {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	return nil
}

// rawBatch is the batch that is sent, of half compressible values.
func rawBatch(l *rawLoad) []byte {
	values := make([]string, l.Records)
	for i := range values {
		values[i] = string(halfRandom(l.Size, uint64(i)))
	}
	b := frames.NewBatch(frames.Values(values...)...)
	b.Codec = l.Codec
	b.FirstTimestamp = time.Now().UnixMilli()
	b.MaxTimestamp = b.FirstTimestamp
	return b.Seal()
}

// rawFrames makes the requests of one connection in one buffer: they differ in
// their correlation ids, the numbers of their partitions, and the last two digits
// of their topic, which are written over each other.
type rawFrames struct {
	frame   []byte
	numbers []int // where those of partitions stand
	digit   int   // where the last of the topic stands; 0 if it has none

	each   int // partitions of a topic
	all    int
	groups int // requests until all partitions had their turn
	first  int // where this connection begins
}

func newRawFrames(topic string, l *rawLoad, connection int, batch []byte) *rawFrames {
	if l.Topics > 0 {
		topic = rawTopic(topic, 0)
	}
	records := make([][]byte, l.PerRequest)
	for i := range records {
		records[i] = batch
	}
	f := &rawFrames{all: l.Partitions, each: l.Partitions / max(l.Topics, 1)}
	f.groups = (l.Partitions + l.PerRequest - 1) / l.PerRequest
	f.first = f.groups * connection / max(l.Connections, 1)
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))
	f.frame = format.AppendRequest(nil, frames.Produce(rawProduceVersion, -1, topic, records...), 0)
	if l.Topics > 0 {
		f.digit = bytes.Index(f.frame, []byte(topic)) + len(topic) - 1
	}
	length := len(binary.AppendUvarint(nil, uint64(len(batch)+1)))
	for at := 0; len(f.numbers) < l.PerRequest; {
		at += bytes.Index(f.frame[at:], batch)
		f.numbers = append(f.numbers, at-length-4)
		at += len(batch)
	}
	return f
}

// rawTopic is the name of one of up to a hundred topics.
func rawTopic(topic string, i int) string { return fmt.Sprintf("%s-%02d", topic, i) }

// request is a group's request; it is good until the next.
func (f *rawFrames) request(group int, correlation int64) []byte {
	binary.BigEndian.PutUint32(f.frame[8:], uint32(correlation))
	first := group * len(f.numbers) % f.all
	if f.digit > 0 {
		at := first / f.each
		f.frame[f.digit-1], f.frame[f.digit] = '0'+byte(at/10), '0'+byte(at%10)
	}
	for k, at := range f.numbers {
		binary.BigEndian.PutUint32(f.frame[at:], uint32((first+k)%f.all%f.each))
	}
	return f.frame
}

func (f *rawFrames) next(i int64) []byte {
	return f.request((f.first+int(i%int64(f.groups)))%f.groups, i)
}

// rawProducer is one connection; it sends once, and while there is more.
func rawProducer(ctx context.Context, address string, f *rawFrames, inFlight int, more func(bytes int) bool) (r rawResult, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer := answerReader{in: bufio.NewReaderSize(conn, 64<<10)}
	took := func(i int64, at time.Time) error {
		taken, err := answer.produce(i)
		if err != nil {
			return err
		}
		if !taken {
			r.refused++
			return nil
		}
		r.latencies = append(r.latencies, time.Since(at))
		r.bytes += int64(len(f.frame))
		r.requests++
		return nil
	}
	if inFlight == 1 { // Without a second goroutine to wake.
		for i := int64(0); more(len(f.frame)) || i == 0; i++ {
			at := time.Now()
			if _, err := conn.Write(f.next(i)); err != nil {
				return r, err
			}
			if err := took(i, at); err != nil {
				return r, err
			}
		}
		return r, nil
	}
	return r, pipelined(conn, f, inFlight, more, took)
}

// pipelined sends ahead of the answers.
func pipelined(conn net.Conn, f *rawFrames, inFlight int, more func(bytes int) bool, took func(int64, time.Time) error) error {
	sent, room := make(chan time.Time, inFlight), make(chan struct{}, inFlight)
	failed := make(chan error, 1)
	go func() {
		defer close(sent)
		for i := int64(0); more(len(f.frame)) || i == 0; i++ {
			room <- struct{}{}
			sent <- time.Now()
			if _, err := conn.Write(f.next(i)); err != nil {
				failed <- err
				return
			}
		}
	}()
	var err error
	i := int64(0)
	for at := range sent {
		if err == nil {
			if err = took(i, at); err != nil {
				conn.Close()
			}
		}
		i++
		<-room
	}
	select {
	case broken := <-failed:
		return errors.Join(err, broken)
	default:
		return err
	}
}

// halfRandom returns bytes of which about half can be compressed.
func halfRandom(n int, seed uint64) []byte {
	words, fresh := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(seed, 1))
	var dictionary [32]uint64
	for i := range dictionary {
		dictionary[i] = words.Uint64()
	}
	out := make([]byte, 0, n+32)
	for len(out) < n {
		repeat, at := fresh.IntN(2) == 0, fresh.IntN(len(dictionary)-4)
		for k := range 4 {
			v := fresh.Uint64()
			if repeat {
				v = dictionary[at+k]
			}
			for shift := 0; shift < 64; shift += 8 {
				out = append(out, byte(v>>shift))
			}
		}
	}
	return out[:n]
}
