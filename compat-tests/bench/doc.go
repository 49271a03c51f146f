// Command bench measures the real binary from outside: how soon it serves, what
// it needs when idle, how it opens large logs and very many partitions. It is
// run by the script of the same folder, `run`. As `bench peer`, by the script `peer`,
// it compares Apache Kafka and Mainstem on the same machine.
package main
