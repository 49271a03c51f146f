package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

// firstAck waits until a broker acknowledges a record.
func firstAck(ctx context.Context, address string, began time.Time, exited <-chan struct{}) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		if err := ackOne(ctx, address); err == nil {
			return time.Since(began), nil
		}
		select {
		case <-exited:
			return 0, errors.New("the broker ended before it served")
		case <-ctx.Done():
			return 0, errors.New("the broker acknowledged nothing within 90 s")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// errNotTaken says that a record found no partition to go to.
var errNotTaken = errors.New("the topic has no leader yet")

// ackOne tries once to write a record, and makes the topic if it is missing.
func ackOne(ctx context.Context, address string) error {
	const topic = "first"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	l := rawLoad{Partitions: 1, PerRequest: 1, Records: 1, Size: 100}
	record := newRawFrames(topic, &l, 0, rawBatch(&l))
	answer := answerReader{in: bufio.NewReader(conn)}
	if _, err := conn.Write(record.request(0, 0)); err != nil {
		return err
	}
	taken, err := answer.produce(0)
	if err != nil || taken {
		return err
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 4, 5000
	create.Topics = append(create.Topics, frames.NewTopic(topic, 1, 1, nil))
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))
	if _, err := conn.Write(format.AppendRequest(nil, create, 1)); err != nil {
		return err
	}
	if _, err := answer.next(1); err != nil { // Whatever it says: the next try shows it.
		return err
	}
	if _, err := conn.Write(record.request(0, 2)); err != nil {
		return err
	}
	if taken, err = answer.produce(2); err == nil && !taken {
		err = errNotTaken
	}
	return err
}
