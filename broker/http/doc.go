// Package http is the broker's HTTP side: health, metrics and the log level.
//
//	GET /live      200 while the process does its work, 503 once it cannot.
//	GET /ready     200 only while requests of Kafka clients are served, else 503 and why.
//	GET /metrics   all figures, for Prometheus.
//	GET /loglevel  the level as JSON; PUT {"level":"debug"} changes it at once.
//
// # Invariants
//
//   - Nothing here can hold up the broker: handlers read state through functions
//     that do not wait, and a client that does not read is cut off by time.
//   - PUT /loglevel is the only request that changes anything.
//
// # Lock order
//
// None: the package has no locks.
package http
