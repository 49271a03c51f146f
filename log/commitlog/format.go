package commitlog

import (
	"encoding/binary"
	"hash/crc32"
)

// The format of the log on disk. All numbers are little-endian unless a record batch holds them (Kafka's are big-endian).
// CRC is CRC-32C. What is marked "reserved" is written as zero and not looked at.
//
// # Data directory
//
//	LOCK                      held while the log is open
//	manifest                  what is live; replaced as a whole
//	reserve                   dead weight, removed to write other files on a full disk
//	<id:016x>.segment         a segment: fixed size, preallocated, recycled under a new id
//	<id:016x>.index           index of a sealed segment, written by the owner of the log
//	<lsn:016x>.checkpoint     state of all partitions, written by the owner of the log
//	*.tmp                     left behind by a crash
//
// # Segment header, at the start of a file; frames or runs begin at byte 4096
//
//	 0  8  magic "MSTEMSEG"
//	 8  2  version, 1
//	10  1  kind: 1 frames, 2 clustered
//	11  1  reserved
//	12  4  CRC over bytes 0-11 and 16-63
//	16  8  segment id
//	24  8  salt: random, new each time that the file is used
//	32  8  base: the LSN of the file's first byte (0 when clustered)
//	40  8  as-of: control frames with a lower LSN have been applied to the runs (0 unless clustered)
//	48  8  capacity: size of the file
//	56  8  reserved
//
// # Frame, at a multiple of 8
//
//	 0  4  magic "MSFR"
//	 4  1  version, 1
//	 5  1  kind: 1 data, 2 create, 3 epoch, 4 truncate, 5 log start, 6 delete, 7 ref (reserved), 8 refill (reserved), 15 end
//	 6  2  reserved
//	 8  4  length of the payload
//	12  4  CRC over the payload; 0 for data, whose batch has its own
//	16  8  LSN: base of the segment + position in the file
//	24  8  durable mark: everything below this LSN was synced when the frame was made
//	32 16  topic id
//	48  4  partition
//	52  4  leader epoch
//	56  8  base offset
//	64  8  max timestamp
//	72  4  offset count
//	76  4  CRC over the segment's salt, bytes 0-75 and, for data, the first 21 bytes of the payload
//	80  n  payload; then zeros up to a multiple of 8
//
// The payload of a data frame is one record batch of magic 2. Of it are used:
//
//	 0  8  base offset            \
//	 8  4  length of what follows  | 21 bytes that the batch's CRC
//	12  4  leader epoch            | leaves out; the frame's CRC
//	16  1  magic, 2                | covers them
//	17  4  CRC over bytes 21-end  /
//	21     attributes 2, last offset delta 4, first timestamp 8, max timestamp 8, producer 14, count 4: a head of 61 bytes; records
//
// The frame of kind end says that the segment is full: the stream goes on in the segment with the next base. Behind the last frame
// of a segment lies anything: old content under another salt, zeros, or torn writes.
//
// # Run, in clustered segments, one after the other at multiples of 8; a zero magic or the end of the file ends them
//
//	 0  4  magic "MSRN"
//	 4  1  version, 1
//	 5  1  kind, 1: batches of one partition
//	 6  2  reserved
//	 8  8  position of the run in the file
//	16  8  length of the batches
//	24  4  number of batches
//	28  4  number of index entries
//	32 16  topic id
//	48  4  partition
//	52  4  CRC over the index
//	56  8  first offset
//	64  8  next offset: behind the last offset of the last batch
//	72  8  largest max timestamp
//	80  4  CRC over the segment's salt and bytes 0-79
//	84  4  reserved
//	88  n  batches, back to back, as on the wire
//	    m  index: an entry for each stretch of whole batches of about 64 KiB
//	           0  8  position of the stretch, counted from the first batch
//	           8  8  first offset
//	          16  8  largest max timestamp
//	          24  4  number of batches
//	          28  4  CRC over the first 21 bytes of each of its batches
//	       then zeros up to a multiple of 8
//
// # Manifest
//
//	 0  8  magic "MSTEMMAN"
//	 8  2  version, 1
//	10  2  reserved
//	12  4  CRC over bytes 0-11 and 16-end
//	16  4  length of what follows
//	20     1 flags: 1 clean stop, 2 segments were dropped, of whose frames only the checkpoint tells
//	       4 node id
//	       2+n cluster id
//	       8 next segment id
//	       8 next base: the lowest base that a new segment may get
//	       8 durable: everything below it was synced
//	       8 checkpoint LSN, 2+n name of the checkpoint's file
//	       4 number of segments, then for each
//	           8 id, 1 kind, 1 flags (1 sealed), 8 salt, 8 base, 8 as-of, 8 capacity
//	           8 end: position behind the last frame; when not sealed, as of the last clean stop
//	           4 number of frames
//	           2+n name of the index file
//	       4 number of quarantined spans, then for each
//	           8 segment id, 8 from, 8 to
//
// # What stays in every later version
//
// Magic, version, the place of the CRC and what it covers. So "newer than this program" and "damaged" can be told apart: a header
// whose CRC is right and whose version, or kind of frame, is not known here is newer. Numbers and meanings below never change.
const (
	segmentMagic   = "MSTEMSEG"
	segmentVersion = 1
	segmentHeader  = 64   // bytes that mean something.
	dataStart      = 4096 // where frames and runs begin.

	kindFrames    = 1
	kindClustered = 2

	frameMagic   = 0x5246534d // "MSFR"
	frameVersion = 1
	frameHeader  = 80
	frameAlign   = 8

	batchOutside = 21 // bytes of a batch that its CRC leaves out.
	batchCRC     = 17
	batchHead    = 61
	batchMagic   = 2
	batchPrefix  = 12 // base offset and length, not counted by the length.

	runMagic     = 0x4e52534d // "MSRN"
	runVersion   = 1
	runKind      = 1
	runHeader    = 88
	runIndexItem = 32

	manifestMagic   = "MSTEMMAN"
	manifestVersion = 1
	manifestHeader  = 20

	pageSize = 4096 // writes end on a page, so that the system never reads one to fill it up.
)

// castagnoli is the polynomial of all checksums here; it is never changed.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var le = binary.LittleEndian

// frameSize returns the bytes that a frame with such a payload takes.
func frameSize(payload int) int { return (frameHeader + payload + frameAlign - 1) &^ (frameAlign - 1) }

// saltSeed is the state in which checksums of a segment start, so that content of its file's earlier lives never matches.
func saltSeed(salt uint64) uint32 {
	return crc32.Checksum(le.AppendUint64(nil, salt), castagnoli)
}

// alignUp rounds up to a multiple of a power of two.
func alignUp(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }
