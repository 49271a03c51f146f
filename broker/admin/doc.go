// Package admin answers what clients and tools ask about the cluster and want
// changed in it: metadata, topics, partitions, configs, log directories, quotas.
// One file is one API.
//
// Any broker serves any of these requests: it plans on its own image of the
// metadata and commits through the controller, which plans again if something
// came between. When a change is answered, this broker's image shows it and
// its partitions are there, so a produce that follows succeeds.
//
// What Kafka was seen to answer to bad input is answered here with the same
// code, except where Kafka answers UNKNOWN_SERVER_ERROR by oversight:
//
//	Metadata, null name and zero id           42 INVALID_REQUEST
//	CreatePartitions, 10,000 or more          44 POLICY_VIOLATION
//	IncrementalAlterConfigs, unknown op       42 INVALID_REQUEST
//	DescribeTopicPartitions, empty name       17 INVALID_TOPIC_EXCEPTION
//	a ratio of NaN in a config                40 INVALID_CONFIG
//
// UnregisterBroker refuses a living broker with 42 INVALID_REQUEST. Kafka forgets
// it, and it serves nobody until it is started again.
//
// Some answers are stricter than Kafka's, with 42 INVALID_REQUEST: an entity of quotas
// that is in a request twice is not changed at all, a quota is a number, and one of an
// address names the address, not a host.
//
// # Invariants
//
//   - A topic in a request gets one row in the answer, and a bad one does not
//     affect the others.
//   - What is only to be validated is checked like the rest and changes nothing.
//   - Addresses in an answer are those of the listener that the client came by;
//     a broker without such a listener is left out.
//   - Requests of a connection take effect in order: handlers do their work when
//     the answer's turn has come.
//
// # Lock order
//
// creator.mu is the only lock; nothing is called while it is held.
package admin
