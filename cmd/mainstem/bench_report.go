package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// benchResult is what one run has measured.
type benchResult struct {
	Command    string     `json:"command"`
	Topic      string     `json:"topic"`
	Partitions int32      `json:"partitions"`
	Load       *benchLoad `json:"load,omitempty"`
	Seconds    float64    `json:"seconds"`
	Records    int64      `json:"records"`
	Bytes      int64      `json:"bytes"` // of values
	PerSecond  float64    `json:"records_per_second"`
	Megabytes  float64    `json:"megabytes_per_second"`
	Errors     int64      `json:"errors"`
	Failure    string     `json:"first_error,omitempty"`
	Missing    int64      `json:"records_missing,omitempty"` // written and not read back in time
	Creation   float64    `json:"creation_ms,omitempty"`     // of the topic
	Ack        *latencies `json:"ack_ms,omitempty"`
	EndToEnd   *latencies `json:"end_to_end_ms,omitempty"`
	Late       *latencies `json:"generator_late_ms,omitempty"` // the client's own lateness, contained in the others
}

func (r *benchResult) counted(n count, took time.Duration) {
	r.Records, r.Bytes, r.Seconds = n.records, n.bytes, took.Seconds()
	if took > 0 {
		r.PerSecond = float64(n.records) / r.Seconds
		r.Megabytes = float64(n.bytes) / r.Seconds / 1e6
	}
}

// produced fills in what the producers have counted.
func (r *benchResult) produced(p *producers, n count, took time.Duration) {
	r.counted(n, took)
	r.Load = p.load
	r.Ack, r.Late = p.meter.ack.snapshot().summary(), p.meter.late.snapshot().summary()
	r.Errors = p.meter.errors.Load()
	if f := p.meter.failure.Load(); f != nil {
		r.Failure = oneLine((*f).Error())
	}
}

// show prints the result; a run in which nothing was done is an error.
func (b *bench) show(r *benchResult, failure *error) error {
	if r.Records == 0 && failure != nil {
		return *failure
	}
	if b.json {
		return printJSON(b.c.out, r)
	}
	if err := printf(b.c.out, "%d records, %s in %.2f s: %.0f records/s, %.1f MB/s\n",
		r.Records, byteSize(r.Bytes), r.Seconds, r.PerSecond, r.Megabytes); err != nil {
		return err
	}
	if err := printLatencies(b.c.out, r); err != nil {
		return err
	}
	if r.Errors > 0 {
		if err := printf(b.c.out, "%d records failed; the first: %s\n", r.Errors, r.Failure); err != nil {
			return err
		}
	}
	if r.Missing > 0 {
		return printf(b.c.out, "%d records were written and not read back in time\n", r.Missing)
	}
	return nil
}

func printLatencies(w io.Writer, r *benchResult) error {
	t := table{heading: []string{"LATENCY IN MS", "MEAN", "P50", "P90", "P99", "P99.9", "MAX"}}
	for _, row := range []struct {
		name string
		l    *latencies
	}{{"acknowledged", r.Ack}, {"end to end", r.EndToEnd}, {"generator late", r.Late}} {
		if l := row.l; l != nil {
			t.add(row.name, millis(l.Mean), millis(l.P50), millis(l.P90), millis(l.P99), millis(l.P999), millis(l.Max))
		}
	}
	if len(t.rows) == 0 {
		return nil
	}
	return t.print(w)
}

func millis(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// progress prints one line a second until the returned function is called.
func (b *bench) progress(now func() count, h *histogram) (stop func()) {
	if b.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		began, last, before, seen := time.Now(), time.Now(), count{}, snapshot{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			n, at := now(), time.Now()
			took := at.Sub(last).Seconds()
			line := fmt.Sprintf("%4.0fs  %9.0f records/s  %8.1f MB/s", at.Sub(began).Seconds(),
				float64(n.records-before.records)/took, float64(n.bytes-before.bytes)/took/1e6)
			if h != nil {
				all := h.snapshot()
				if d := all.since(seen); d.total > 0 {
					line += fmt.Sprintf("  p50 %s ms  p99 %s ms", millis(milliseconds(d.quantile(0.5))), millis(milliseconds(d.quantile(0.99))))
				}
				seen = all
			}
			_ = printf(b.c.err, "%s\n", line) // Nobody looks: the result counts.
			before, last = n, at
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// errUnread says that a topic's records did not come in time.
var errUnread = errors.New("the broker stopped sending records")
