package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// backlog makes a topic and fills it with so many bytes in batches of 64 KiB,
// those of all partitions between each other.
func backlog(ctx context.Context, b broker, topic string, partitions int, bytes int64) (ends []int64, err error) {
	if err := makeTopic(ctx, b.address(), topic, partitions); err != nil {
		return nil, err
	}
	l := rawLoad{Connections: 2, InFlight: 4, Partitions: partitions, PerRequest: min(4, partitions), Records: 64, Size: 1024, Bytes: bytes}
	if _, err := produceRaw(ctx, b.address(), topic, l, 2*time.Minute); err != nil {
		return nil, err
	}
	return topicEnds(ctx, b.address(), topic)
}

// scenarioRead reads what was just written, from memory, again and again: in few
// partitions, and in a hundred whose batches lie between each other.
func scenarioRead(ctx context.Context, p *peerRun, b broker) error {
	for _, c := range []struct {
		row        string
		partitions int
	}{{"1 partition", 1}, {"16 partitions", 16}, {"100 partitions interleaved", 100}} {
		topic := fmt.Sprintf("read-%d", c.partitions)
		ends, err := backlog(ctx, b, topic, c.partitions, p.report.Fill)
		if err != nil {
			return err
		}
		if _, err := fetchRaw(ctx, b.address(), topic, ends, 2); err != nil { // Once unmeasured.
			return err
		}
		var sum rawResult
		m, err := p.measure(ctx, b, func() error {
			sum = rawResult{}
			for sum.took < p.seconds()/2 {
				r, err := fetchRaw(ctx, b.address(), topic, ends, 2)
				if err != nil {
					return err
				}
				sum.bytes += r.bytes
				sum.took += r.took
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := p.addRate("read", c.row, sum.bytes, sum.took, m); err != nil {
			return err
		}
		if err := dropTopic(ctx, b.address(), topic); err != nil {
			return err
		}
	}
	return nil
}

// scenarioCatchup measures a producer at a fixed rate alone, and then while a
// backlog is read whose files the system has forgotten.
func scenarioCatchup(ctx context.Context, p *peerRun, b broker) error {
	const old, fresh = "catchup-old", "catchup-new"
	ends, err := backlog(ctx, b, old, 16, p.report.Fill)
	if err != nil {
		return err
	}
	files, err := filesOf(p.liveDir)
	if err != nil {
		return err
	}
	if err := makeTopic(ctx, b.address(), fresh, 4); err != nil {
		return err
	}
	args := []string{"latency", "--topic", fresh, "--rate", "1000", "--warmup", "1s", "--duration"}
	var alone loaded
	m, err := p.measure(ctx, b, func() (err error) {
		alone, err = runClient(ctx, b, append(args, p.seconds().String())...)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.addCatchup("alone", &alone, m); err != nil {
		return err
	}
	var beside loaded
	var cold coldRead
	m, err = p.measure(ctx, b, func() error {
		if err := forget(files, withSync); err != nil {
			return err
		}
		c, err := startClient(ctx, b, append(args, "5m")...)
		if err != nil {
			return err
		}
		cold = coldRead{b: b, topic: old, ends: ends, files: files}
		rerr := c.awaitRunning(ctx) // That was its warm-up.
		if rerr == nil {
			rerr = cold.run(ctx, p.seconds())
		}
		ended := c.end()
		beside, err = c.wait()
		return errors.Join(rerr, ended, err)
	})
	if err != nil {
		return err
	}
	if err := p.addCatchup("while old records are read from the disk", &beside, m); err != nil {
		return err
	}
	if cold.bytes == 0 {
		return errors.New("nothing was read from the disk")
	}
	p.add("catchup", "the reader", "MB/s", float64(cold.bytes)/1e6/cold.took.Seconds(), m)
	p.add("catchup", "the reader", "% from the disk", 100*float64(cold.disk)/float64(cold.bytes), m)
	return errors.Join(dropTopic(ctx, b.address(), old), dropTopic(ctx, b.address(), fresh))
}

func (p *peerRun) addCatchup(row string, l *loaded, m measured) error {
	if l.Ack == nil || l.EndToEnd == nil {
		return fmt.Errorf("the producer %s has no latencies", row)
	}
	p.add("catchup", "producer, "+row, "p50 ms", l.Ack.P50, m)
	p.add("catchup", "producer, "+row, "p99 ms", l.Ack.P99, m)
	p.add("catchup", "to consumer, "+row, "p99 ms", l.EndToEnd.P99, m)
	return nil
}

// coldRead reads a topic again and again from the disk.
type coldRead struct {
	b     broker
	topic string
	ends  []int64
	files []string

	bytes, disk int64 // read, and of them from the disk
	took        time.Duration
}

// run reads for at least so long, forgetting the files before each pass.
func (c *coldRead) run(ctx context.Context, least time.Duration) error {
	for c.took < least {
		before, err := readBytes(c.b.pid())
		if err != nil {
			return err
		}
		r, err := fetchRaw(ctx, c.b.address(), c.topic, c.ends, 2)
		if err != nil {
			return err
		}
		after, err := readBytes(c.b.pid())
		if err != nil {
			return err
		}
		c.bytes, c.took, c.disk = c.bytes+r.bytes, c.took+r.took, c.disk+after-before
		if err := forget(c.files, withoutSync); err != nil {
			return err
		}
	}
	return nil
}
