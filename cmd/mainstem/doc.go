// Command mainstem is the broker and its command line.
//
//	mainstem                 a broker on 127.0.0.1:9092, data in ./mainstem-data
//	mainstem serve FILE      a broker as a server.properties says
//	mainstem topic …         create, list, describe, alter and delete topics
//	mainstem produce TOPIC   standard input to records
//	mainstem consume TOPIC   records to standard output
//	mainstem group …         list, describe, reset and delete consumer groups
//	mainstem cluster         brokers and cluster id
//	mainstem log …           look into a stopped data directory
//
// # Invariants
//
//   - Every command that fails says in one line what went wrong and what to do,
//     and ends with the exit code of that kind of failure (see failure.go).
//   - Standard output carries results only; everything else goes to standard error.
//   - Commands other than serve and log talk to a broker as any Kafka client does.
//
// # Lock order
//
// None: the package has one lock, that of the log throttle, and takes no other under it.
package main
