package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// window is how far back the quantiles look, at least.
const window = time.Minute

// quantile is a part of all observations, and the label that dashboards know it by.
type quantile struct {
	part  float64
	label string
}

// quantiles are those of the JMX exporter's example, written as there.
func quantiles() []quantile {
	return []quantile{{0.50, "0.50"}, {0.75, "0.75"}, {0.95, "0.95"}, {0.98, "0.98"}, {0.99, "0.99"}, {0.999, "0.999"}}
}

// recent remembers two earlier readings of a histogram, so that quantiles speak
// of the last one to two windows and not of all time since the start. It moves
// on when it is read; observing costs nothing.
type recent struct {
	older, newer counts
	since        time.Time // When newer was read.
}

func (r *recent) over(now time.Time, c counts) counts {
	if r.since.IsZero() {
		r.since = now // The zero reading is that of the start.
	}
	if now.Sub(r.since) >= window {
		r.older, r.newer, r.since = r.newer, c, now
	}
	return c.minus(r.older)
}

// quantiles sends what a histogram's recent part says, in milliseconds.
func (m *Metrics) quantiles(ch chan<- prometheus.Metric, d *prometheus.Desc, c counts, now time.Time, labels ...string) {
	key := d.String()
	for _, l := range labels {
		key += "\x00" + l
	}
	m.mu.Lock()
	r := m.recent[key]
	if r == nil {
		r = new(recent)
		m.recent[key] = r
	}
	last := r.over(now, c)
	m.mu.Unlock()

	for _, q := range quantiles() {
		ms := float64(last.quantile(q.part)) / float64(time.Millisecond)
		ch <- gauge(d, ms, append(slices.Clone(labels), q.label)...)
	}
}
