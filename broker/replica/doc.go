// Package replica holds what this broker knows and does about each partition
// that it hosts: who leads it, how far it is committed, how it is configured,
// and who waits for it.
//
// A Set is all partitions of the broker. It follows the cluster's metadata
// (Apply), creates partitions in the store, begins leader epochs in bulk, and
// finds a partition by topic id or topic name without taking a lock. It never
// removes a partition that the metadata merely does not mention.
//
// A Partition takes appends from producers and reads for consumers while this
// broker leads it. The high watermark is the smallest synced end over the
// in-sync replicas. Replication adds followers' ends to the watermark; nothing
// else here depends on how many there are.
//
// A Waiter is whoever waits for something to happen on some partitions. It
// hangs a Watch on each of them; a partition that moves marks the watch and
// wakes the waiter. A blocked caller is the parked request: no goroutine, timer
// or poll runs for a partition, and a waiter that watches ten thousand quiet
// partitions costs nothing until one of them moves.
//
// # Invariants
//
//   - Readers see no offset at or above the high watermark, and read_committed
//     readers none at or above the last stable offset.
//   - An append is acknowledged only while the broker's lease holds and the
//     partition is led in the epoch in which it was appended.
//   - A partition's leader epoch never goes backwards.
//   - A partition leaves the store only when the metadata says that its topic
//     was deleted.
//   - A watch is marked after what it watches has moved, and its mark is taken
//     before what it watches is read. So no move is missed.
//
// # Lock order
//
// Set.mu -> Partition.mu -> Waiter.mu. Set.mu is held by Apply alone, also
// while the store makes partitions durable; look-ups never take it. The other
// two are held for a few instructions, and never across a call into the store.
package replica
