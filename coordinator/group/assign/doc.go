// Package assign spreads the partitions of topics over the members of a consumer
// group. It is pure: what it decides depends on what it is given only, and not on
// the order in which members and topics are given.
//
//	Uniform   every member gets as many partitions as any other, as far as
//	          subscriptions allow; what a member has it keeps if that is possible
//	Range     of each topic, members get ranges of partitions next to each other:
//	          topics with the same partitions and members are assigned alike
//
// # Invariants
//
//   - A partition of a topic that somebody is subscribed to has exactly one
//     member, which is subscribed to the topic.
//   - Uniform: between two members who could take each other's partitions of a
//     topic, the difference is one partition at most. If that holds for what is
//     given already, and nothing is left over, nothing moves.
//   - Range: of one topic, members differ by one partition at most.
//
// Lock order: there are no locks.
package assign
