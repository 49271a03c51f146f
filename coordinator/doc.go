// Package coordinator runs one state machine for each partition of an internal
// topic that this broker leads: the machine's state is what the partition's
// records say, and every change of it is a record.
//
// A Runtime has the Shards of one topic. A Shard has a machine, a Journal (the
// partition) and one goroutine that runs turns, one after the other:
//
//	load      the journal's records are replayed into a new machine
//	serve     turn: change the state, append records, promise answers
//	          turn: ...
//	          what the turns have appended is journalled as one batch
//	settle    once that is committed, its answers are given
//	resign    state is dropped, who waits is told, and the partition is loaded again
//
// Serving and settling overlap: while one batch is being committed the next
// turns run, and all that they append until then is the next commit. So a lone
// request pays one sync, and a thousand at once share a few.
//
// Machines are pure: they know no socket, file, metadata store, goroutine or
// clock. A turn tells them the time, and timers call them in a turn of their own.
//
// The internal topics are compacted: of each key only the newest record counts,
// and a machine writes a tombstone for what it forgets. It is the log's compaction
// that keeps a replay short; a log that does not compact yet makes the load after a
// restart grow with what was ever written (about half a microsecond a record). There
// is no second store beside the log.
//
// # Invariants
//
//   - An answer that was promised in a turn is given after everything that was
//     appended before it is committed; if that fails it is an error.
//   - Only committed state is lost by nobody, and a shard whose journal refused a
//     write never serves the state that it could not write.
//   - A machine is touched by its shard's goroutine alone.
//   - A promise is kept once: whoever waits on it is always woken.
//
// # Lock order
//
// Runtime.mu -> Shard.mu. Both are held for a few instructions, never across a
// turn, a call into the journal or a wait.
package coordinator
