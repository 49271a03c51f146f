// Package txns serves the requests about transactions: it finds the shard that is
// responsible for a transactional id, asks it, and puts its answer into the layout
// of the request's version. One file is one API. It also hands out producer ids,
// says for Produce whether a partition belongs to a transaction (Enlist), and
// writes the markers of transactions whose end is decided.
//
// # Markers
//
//	EndTxn -> shard: Prepare record committed -> client is answered
//	                                          -> writer: a marker to each partition,
//	                                             one sync for all that wait
//	                                          -> shard: Complete record
//
// Partitions of __consumer_offsets get their markers through the shard of the
// groups that they hold. What cannot be written now is tried again for as long as
// this broker coordinates the id; a partition that was deleted counts as written.
//
// # Invariants
//
//   - A marker is written only while its transaction is in a Prepare state, or the
//     one after it might be ended by it.
//   - This broker answers for an id only while it leads the id's partition of
//     __transaction_state, and has loaded it.
//   - Nothing that a shard gets refers to the call: a client may hang up at any time.
//   - A producer id is handed out once.
//
// Lock order: writer.mu is held for a few instructions, never across a call into
// the log or a shard.
package txns
