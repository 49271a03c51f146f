package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// loaded is what is used of the output of `mainstem bench`.
type loaded struct {
	Seconds  float64     `json:"seconds"`
	Errors   int64       `json:"errors"`
	Failure  string      `json:"first_error"`
	Missing  int64       `json:"records_missing"`
	Ack      *percentile `json:"ack_ms"`
	EndToEnd *percentile `json:"end_to_end_ms"`
}

type percentile struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
}

// percentiles are the figures of latency.
func percentiles() []string { return []string{"p50 ms", "p90 ms", "p99 ms", "p99.9 ms"} }

// client is `mainstem bench`, an ordinary client, as a process.
type client struct {
	cmd     *exec.Cmd
	out     bytes.Buffer
	told    strings.Builder // to standard error
	running chan struct{}   // closed when the load has run for a second
}

// Write takes what the process says on standard error: a line a second while it
// runs.
func (c *client) Write(line []byte) (int, error) {
	if c.told.Len() == 0 {
		close(c.running)
	}
	return c.told.Write(line)
}

func startClient(ctx context.Context, b broker, args ...string) (*client, error) {
	bin, err := harness.Binary()
	if err != nil {
		return nil, err
	}
	args = append([]string{"bench"}, append(args, "--bootstrap", b.address(), "--json")...)
	c := &client{cmd: exec.CommandContext(ctx, bin, args...), running: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, c
	return c, c.cmd.Start()
}

// awaitRunning waits until the load has run for a second.
func (c *client) awaitRunning(ctx context.Context) error {
	select {
	case <-c.running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return errors.New("the client does not begin")
	}
}

// end has it stop early; what it has measured until then counts.
func (c *client) end() error { return c.cmd.Process.Signal(os.Interrupt) }

func (c *client) wait() (l loaded, err error) {
	if err := c.cmd.Wait(); err != nil {
		return l, fmt.Errorf("%v: %w\n%s", c.cmd.Args[1:], err, c.told.String())
	}
	if err := json.Unmarshal(c.out.Bytes(), &l); err != nil {
		return l, err
	}
	if l.Errors > 0 || l.Missing > 0 {
		return l, fmt.Errorf("%v: %d records failed, %d were not read: %s", c.cmd.Args[1:], l.Errors, l.Missing, l.Failure)
	}
	return l, nil
}

func runClient(ctx context.Context, b broker, args ...string) (l loaded, err error) {
	c, err := startClient(ctx, b, args...)
	if err != nil {
		return l, err
	}
	return c.wait()
}

func scenarioClient(ctx context.Context, p *peerRun, b broker) error {
	for _, c := range []struct {
		row        string
		partitions int
	}{{"1 partition", 1}, {"16 partitions", 16}} {
		topic := fmt.Sprintf("client-%x", rand.Uint32())
		if err := makeTopic(ctx, b.address(), topic, c.partitions); err != nil {
			return err
		}
		var written int64
		var took time.Duration
		m, err := p.measure(ctx, b, func() error {
			before, err := recordsOf(ctx, b, topic)
			if err != nil {
				return err
			}
			l, err := runClient(ctx, b, "produce", "--topic", topic, "--batch", "1000000", "--warmup", "0s", "--duration", p.seconds().String())
			if err != nil {
				return err
			}
			after, err := recordsOf(ctx, b, topic)
			written, took = (after-before)*1024, time.Duration(l.Seconds*float64(time.Second))
			return err
		})
		if err != nil {
			return err
		}
		if err := p.addRate("client", c.row, written, took, m); err != nil {
			return err
		}
		if err := dropTopic(ctx, b.address(), topic); err != nil {
			return err
		}
	}
	return nil
}

// recordsOf counts a topic's records.
func recordsOf(ctx context.Context, b broker, topic string) (sum int64, err error) {
	ends, err := topicEnds(ctx, b.address(), topic)
	for _, e := range ends {
		sum += e
	}
	return sum, err
}

func scenarioEndToEnd(ctx context.Context, p *peerRun, b broker) error {
	for _, rate := range []int{1000, 10000} {
		topic := fmt.Sprintf("e2e-%x", rand.Uint32())
		if err := makeTopic(ctx, b.address(), topic, 4); err != nil {
			return err
		}
		var l loaded
		m, err := p.measure(ctx, b, func() (err error) {
			l, err = runClient(ctx, b, "latency", "--topic", topic, "--rate", strconv.Itoa(rate), "--warmup", p.warmup().String(), "--duration", (2 * p.seconds()).String())
			return err
		})
		if err != nil {
			return err
		}
		if l.EndToEnd == nil {
			return fmt.Errorf("nothing was read at %d records a second", rate)
		}
		for i, v := range []float64{l.EndToEnd.P50, l.EndToEnd.P90, l.EndToEnd.P99, l.EndToEnd.P999} {
			p.add("e2e", fmt.Sprintf("%d records/s", rate), percentiles()[i], v, m)
		}
		if err := dropTopic(ctx, b.address(), topic); err != nil {
			return err
		}
	}
	return nil
}
