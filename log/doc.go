// Package log is the store: every partition of a broker is a light queue over
// one shared commitlog.
//
// A Partition knows its log by a queue.Queue: the entries of its newest
// batches, epochs, producers, transactions. An append reserves room in the
// commitlog, then, under the partition's lock, is checked, stamped with its
// offset and epoch, placed and published; Commit waits until it is safe. When
// a segment is sealed, one goroutine writes its index: the entries, sorted by
// partition, and the state of each partition that the segment touched. The
// entries then leave memory, and reads below them find their rows through one
// bounded cache. No partition has a file, a goroutine or a timer.
//
// # Control frames
//
// Every change of state is a frame. Create, delete and log-start frames carry
// many partitions; epoch and truncate frames one. A log-start frame carries
// the bytes that it removed and a truncate frame the producers as they were at
// the new end, so that a replay needs nothing but the frames.
//
// # States and as-of
//
// A state on disk (in an index or a checkpoint) says as of which LSN it is. It
// may be ahead of the segment in whose index it stands, never behind: whoever
// writes it first makes durable what it holds. A replay skips the frames that
// the state already has; their entries it takes in all the same. Truncations
// are kept in the state as cuts until no older segment is left, and decide
// which entries in older indexes are live.
//
// # Crash safety
//
// What is assumed of the disk: a sync that returned makes the bytes written
// before it durable; anything unsynced may be lost in part, sector by sector;
// a file's name is durable after its directory's sync.
//
//   - Append: before the commit nothing was promised. After it, Open finds the
//     frame by the scan of a segment without an index, or by the index.
//   - Seal and index: the index is written under a temporary name, synced,
//     renamed, and only then named in the manifest. A crash before that scans
//     the segment again; entries leave memory after it.
//   - Checkpoint: likewise. The manifest names the old one or the new one. It
//     is written twice, since of what was freed nothing else tells; without a
//     copy that can be read such a store does not open.
//   - Freeing a segment: the frames that made it dead are synced, and the
//     checkpoint is at or above its end, before the manifest forgets it; the
//     file goes after its last reader.
//   - Create, delete, epoch, truncate, log start: one frame each; a crash
//     leaves all of its effect or none.
//   - Clean stop: the checkpoint also holds the entries in memory and says that
//     it is complete; only if it reaches to the log's end is it believed.
//
// # Deviations from the design
//
// Truncation below the offset at which a producer's remembered history begins
// (its older batches were below the log start and are freed) forgets what only
// that history told; a producer then counts as unknown, which accepts any
// sequence. Kafka does the same when its snapshots are gone.
//
// # Invariants
//
//   - Offsets are given under the partition's lock in the order of the LSNs,
//     without holes. An offset that was durable is never given again.
//   - A leader's append carries an epoch begun in this opening; epochs of a
//     partition never fall.
//   - Durable never passes what is synced (written, for async partitions), and
//     rises before those who wait for it go on.
//   - A partition goes only by a delete frame.
//   - A damaged record makes its offsets a StorageError and nothing else.
//
// # Lock order
//
// Store.serial (one control operation), Store.capture, Store.mu, Partition.mu,
// then the commitlog's own. The caches' locks and background.mu are innermost.
// No lock is held across I/O or a wait: serial, which is a channel, is held
// while room in the log is waited for, capture and Partition.mu never are.
package log
