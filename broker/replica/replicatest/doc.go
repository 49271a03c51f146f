// Package replicatest gives tests a broker's partitions over a real store in a
// temporary directory, and the metadata to steer them, without etcd or sockets.
//
// # Invariants
//
//   - The metadata's image changes as the controller's does: by the same keys and
//     values, one revision after the other.
//   - A store that was opened is closed at the end of its test.
//
// # Lock order
//
// A Node takes no locks. Its test steers it from one goroutine; what it holds may be
// used from many.
package replicatest
