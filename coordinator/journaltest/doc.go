// Package journaltest has a journal in memory, and scripts to be played on it, for
// the tests of coordinators.
//
// Invariants: what Append has taken is there until the Log is thrown away, in
// order; a Journal of an older epoch than the newest takes nothing.
//
// Lock order: Log.mu is the only lock; nothing is called while it is held.
package journaltest
