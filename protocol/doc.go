// Package protocol owns the sockets: it speaks Kafka's wire protocol with
// clients and knows no topic.
package protocol
