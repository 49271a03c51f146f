// Package commitlog is the shared log of a broker: one append stream of frames, kept in many segments. A frame carries one record batch
// or one change of a partition's state; the log looks no deeper into it than checksums need. Partitions, offsets and indexes are its
// owner's (package log): the log gives out places, says what is committed, and hands everything back at the next open.
//
// # Walk through
//
// format.go draws every byte on disk. Reserve takes room and is the only call that waits for it; Place gives a frame its position (LSN)
// under the log's lock, copies the payload into the memory ring outside of it, and returns where the payload lies. Commit makes it
// written or synced: commit.go tells how one caller writes for all. Pin and ReadHead read, from the ring or from files. keeper.go and
// prealloc.go ready the next segment, seal filled ones, recycle dropped ones, and keep the reserve for a full disk. manifest.go holds the
// one small file that says what is live; each edit replaces it as a whole. scan.go, recover.go and run.go read frames and runs back.
//
// # Assumptions about disks
//
//   - A sector that is being written when the power goes holds the old or the new bytes, or part of each. Writing the same bytes again
//     harms nothing.
//   - Writing harms no bytes outside of the sectors it touches. (A group of frames may begin in the middle of a sector, of which the
//     first part is durable already and is written again unchanged.)
//   - After fdatasync has returned nil, what was written before it began is durable. After it has failed, nothing is known, for ever.
//   - Names are durable after fsync of the directory.
//   - Nothing is assumed about what never written or recycled space holds.
//
// # Crashes, step by step
//
//   - Append: a group is acknowledged after the sync that covers it. Before it any part of it may be found: whole frames at its front
//     are kept, the rest is cut as the torn tail.
//   - Roll: the next segment was allocated, headed, synced and listed in the manifest before. A crash finds the old segment without its
//     end frame, and then nothing behind it counts, or with it, and goes on in the next. Frames of the next segment are synced after
//     the old one's last sync.
//   - Preparing a segment: until the manifest lists it, its file is one that nothing names, recycled or removed at the next open.
//   - Sealing, attaching an index, a checkpoint, quarantine: one edit of the manifest each, before or after.
//   - Drop: out of the manifest first, then the file goes. A file that is renamed for its next life gets a new salt before it is listed.
//   - Recovery: nothing is shown before the tail is written again, synced, and sealed by one edit; a crash before repeats it.
//   - Clean stop: the edit that marks it comes after the last sync; the edit that unmarks it comes before the first append.
//
// # Invariants
//
//   - An LSN that may have been given is never given again: every segment's base lies above the room of all that came before it.
//   - Durable <= Written <= Next; OnCommit reports each in order, before anyone who waits is released.
//   - At most one goroutine writes and syncs segments (the writer's role, Log.writing), and groups are written in LSN order.
//   - The manifest is the truth: a segment's salt, base and end come from it. A segment is listed before a frame is placed in it.
//   - What was reserved can be placed: all that is reserved fits into the current segment, or together into the last one that is ready;
//     and into the ring.
//   - A block of the ring that holds unwritten bytes does not leave it. A block that a reader holds is not reused.
//   - Poison is final. A poisoned log never marks itself clean.
//   - A file is recycled or removed only after the manifest without it is durable and its last reader is gone.
//   - Disk space for frames is taken when a segment is prepared and at no other time.
//
// # Lock order
//
// The caller's locks (a partition's around Place), then Log.notifying, then Log.mu, then ring.mu. Log.notifying is held around OnCommit,
// which must not call the log; no other lock is held while anything outside is called, and none during I/O or while waiting. Edits of the
// manifest take turns by a token (Log.editing), sealing by another (Log.sealTurn), taken before the first.
//
// # Goroutines
//
// Two: the keeper and the background writer, from Recover to Close.
package commitlog
