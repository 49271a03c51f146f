// Package batch is Kafka's record batch of format 2, the one format on both wire and disk: headers, validation, codecs,
// building, control batches. Bytes go in and come out; it keeps nothing but idle encoders and decoders.
//
// # Format
//
// A batch is a header of 61 bytes and the records, which its codec compresses as a whole. Numbers are big-endian.
//
//	offset  width  field
//	     0      8  base offset            outside the CRC: the broker assigns it
//	     8      4  length                 of all that follows
//	    12      4  leader epoch           outside the CRC
//	    16      1  magic                  2
//	    17      4  CRC-32C                of all that follows
//	    21      2  attributes             bits below
//	    23      4  last offset delta
//	    27      8  base timestamp         milliseconds; the records' deltas count from it
//	    35      8  max timestamp          every record's, with the LogAppendTime bit
//	    43      8  producer id            -1 is none
//	    51      2  producer epoch         -1 is none
//	    53      4  base sequence          -1 is none; record i has base + i, which wraps from 2^31-1 to 0
//	    57      4  record count
//	    61         records
//
// Attributes: bits 0-2 codec (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd), 3 LogAppendTime, 4 transactional, 5 control,
// 6 delete horizon (the base timestamp holds it). A record, whose numbers are zigzag varints:
//
//	length              of all that follows
//	attributes          one byte, unused
//	timestamp delta
//	offset delta
//	key length, key     -1 is no key
//	value length, value -1 is a tombstone
//	header count, and for each header
//	  key length, key   never null
//	  value length, value
//
// # Invariants
//
//   - No length that came from outside is believed before it was compared with the bytes that are there. Memory grows with
//     bytes that really came, never with what a field claims.
//   - Validate passes compressed records through a window of fixed size. What a batch may decompress to is bounded.
//   - Validate is stricter than Kafka where Kafka lets through what readers stumble over: lengths inside compressed records,
//     key lengths below -1, unknown codecs, bytes that do not decompress; all are ErrInvalidRecord.
//   - Nothing is allocated a record, and the CRC is computed once.
//   - Bytes of a batch change only in Stamp (outside the CRC) and SetTimestamps.
//
// # Lock order
//
// There is one lock: zstd streams with a window above 8 MiB are decoded one at a time.
package batch
