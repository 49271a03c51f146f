package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// connections counts sockets. It changes with connections, not with requests, so
// a lock is cheap enough.
type connections struct {
	mu      sync.Mutex
	opened  map[string]uint64 // By listener.
	open    map[string]int
	refused map[string]uint64 // By reason.
}

// ConnectionOpened counts an accepted connection.
func (m *Metrics) ConnectionOpened(listener string) {
	c := &m.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open, c.opened = make(map[string]int), make(map[string]uint64)
	}
	c.open[listener]++
	c.opened[listener]++
}

// ConnectionClosed counts the end of one that ConnectionOpened counted.
func (m *Metrics) ConnectionClosed(listener string) {
	c := &m.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[listener] > 0 {
		c.open[listener]--
	}
}

// ConnectionRefused counts a connection that was closed for a reason of ours, such
// as a limit or bytes that are no Kafka request. Reasons are few and fixed.
func (m *Metrics) ConnectionRefused(reason string) {
	c := &m.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = make(map[string]uint64)
	}
	c.refused[reason]++
}

func (c *connections) collect(ch chan<- prometheus.Metric) {
	open := prometheus.NewDesc("mainstem_connections", "Client connections open now.", []string{"listener"}, nil)
	opened := prometheus.NewDesc("mainstem_connections_opened_total", "Client connections accepted.", []string{"listener"}, nil)
	refused := prometheus.NewDesc("mainstem_connections_refused_total", "Client connections that the broker closed, by reason.", []string{"reason"}, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	for listener, n := range c.open {
		ch <- gauge(open, float64(n), listener)
		ch <- counter(opened, float64(c.opened[listener]), listener)
	}
	for reason, n := range c.refused {
		ch <- counter(refused, float64(n), reason)
	}
}
