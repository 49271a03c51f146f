package commitlog

import (
	"fmt"
	"strconv"
)

// PartitionID names a partition by its topic's UUID and its number.
type PartitionID struct {
	Topic     [16]byte
	Partition int32
}

// String returns the topic's UUID in hex and the partition.
func (id PartitionID) String() string { return fmt.Sprintf("%x-%d", id.Topic, id.Partition) }

// LSN is a position in the append stream. It only ever increases; between segments it has gaps. A position that may have been
// given to a frame is never given to another one, also not when a crash lost the first.
type LSN uint64

// SegmentID names a segment; its file's name is made from it. Ids are never reused.
type SegmentID uint64

// String returns the id as it stands in file names.
func (id SegmentID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// Kind says what a frame does. Numbers are part of the format.
type Kind uint8

// Kinds of frames. Data carries one record batch, which has a CRC of its own; the payloads of all others are opaque here and get
// one from the frame. Ref and Refill are reserved: a log that holds them was written by a newer version.
const (
	Data     Kind = 1
	Create   Kind = 2
	Epoch    Kind = 3
	Truncate Kind = 4
	LogStart Kind = 5
	Delete   Kind = 6
	Ref      Kind = 7
	Refill   Kind = 8
	// kindEnd is the last frame of a segment that was filled. It never leaves this package.
	kindEnd Kind = 15
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{
		Data: "data", Create: "create", Epoch: "epoch", Truncate: "truncate", LogStart: "log-start", Delete: "delete",
		Ref: "ref", Refill: "refill", kindEnd: "end",
	}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// known reports whether this version writes and reads the kind.
func (k Kind) known() bool { return k >= Data && k <= Delete || k == kindEnd }

// Header is what a frame says about its payload.
type Header struct {
	Kind         Kind
	ID           PartitionID // zero for frames about many partitions.
	LeaderEpoch  int32
	BaseOffset   int64
	OffsetCount  int32
	MaxTimestamp int64
}

// Place says where a frame's payload lies.
type Place struct {
	LSN     LSN       // of the frame; 0 in clustered segments, whose batches have none.
	Segment SegmentID // the file.
	Offset  int64     // of the payload in the file.
	Size    int32     // of the payload.
}

// End returns the first position behind the frame: what Commit takes to wait for it.
func (p Place) End() LSN { return p.LSN + LSN(frameSize(int(p.Size))) }

// Frame is what Scan and Recover hand out.
type Frame struct {
	Header
	Place
	Payload []byte // valid during the call only.
}

// Durability says when a frame counts as safe.
type Durability uint8

// Durabilities. The zero value is the safe one.
const (
	Synced  Durability = iota // after the fdatasync that covers it.
	Written                   // after the pwrite: safe from a crash of the process only. A sync follows within AsyncDelay or AsyncBytes.
)

// Class says who asks for room when the disk is full.
type Class uint8

// Classes of reservations.
const (
	Client   Class = iota // refused while the disk is full.
	Internal              // control frames and internal topics: may use what is left of the reserve.
)

// Budget is what a reservation asks for.
type Budget struct {
	Bytes      int // payload bytes of all frames.
	Frames     int // how many frames; 0 is 1.
	Class      Class
	Durability Durability // Written: a group of such frames only is not synced at once.
}

// Tag stands for a partition in the reports of OnCommit. Its owner embeds it, sets Owner once, and passes it to Place; the log keeps
// its own marks in it, so that one group reports each tag once without looking anything up.
type Tag struct {
	Owner any

	group uint64 // the group that index belongs to; guarded by Log.mu.
	index int32
}

// Touch says that a tag's frames were committed up to an offset: BaseOffset + OffsetCount of its last frame in the group.
type Touch struct {
	Tag       *Tag
	EndOffset int64
}

// Commit reports a group of frames that became written or synced.
type Commit struct {
	Upto    LSN  // everything below it is written, or synced.
	Synced  bool // false: written only; the same touches are reported again when they are synced.
	Touched []Touch
}
