// Package clients knows who is connected: which applications, from where, with
// which software, in which groups, reading which partitions, and how far behind.
//
// A Client is what one client id from one address does: its connections, whatever
// their number, and its memberships in groups. Members of groups that this broker
// coordinates show up also when they have no connection here at this moment.
//
// # Invariants
//
//   - A connection is known from Opened to Closed, no longer.
//   - The view is put together when somebody asks; connections pay nothing for it.
//
// # Lock order
//
// Registry.mu is the only lock; nothing is called while it is held.
package clients
