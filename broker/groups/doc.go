// Package groups serves the requests about groups and committed offsets: it finds
// the shard that is responsible for a group, asks it, and puts its answer into the
// layout of the request's version. One file is one API, or a few that belong
// together.
//
// What can be judged without the group is judged here: whether topics and
// partitions exist. What depends on the group is the machine's to decide.
//
// What Kafka was seen to answer to bad input is answered here with the same code.
// Share groups are not served: their coordinator is refused with 42.
//
// # Invariants
//
//   - A request's turn is queued when it is submitted, so that requests of a
//     connection take effect in order. Only its answer is waited for later.
//   - Nothing that a shard gets refers to the call: a client may hang up at any time.
//   - This broker answers for a group only while it leads the group's partition
//     of __consumer_offsets, and has loaded it.
//
// Lock order: there are no locks here.
package groups
