// Package broker joins the parts of a Mainstem broker: the log, the metadata, the
// partitions, the request handlers, the listeners. It has no policy of its own; it
// opens things in order, connects them, and closes them in the reverse order.
//
// # Data directory
//
//	DIR/lock        held while a broker runs
//	DIR/commitlog   the shared log, package log
//	DIR/etcd        the embedded etcd, if it is used
//
// # Order
//
// Open: lock, HTTP (live, not ready), metadata, log, partitions, listeners, lease,
// leader epochs, metadata applied, serving. Close: not ready, listeners drained,
// log closed, metadata left, HTTP, lock.
//
// # Invariants
//
//   - Nothing is served before the log has recovered, the lease is held and every
//     partition that this broker leads has an epoch begun since the log was opened.
//   - A broker whose log is poisoned, or whose metadata is lost for good, says so
//     through Done and acknowledges nothing more.
//
// Lock order: the only lock here guards the list of deletions to acknowledge.
//
// # Goroutines
//
// upkeep (retention, what a full disk had refused, deletions acknowledged), watch
// (the ends of the parts), and the servers' own.
package broker
