// Package txn is the state machine of one partition of __transaction_state: the
// transactional ids that hash to it, their producers and their transactions.
//
//	                  partitions added          end, timeout, a new producer
//	Empty ----------------------------> Ongoing ----------------------------+
//	  ^ |                                  ^                                |
//	  | |  abort of nothing                | partitions added               v
//	  | +----------------------------------|------> PrepareCommit or PrepareAbort
//	  |                                    |                                |
//	  |  a new producer                    |        all markers are written |
//	  +------------------------- CompleteCommit or CompleteAbort <----------+
//
// The decision is the Prepare record: once it is committed the transaction has
// ended that way, whatever happens, and the client is told so. The markers are
// written to the partitions after that, outside of the machine (Options.End),
// which then reports with Machine.Ended. A machine that is loaded in a Prepare
// state has them written again.
//
// There are two ways to end a transaction, by what the client speaks. In version 1
// a producer keeps its epoch from one transaction to the next. In version 2
// (KIP-890) every end raises the epoch, so that a late batch of a transaction that
// has ended is known by its epoch; when the epochs of a producer id are used up,
// the end brings a new id.
//
// # Records
//
//	key    int16 0 | transactional id string
//	value  int16 version
//	       | producer id int64 | producer epoch int16 | timeout int32, milliseconds | state int8
//	       | partitions, nullable array of (topic string, array of int32)
//	       | last update int64 | start int64, milliseconds, -1 without a transaction
//	       | tags, from version 1: 0 previous producer id int64, 1 next producer id int64,
//	         2 the client's transaction version int16, 3 next producer epoch int16
//
// Version 1 is written; its strings and arrays are compact. A null value is a
// tombstone. States are numbered 0 Empty, 1 Ongoing, 2 PrepareCommit,
// 3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort, 6 Dead, 7 PrepareEpochFence;
// the last two are never written.
//
// # Invariants
//
//   - What Prepare says is never taken back; no transaction of the same id begins
//     before its markers are written everywhere.
//   - A producer epoch that a client may use is below 32767, so that there is always
//     one left to fence it with.
//   - A producer id and epoch that were fenced never get a yes again.
//   - An answer tells of committed state only, refusals included.
//   - Replaying what a machine has appended gives its state, but for what waits and
//     the epoch before the last raise.
//
// Lock order: there are no locks; a machine belongs to its shard.
package txn
