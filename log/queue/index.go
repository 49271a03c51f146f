package queue

import (
	"hash/crc32"

	"github.com/mainstem/mainstem/log/commitlog"
)

// The index file of a sealed segment. Integers of fixed width are
// little-endian; uvarint and varint are as in encoding/binary; every CRC is
// CRC-32C.
//
//	file    = header blocks states pages fences footer
//
//	header  = magic "MSIX" | u16 version, 1 | u16 zero | u64 segment |
//	          u64 first LSN | u64 end LSN                        32 bytes
//
//	blocks  = one a partition that has entries, in the order of the directory:
//	block   = group{1..} table
//	group   = up to 32 entries, each coded against the one before (the first
//	          against zeros):
//	          u8 flags: 1 base follows the last one, 2 same epoch,
//	                    4 LSN and position advance alike
//	          [varint base, the difference]            unless flag 1
//	          uvarint LSN, the difference
//	          [uvarint position, the difference]       unless flag 4
//	          uvarint size | uvarint count | varint max timestamp, the difference
//	          [varint epoch, the difference]           unless flag 2
//	table   = for each group: i64 base of its first entry | i64 max timestamp
//	          of the group | u32 position in the block | u32 CRC of the group
//	          24 bytes; left out when there is one group only
//
//	states  = one a partition that was touched, in the order of the directory:
//	state   = 16 bytes topic | u32 partition | u32 length | u32 CRC of all
//	          before it and of the bytes that follow | the state (see state.go)
//
//	pages   = up to 64 directory rows each, sorted by topic and partition:
//	page    = row{1..64}
//	row     = u8 flags: 1 topic as before, 2 has entries, 4 has a state
//	          [16 bytes topic]                         unless flag 1
//	          uvarint partition
//	          [uvarint first offset | uvarint last - first | uvarint entries |
//	           uvarint bytes | varint own max timestamp |
//	           uvarint block position in the file | uvarint length of groups |
//	           u32 CRC of the table, of the group if there is one only]  flag 2
//	          [uvarint state position in the file | uvarint length]      flag 4
//
//	fences  = for each page: 16 bytes topic | u32 partition, of its first row |
//	          u64 position | u32 length | u32 CRC of the page    36 bytes
//
//	footer  = u64 position of states | u64 of pages | u64 of fences |
//	          u64 partitions | u64 entries | u64 bytes of the batches |
//	          u32 CRC of the fences | u32 CRC of the header |
//	          u32 CRC of the footer up to here | magic "XISM"     64 bytes
const (
	indexVersion    = 1
	indexHeaderLen  = 32
	indexFooterLen  = 64
	groupEntries    = 32
	tableRowLen     = 24
	pageRows        = 64
	fenceLen        = 36
	stateHeaderLen  = 28
	indexMagic      = "MSIX"
	indexEndMagic   = "XISM"
	maxEntryLen     = 1 + 3*10 + 2*5 + 10 + 5
	maxRowLen       = 1 + 16 + 10*10 + 4
	entryBaseNext   = 1
	entrySameEpoch  = 2
	entryLinear     = 4
	rowSameTopic    = 1
	rowHasEntries   = 2
	rowHasState     = 4
	maxIndexSection = 1 << 31 // bound of what is read into memory at once
)

// castagnoli is the table of CRC-32C; it is only read.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// IndexInfo says which segment an index is of.
type IndexInfo struct {
	Segment    commitlog.SegmentID
	First, End commitlog.LSN
}

// IndexPart is what an index holds of one partition.
type IndexPart struct {
	ID      commitlog.PartitionID
	Entries []Entry // by offset; live ones only
	State   []byte  // encoded, nil if the partition has none here
}

// Row is a partition's row in a directory.
type Row struct {
	First, Last  int64 // offsets
	Bytes        int64
	MaxTimestamp int64 // of these entries
	Entries      int32
	blockPos     int64
	groupsLen    uint32
	crc          uint32
	statePos     int64
	stateLen     uint32
}

// groups returns the number of groups in the row's block.
func (r *Row) groups() int { return (int(r.Entries) + groupEntries - 1) / groupEntries }

// CompareIDs orders partitions as directories and checkpoints do.
func CompareIDs(a, b commitlog.PartitionID) int {
	for i := range a.Topic {
		if a.Topic[i] != b.Topic[i] {
			return int(a.Topic[i]) - int(b.Topic[i])
		}
	}
	switch {
	case uint32(a.Partition) < uint32(b.Partition):
		return -1
	case uint32(a.Partition) > uint32(b.Partition):
		return 1
	}
	return 0
}
