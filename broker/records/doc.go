// Package records has the handlers of the requests that carry records or speak
// of offsets: Produce, Fetch, ListOffsets, DeleteRecords and OffsetForLeaderEpoch.
//
// A handler has two halves. Submit runs in the request's turn on its connection:
// it checks, appends and takes a ticket. Finish runs when the answer's turn has
// come: it waits and encodes. So several produces of one connection share one
// sync, and one produce of many partitions waits once.
//
// Produce and Fetch carry the bytes, so their bodies are written by hand around
// the records, which are never copied or re-encoded; tests hold these codecs to
// kmsg's, byte for byte, at every version.
//
// Of an answer to a fetch only the beginning is read before it is begun; the rest is
// read, and checked, piece by piece while it is written, so that it takes little
// memory. Damage that shows only then ends the connection: the client asks again, and
// is told which offsets are lost.
//
// A fetch session (KIP-227) keeps a watch on each of its partitions for as long
// as it lives. An incremental fetch therefore looks only at the partitions that
// moved, that the client moved, or that had something left last time: a session
// over ten thousand quiet partitions costs nothing.
//
// # Invariants
//
//   - Nothing is acknowledged that was not appended in the epoch in which the
//     broker still leads, under a lease that still holds, and that is not as
//     durable as its topic asks.
//   - A fetch answers no more bytes than it was asked for and than the broker's
//     budget gives it, but at least one batch if there is any.
//   - Client errors come out as Kafka's codes; what has none is reported once.
//
// # Lock order
//
// sessions.mu -> session.mu -> what package replica locks. No lock is held while a
// fetch waits or reads.
package records
