// Package group is the state machine of one partition of __consumer_offsets: the
// groups whose ids hash to it, and the offsets that were committed for them.
//
// Groups are of one of these kinds, and share one namespace of ids:
//
//	Classic   members join, one of them assigns partitions, all sync (or nobody
//	          ever joined, and the group is a place for offsets)
//	Consumer  members heartbeat, and the broker assigns partitions (KIP-848)
//
// A classic group goes through these states:
//
//	          join                  all joined, or time is up
//	Empty ------------> PreparingRebalance ------------> CompletingRebalance
//	  ^                  ^   |  nobody left    ^  join, leave,  |
//	  |                  |   |                 |  timeout       | the leader's sync
//	  +------------------|---+                 +----------------+
//	                     |  join, leave, timeout                v
//	                     +----------------------------------- Stable
//
// # Records
//
// Keys begin with an int16 that says what they are; what is written is what Kafka
// 4.3 writes, and what older brokers have written is read.
//
//	key 0, 1   group, topic, partition   value 0-4: an offset           (written: 1, 4)
//	key 2      group                     value 0-4: a classic group     (written: 3)
//	key 3      group                     value 0: a consumer group's epoch; 6 its target's
//	key 5, 7, 8  group, member           value 0: what a member says, is to have, has
//	key 16     group, expression         value 0: the topics that match
//
// An offset that was committed in a transaction counts once the transaction has
// committed; until then it is pending.
//
// # Invariants
//
//   - An id names one group at a time. A group of another kind in its place is
//     preceded by the tombstones of the old one's records.
//   - Offsets belong to the id, not to the kind of group that has it.
//   - An offset belongs to a topic's UUID where that is known: it is not shown to
//     readers of another topic of the same name.
//   - Replaying what a machine has appended gives its state, but for timers, calls
//     that wait and members that have not joined.
//   - Metadata of members is opaque; only the topics of protocol type "consumer"
//     are looked for, and garbage there is no error.
//
// Lock order: there are no locks; a machine belongs to its shard.
package group
