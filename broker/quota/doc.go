// Package quota holds clients to their quotas: how many bytes a second they
// produce and fetch, how much of the broker's time their requests take, how many
// partitions they create and delete, and how often an address connects. It is
// pure arithmetic over what the metadata says; who asks delays the client.
//
// # Who is meant
//
// A quota is set for an entity: a user, a client id, both, or an address; each of
// them by name or as the default of those without a name. For one client and one
// kind of quota the first of these counts that has it:
//
//	user and client id           one account for this client id of this user
//	user, any client id          as above
//	user                         one account for the user
//	any user, client id          one account for this client id of this user
//	any user, any client id      as above
//	any user                     one account for the user
//	client id                    one account for the client id
//	any client id                as above
//
// All connections of an account share it. A client that gives no id has only the
// quotas of users.
//
// # How it is counted
//
// Bytes, time and connections are rates over quota.window.num samples of
// quota.window.size.seconds, with the maths of Kafka's: what has come in is
// counted first, and then the client waits for as long as brings the rate back to
// its bound, at most one sample's length for requests and connections. Partitions
// are tokens in a bucket that holds a window's worth: a request may overdraw it,
// and those after it are refused until it is paid back.
//
// # Memory
//
// An account is made when it is used first, and forgotten an hour after it was used
// last. When there are very many, those go sooner whose window is over, with which
// nothing is lost; those that come when there is no room even so share one account.
// Names of any length take bounded room.
//
// # Invariants
//
//   - Without quotas, asking costs one atomic load and remembers nothing.
//   - A changed bound holds at the next request; what was counted stays.
//   - A throttle is never below zero and fits the 32 bits of an answer.
//
// # Lock order
//
// accounts.mu before account.mu; nothing is called while one is held.
package quota
