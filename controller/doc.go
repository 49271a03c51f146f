// Package controller keeps the cluster's metadata in etcd, embedded in the process or external, and shows it as a
// meta.Image: registration under a lease, topics, partitions, configs, producer ids. It is the only package that talks to
// etcd. The keys and values are drawn in package meta.
//
// # Reading
//
// Open lists everything below the prefix at one revision; after that a watch tells what changes. What one
// answer of etcd carries, which are whole revisions, becomes one new image, which is stored atomically and then handed, with
// its delta, to the subscribers, in order, from one goroutine. When revisions that are still needed were compacted, or etcd
// went back to an older state, everything is listed anew and the delta is worked out by comparing.
//
// # Writing
//
// Whatever a client asks for is planned on what etcd holds and committed by one transaction that depends on it; if something
// else came between, it is planned again. An attempt of which it is unknown whether it was carried out is repeated, and each
// operation knows its own work when it finds it: a topic by its id, configs by their contents. Each transaction also
// depends on the cluster's identity, so nothing is ever written into an etcd that was wiped or replaced.
// An operation that succeeded waits until the local image shows it and the subscribers have taken it in.
//
// # Which etcd
//
// The embedded etcd is one member that nobody else can reach: it listens nowhere and is called directly. It keeps the last 1000
// revisions and 2 GiB; when that is full of history it is compacted and defragmented on the spot. Its warnings go to the broker's
// log, and what it cannot go on after ends the client, not the process.
// An external etcd (3.5.8 or newer: progress of watches) is its operator's: its auto-compaction, quota and backups are
// not touched, since others may use it too.
//
// # Being alive
//
// A registration has two keys: the broker, which stays, and who holds its id now, which is under a lease. The deadline until which
// the broker may act is counted on its own clocks from before it asked for the renewal, and a tenth short, so it ends
// before etcd gives the id to somebody else. After a stall (of the process, of etcd, of the network) the lease is renewed, or made
// anew if etcd has ended it, without help. A process that died leaves its lease behind: the next one is let in at once if it
// can know that the other is dead, as it holds the lock of the same directory on the same running kernel (or etcd
// is its own); else it waits for the lease to end, and gives up if somebody renews it.
//
// # Invariants
//
//   - Fenced is true from the deadline on, whatever goroutine is late.
//   - An image never shows part of a transaction.
//   - Metadata that is missing deletes nothing: only a tombstone does, and it stays until every holder has acknowledged it.
//   - A producer id is handed out once.
//
// # Goroutines
//
// watch (lists, watches, makes images), dispatch (calls subscribers), session (lease), fence (tells of changes of
// Fenced). Close ends all of them; the embedded etcd, which has its own, is stopped last.
//
// Lock order: Client.mu is a leaf; no lock is held across a call to etcd or to a subscriber.
package controller
