// Package queue is what one partition knows of the shared log: the entries of
// its newest batches, its leader epochs, its idempotent producers and
// transactions, and the formats in which all of that rests on disk: the index
// file of a sealed segment and the checkpoint.
//
// It is pure: a Queue is driven by its owner, does no I/O, starts no
// goroutine, reads no clock and takes no lock. The two file formats read and
// write through vfs.
//
// # Invariants
//
//   - Everything in a Queue follows from the frames of its partition in the
//     order of their LSN. Applying a frame that the state already holds
//     (LSN <= AsOf) changes nothing but the entries.
//   - Entries of a queue never overlap once truncations (cuts) are applied:
//     an entry is live if no later cut lies at or below its base offset.
//   - Offsets between Start and End that no live entry covers are holes: a
//     record that was there is damaged. They are kept as such, never skipped.
//   - The latest leader epoch never falls, also not by a truncation.
//   - A producer's remembered batches are of its current epoch only.
//
// # Lock order
//
// None here: every method of Queue REQUIRES the owner's lock on the
// partition. Readers of files are safe for concurrent use.
package queue
