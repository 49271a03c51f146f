// Package fieldcases holds defects that people met with Kafka-compatible brokers,
// as black-box checks of the right answer: one file a class of defects, one test
// a case, with the case's name (O-…) in its comment. Here are the cases that
// concern a single broker; a long run of each is behind an environment variable.
package fieldcases
