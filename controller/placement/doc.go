// Package placement decides who leads a partition and which brokers hold it. It
// is pure: a state of a partition and an image of the cluster go in, the next
// state comes out.
//
// # Reassignment
//
// While replicas move, a partition has both: those that it is to have, in their
// order, and behind them those that it is to lose. Adding and Removing tell which
// is which. When all that are added are in sync, those that are removed go. What
// needs to wait for nobody is done in the same step.
//
//	have 1 2    wanted 2 3    replicas 2 3 1   adding 3   removing 1
//	3 is in sync              replicas 2 3     adding -   removing -
//
// # Invariants
//
//   - A broker that is not alive is never made a leader.
//   - Unless it is asked for an unclean election, only a replica in sync is.
//   - The replicas in sync are never taken away to the last one.
//   - Each change raises the partition's epoch; one that changes the leader, or
//     takes a replica away, raises the leader's epoch.
//
// Lock order: there are no locks here.
package placement
