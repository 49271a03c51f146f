package metrics

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Options are given to New.
type Options struct {
	Version   string // Of the binary.
	MaxTopics int    // So many topics get series of their own; 0: none.
}

// Metrics holds the figures of one broker. All methods are safe for concurrent use.
type Metrics struct {
	// Sync is how long making bytes of the log durable took.
	Sync Histogram
	// Corrupt counts records of the log that were found damaged and set aside.
	Corrupt Counter
	// SessionEvictions counts fetch sessions that had to make room.
	SessionEvictions Counter
	// ISRShrinks and ISRExpands count changes of in-sync replicas by leaders here.
	ISRShrinks, ISRExpands Counter

	registry     *prometheus.Registry
	topicSeries  []topicSeries
	requestDescs requestDescs
	gauges       gaugeDescs
	requests     requests
	connections  connections
	info         prometheus.Metric
	now          func() time.Time

	mu        sync.Mutex // Guards all below, others' counters aside.
	maxTopics int
	topics    map[string]*Topic
	others    Topic // Topics beyond maxTopics, and those deleted.
	recent    map[string]*recent
	source    Source
}

// New returns metrics that are all zero.
func New(o Options) *Metrics {
	build := prometheus.NewDesc("mainstem_build_info", "Always 1; the labels say which binary this is.", []string{"version", "goversion"}, nil)
	m := &Metrics{
		maxTopics:    o.MaxTopics,
		registry:     prometheus.NewRegistry(),
		topicSeries:  newTopicSeries(),
		requestDescs: newRequestDescs(),
		gauges:       newGaugeDescs(),
		topics:       make(map[string]*Topic),
		recent:       make(map[string]*recent),
		info:         gauge(build, 1, o.Version, runtime.Version()),
		now:          time.Now,
	}
	m.registry.MustRegister(
		collector{m},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Gatherer is what /metrics serves.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// SetSource says whom to ask for what is not counted.
func (m *Metrics) SetSource(s Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.source = s
}

// SetMaxTopics changes how many topics get series of their own. It holds for
// topics that Topic is asked for later.
func (m *Metrics) SetMaxTopics(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maxTopics = n
}

// collector is Metrics as Prometheus wants it.
type collector struct{ m *Metrics }

// Describe sends nothing, which makes this an unchecked collector: totals without
// labels and series by topic share a name, as they do in Kafka.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all series.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- c.m.info
	c.m.collectTopics(ch)
	now := c.m.now()
	c.m.collectRequests(ch, now)
	c.m.connections.collect(ch)
	c.m.collectGauges(ch, now)
}

func counter(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func histogram(d *prometheus.Desc, c counts, step int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstHistogram(d, c.total, c.sum.Seconds(), c.cumulative(step), labels...)
}
