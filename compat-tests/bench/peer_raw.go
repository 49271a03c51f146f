package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

// rawLoad is a load whose generation costs next to no CPU, so that on a small
// machine the broker is measured and not the client: requests are encoded once,
// and sent again and again over plain connections.
type rawLoad struct {
	Connections int
	InFlight    int // unanswered requests of a connection
	Partitions  int
	PerRequest  int // partitions in a request, one batch each
	Records     int // in a batch
	Size        int // of a record's value
	Codec       int
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
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	batch := rawBatch(&l)
	var all rawResult
	var mu sync.Mutex
	var running sync.WaitGroup
	errs := make([]error, l.Connections)
	began := time.Now()
	for i := range l.Connections {
		running.Go(func() {
			r, err := rawProducer(ctx, address, rawRequests(topic, &l, i, batch), l.InFlight)
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
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	l := rawLoad{Partitions: partitions, PerRequest: min(partitions, 100), Records: 1, Size: 1}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer := answerReader{in: bufio.NewReader(conn)}
	sent := int64(0)
	for _, frame := range rawRequests(topic, &l, 0, rawBatch(&l)) {
		for taken := false; !taken; sent++ {
			if ctx.Err() != nil {
				return fmt.Errorf("topic %s has partitions without leader for two minutes: %w", topic, ctx.Err())
			}
			binary.BigEndian.PutUint32(frame[8:], uint32(sent))
			if _, err := conn.Write(frame); err != nil {
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

// rawRequests are the requests that one connection sends in turn.
func rawRequests(topic string, l *rawLoad, connection int, batch []byte) (requests [][]byte) {
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))
	groups := (l.Partitions + l.PerRequest - 1) / l.PerRequest
	for g := range groups {
		records := make([][]byte, l.Partitions)
		for k := range l.PerRequest {
			records[((g+connection)%groups*l.PerRequest+k)%l.Partitions] = batch
		}
		req := frames.Produce(rawProduceVersion, -1, topic, records...)
		requests = append(requests, format.AppendRequest(nil, req, 0))
	}
	return requests
}

// rawProducer is one connection.
func rawProducer(ctx context.Context, address string, requests [][]byte, inFlight int) (r rawResult, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	sent := make(chan time.Time, inFlight)
	room := make(chan struct{}, inFlight)
	failed := make(chan error, 1)
	go func() {
		defer close(sent)
		for i := 0; ctx.Err() == nil; i++ {
			room <- struct{}{}
			frame := requests[i%len(requests)]
			binary.BigEndian.PutUint32(frame[8:], uint32(i)) // The correlation id.
			sent <- time.Now()
			if _, err := conn.Write(frame); err != nil {
				failed <- err
				return
			}
		}
	}()
	in := bufio.NewReaderSize(conn, 64<<10)
	answer := answerReader{in: in}
	i := int64(0)
	for at := range sent {
		taken := false
		if err == nil {
			taken, err = answer.produce(i)
		}
		switch {
		case err != nil:
			conn.Close()
		case taken:
			r.latencies = append(r.latencies, time.Since(at))
			r.bytes += int64(len(requests[int(i)%len(requests)]))
			r.requests++
		default:
			r.refused++
		}
		i++
		<-room
	}
	select {
	case werr := <-failed:
		if err == nil {
			err = werr
		}
	default:
	}
	return r, err
}

// answerReader reads answers into one buffer.
type answerReader struct {
	in  io.Reader
	buf []byte
}

func (a *answerReader) next(want int64) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(a.in, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 4
	if n < 0 || n > 512<<20 {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	if got := int64(binary.BigEndian.Uint32(head[4:])); got != want&0xffffffff {
		return nil, fmt.Errorf("answer %d came, not %d", got, want)
	}
	if cap(a.buf) < n {
		a.buf = make([]byte, n)
	}
	a.buf = a.buf[:n]
	_, err := io.ReadFull(a.in, a.buf)
	return a.buf, err
}

// produce reads the answer to a produce. It was not taken if a partition's leader
// is not known yet; other error codes are errors.
func (a *answerReader) produce(want int64) (taken bool, err error) {
	body, err := a.next(want)
	if err != nil {
		return false, err
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = rawProduceVersion
	if err := resp.ReadFrom(body[1:]); err != nil { // Behind the tags of the header.
		return false, err
	}
	taken = true
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			switch p.ErrorCode {
			case 0:
			case kerr.UnknownTopicOrPartition.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code:
				taken = false
			default:
				return false, fmt.Errorf("produce to partition %d: %w", p.Partition, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	return taken, nil
}

// fetchRaw reads a topic from start to end over so many connections.
func fetchRaw(ctx context.Context, address, topic string, ends []int64, connections int) (rawResult, error) {
	var bytes atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, connections)
	began := time.Now()
	for i := range connections {
		running.Go(func() {
			left := make(map[int32][2]int64) // next offset and end
			for p, end := range ends {
				if p%connections == i && end > 0 {
					left[int32(p)] = [2]int64{0, end}
				}
			}
			errs[i] = rawFetcher(ctx, address, topic, left, &bytes)
		})
	}
	running.Wait()
	return rawResult{bytes: bytes.Load(), took: time.Since(began)}, errors.Join(errs...)
}

func rawFetcher(ctx context.Context, address, topic string, left map[int32][2]int64, bytes *atomic.Int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))
	answer := answerReader{in: bufio.NewReaderSize(conn, 256<<10)}
	var frame []byte
	for i := int64(0); len(left) > 0; i++ {
		frame = format.AppendRequest(frame[:0], fetchRequest(topic, left), int32(i))
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		body, err := answer.next(i)
		if err != nil {
			return err
		}
		bytes.Add(int64(len(body)))
		if err := advance(body, left); err != nil {
			return err
		}
	}
	return nil
}

func fetchRequest(topic string, left map[int32][2]int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = rawFetchVersion, -1, 500, 1, 16<<20
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for p, at := range left { // In another order each time, so that all get their turn.
		one := kmsg.NewFetchRequestTopicPartition()
		one.Partition, one.FetchOffset, one.PartitionMaxBytes, one.CurrentLeaderEpoch = p, at[0], 1<<20, -1
		t.Partitions = append(t.Partitions, one)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// advance moves the offsets behind what an answer holds.
func advance(body []byte, left map[int32][2]int64) error {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = rawFetchVersion
	if err := resp.ReadFrom(body); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("fetch of partition %d: error %d", p.Partition, p.ErrorCode)
			}
			at := left[p.Partition]
			for raw := p.RecordBatches; len(raw) >= 61; {
				size := 12 + int(binary.BigEndian.Uint32(raw[8:]))
				if size > len(raw) {
					break
				}
				at[0] = int64(binary.BigEndian.Uint64(raw)) + int64(binary.BigEndian.Uint32(raw[23:])) + 1
				raw = raw[size:]
			}
			if left[p.Partition] = at; at[0] >= at[1] {
				delete(left, p.Partition)
			}
		}
	}
	return nil
}
