package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

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
