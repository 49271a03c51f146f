// Package metrics counts what a broker does and gives it to Prometheus.
//
// Where Apache Kafka has a metric, its name and labels here are those that the
// JMX exporter's Kafka example gives it, so that dashboards and alerts made for
// Kafka work unchanged. Everything else is called mainstem_… and uses base units
// (seconds, bytes).
//
// There are two kinds of figures. What happens often is counted where it happens:
// a Counter or a Histogram costs an atomic addition and never a lock, a map
// look-up or an allocation. What merely is (partitions led, bytes on disk, space
// left) is asked for at scrape time through the functions of Source.
//
// # Series
//
// Series for a single topic are made for the first MaxTopics topics only; the
// traffic of further ones is part of the totals and of nothing else. Totals are
// the sum over all topics, those deleted since included, and never go backwards.
//
// # Invariants
//
//   - A total of Metrics is at least the sum of the series shown for topics.
//   - Hooks may be called from any goroutine, at any time, also before SetSource.
//
// # Lock order
//
// Metrics.mu is held for map look-ups only, never while a function of Source runs.
package metrics
