// Package storetest opens stores for tests: on a filesystem in memory, with
// small segments, and checked as a whole when the test ends. It also builds
// the batches that tests append.
//
// # Invariants
//
//   - A store from Open is closed at the test's end, and its directory passes
//     log.Check then.
//
// # Lock order
//
// None: there are no locks here.
package storetest
