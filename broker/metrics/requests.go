package metrics

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	maxKey     = 127 // API keys above this are no Kafka API.
	maxVersion = 31
)

// api counts the requests of one API key.
type api struct {
	versions [maxVersion + 1]Counter
	took     Histogram

	mu     sync.Mutex
	errors map[int16]*Counter
}

// requests holds an api for each key that was used.
type requests struct {
	apis [maxKey + 1]atomic.Pointer[api]
}

func (r *requests) of(key int16) *api {
	if key < 0 || key > maxKey {
		return nil
	}
	if a := r.apis[key].Load(); a != nil {
		return a
	}
	r.apis[key].CompareAndSwap(nil, new(api))
	return r.apis[key].Load()
}

// Request counts one answered request and the time from its last byte read to
// its answer handed to the socket.
func (m *Metrics) Request(key, version int16, took time.Duration) {
	a := m.requests.of(key)
	if a == nil || version < 0 || version > maxVersion {
		return
	}
	a.versions[version].Inc()
	a.took.Observe(took)
}

// RequestError counts one error code given in an answer of the API; 0 is none.
func (m *Metrics) RequestError(key, code int16) {
	a := m.requests.of(key)
	if a == nil || code == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.errors[code]
	if c == nil {
		c = new(Counter)
		if a.errors == nil {
			a.errors = make(map[int16]*Counter)
		}
		a.errors[code] = c
	}
	c.Inc()
}

// APIName is Kafka's name of an API, such as InitProducerId. The names of kmsg
// differ in the case of abbreviations, and in one word.
func APIName(key int16) string {
	const alterPartitionReassignments = 45
	if key == alterPartitionReassignments {
		return "AlterPartitionReassignments"
	}
	name := kmsg.NameForKey(key)
	for _, abbreviation := range [][2]string{{"SASL", "Sasl"}, {"ACLs", "Acls"}, {"SCRAM", "Scram"}, {"ProducerID", "ProducerId"}} {
		name = strings.ReplaceAll(name, abbreviation[0], abbreviation[1])
	}
	return name
}

// ErrorName is Kafka's name of an error code, such as NOT_LEADER_OR_FOLLOWER.
func ErrorName(code int16) string {
	switch code {
	case 0:
		return "NONE"
	case kerr.NotLeaderForPartition.Code:
		return "NOT_LEADER_OR_FOLLOWER" // kerr has its older name.
	}
	return kerr.TypedErrorForCode(code).Message
}

type requestDescs struct {
	requests, errors, millis, millisCount, seconds *prometheus.Desc
}

func newRequestDescs() requestDescs {
	return requestDescs{
		requests: prometheus.NewDesc("kafka_network_requestmetrics_requests_total",
			"Requests answered.", []string{"request", "version"}, nil),
		errors: prometheus.NewDesc("kafka_network_requestmetrics_errors_total",
			"Error codes in answers.", []string{"request", "error"}, nil),
		millis: prometheus.NewDesc("kafka_network_requestmetrics_totaltimems",
			"Milliseconds from a request read to its answer written, over the last one to two minutes.", []string{"request", "quantile"}, nil),
		millisCount: prometheus.NewDesc("kafka_network_requestmetrics_totaltimems_count",
			"Requests answered.", []string{"request"}, nil),
		seconds: prometheus.NewDesc("mainstem_request_duration_seconds",
			"Time from a request read to its answer written, waiting for data or acks included.", []string{"request"}, nil),
	}
}

func (m *Metrics) collectRequests(ch chan<- prometheus.Metric, now time.Time) {
	for key := range m.requests.apis {
		a := m.requests.apis[key].Load()
		if a == nil {
			continue
		}
		name := APIName(int16(key))
		for v := range a.versions {
			if n := a.versions[v].Value(); n > 0 {
				ch <- counter(m.requestDescs.requests, float64(n), name, strconv.Itoa(v))
			}
		}
		a.mu.Lock()
		for code, c := range a.errors {
			ch <- counter(m.requestDescs.errors, float64(c.Value()), name, ErrorName(code))
		}
		a.mu.Unlock()

		took := a.took.read()
		ch <- counter(m.requestDescs.millisCount, float64(took.total), name)
		ch <- histogram(m.requestDescs.seconds, took, 2, name)
		m.quantiles(ch, m.requestDescs.millis, took, now, name)
	}
}
