// Package batch is Kafka's record batch of format 2, the one format on both wire and disk: headers, validation, codecs,
// building and control batches. Bytes go in and come out; it keeps nothing.
package batch
