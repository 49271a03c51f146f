// Package protocol owns the sockets: it speaks Kafka's wire protocol with
// clients, and knows no topic.
//
// A Server listens, reads requests, gives them to the handlers of its table of
// APIs, and writes their answers. The layouts of frames and headers are drawn in
// header.go, those of requests in schema_table.go.
//
// # A request's way
//
// A handler has two halves. Submit takes the request in its turn: whatever it
// does, it does before any later request of the connection is looked at. Finish
// waits, and gives the answer, when that one's turn has come. So requests of one
// connection take effect and are answered in order, and yet many can wait for
// the same sync of the disk.
//
// The goroutine that reads a connection submits every request that it has read
// whole. When nothing more has come it finishes them itself and writes all
// answers at once: a lone request is read, submitted, finished and answered
// without a hand-over to another goroutine, by one read and one write, and
// without memory being taken. Is there more to read, or may a call wait for long
// (Call.MayPark), the calls go to the connection's second goroutine, the writer,
// so that reading goes on: then hang-ups are seen, too, and end the Ctx of the
// calls that wait. A call whose effect comes only with Finish (Call.Alone) holds
// up what is behind it.
//
// # Quotas
//
// A client beyond a quota is answered at once and told how long to wait, and its
// connection is muted: what it sends meanwhile is not submitted. A handler says so
// by Call.Throttle; the time that requests take is counted here, if somebody wants
// to know. One goroutine with one timer ends the waiting of all.
//
// # Hostile bytes
//
// Every length is compared with what is there before memory is taken for it. A
// frame's memory grows with what arrives of it. A body is walked against its
// layout before kmsg decodes it; the walk refuses nulls and tagged fields where
// Kafka has none, and adds up what decoding will take. Frames and decoded
// requests of all connections share two budgets; a connection for which there is
// no room is not read. What cannot be served closes its connection, after the
// answers to what came before, and is told by Events.Refused.
//
// # Invariants
//
//   - Answers leave in the order of their requests; a call without an answer
//     (acks=0) takes no place.
//   - Finish is called once for each Submit that gave one, also when the client
//     is gone by then. Buffers.Release is called once for each body given.
//   - A frame is not used again before its answer was written, or its call was
//     Detached.
//   - Only one goroutine at a time finishes calls of a connection and writes: the
//     reader while conn.pending is zero, else the writer.
//   - Only what is in the table is served, and ApiVersions is derived from the
//     table. Produce alone may be advertised beyond it.
//   - Every goroutine ends before Close returns, unless a handler ignores the end
//     of its Ctx.
//
// A panic of a handler is not caught: it may have left a partition half-changed,
// and the log is safe against the end of the process.
//
// # Lock order
//
// Server.mu, gate.mu, budget.mu and alarms.mu are leaves: none is held while another is
// taken, while a handler or an event runs, or during I/O; closing a socket is
// the exception.
package protocol
