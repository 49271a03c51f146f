package log

import (
	"encoding/binary"
	"fmt"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/queue"
)

// Payloads of the control frames. Integers are uvarints and varints of
// encoding/binary unless a width is named; an id is 16 bytes topic and a
// little-endian u32 partition. Each begins with a version byte, 1.
//
//	create    u8 version | item{1..}: id | u8 flags: 1 async, 2 name as before |
//	          varint leader epoch begun with it, -1 if none |
//	          [uvarint length, topic name]        unless flag 2
//	delete    u8 version | id{1..}
//	log-start u8 version | item{1..}: id | uvarint start | uvarint bytes removed
//	truncate  u8 version | uvarint bytes removed | producers (queue/state.go);
//	          the partition and its new end are in the frame's header
//	epoch     empty: all is in the frame's header
const frameVersion = 1

const (
	createAsync    = 1
	createSameName = 2
	// frameBudget is how large a frame about many partitions gets.
	frameBudget = 48 << 10
)

func appendID(b []byte, id PartitionID) []byte {
	b = append(b, id.Topic[:]...)
	return binary.LittleEndian.AppendUint32(b, uint32(id.Partition))
}

// appendCreates appends specs until the budget is reached and returns the rest.
func appendCreates(b []byte, specs []CreateSpec) ([]byte, []CreateSpec) {
	b = append(b, frameVersion)
	name := ""
	n := 0
	for n < len(specs) && (n == 0 || len(b) < frameBudget) {
		s := &specs[n]
		flags := byte(0)
		if s.Durability == Async {
			flags |= createAsync
		}
		if n > 0 && s.Name == name {
			flags |= createSameName
		}
		b = append(appendID(b, s.ID), flags)
		b = binary.AppendVarint(b, int64(s.LeaderEpoch))
		if flags&createSameName == 0 {
			b = binary.AppendUvarint(b, uint64(len(s.Name)))
			b = append(b, s.Name...)
		}
		name = s.Name
		n++
	}
	return b, specs[n:]
}

// frameReader takes a payload apart; a field that is missing sets bad.
type frameReader struct {
	b   []byte
	bad bool
}

// newFrameReader checks the version byte.
func newFrameReader(kind commitlog.Kind, b []byte) (*frameReader, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("read %v frame: empty: %w", kind, queue.ErrCorrupt)
	}
	if b[0] != frameVersion {
		return nil, fmt.Errorf("read %v frame of version %d: %w", kind, b[0], commitlog.ErrFormatTooNew)
	}
	return &frameReader{b: b[1:]}, nil
}

// more reports whether another item follows.
func (r *frameReader) more() bool { return !r.bad && len(r.b) > 0 }

func (r *frameReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *frameReader) id() (id PartitionID) {
	if v := r.take(20); v != nil {
		copy(id.Topic[:], v)
		id.Partition = int32(binary.LittleEndian.Uint32(v[16:]))
	}
	return id
}

func (r *frameReader) uvarint() int64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<62 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int64(v)
}

func (r *frameReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// err reports a payload that could not be read to its end.
func (r *frameReader) err(kind commitlog.Kind) error {
	if r.bad {
		return fmt.Errorf("read %v frame: %w", kind, queue.ErrCorrupt)
	}
	return nil
}

// readCreates calls fn for each item of a create frame.
func readCreates(b []byte, fn func(CreateSpec)) error {
	r, err := newFrameReader(commitlog.Create, b)
	if err != nil {
		return err
	}
	name := ""
	for r.more() {
		s := CreateSpec{ID: r.id()}
		flags := byte(0)
		if v := r.take(1); v != nil {
			flags = v[0]
		}
		s.LeaderEpoch = int32(r.varint())
		if flags&createSameName == 0 {
			name = string(r.take(int(r.uvarint())))
		}
		if flags&createAsync != 0 {
			s.Durability = Async
		}
		s.Name = name
		if !r.bad {
			fn(s)
		}
	}
	return r.err(commitlog.Create)
}

// readDeletes calls fn for each partition of a delete frame.
func readDeletes(b []byte, fn func(PartitionID)) error {
	r, err := newFrameReader(commitlog.Delete, b)
	if err != nil {
		return err
	}
	for r.more() {
		if id := r.id(); !r.bad {
			fn(id)
		}
	}
	return r.err(commitlog.Delete)
}

// startItem is one partition's item of a log-start frame.
type startItem struct {
	id             PartitionID
	start, removed int64
}

func appendStart(b []byte, s startItem) []byte {
	b = appendID(b, s.id)
	b = binary.AppendUvarint(b, uint64(s.start))
	return binary.AppendUvarint(b, uint64(s.removed))
}

// readStarts calls fn for each item of a log-start frame.
func readStarts(b []byte, fn func(startItem)) error {
	r, err := newFrameReader(commitlog.LogStart, b)
	if err != nil {
		return err
	}
	for r.more() {
		if s := (startItem{r.id(), r.uvarint(), r.uvarint()}); !r.bad {
			fn(s)
		}
	}
	return r.err(commitlog.LogStart)
}

// appendTruncate builds a truncate frame's payload.
func appendTruncate(b []byte, removed int64, ps *queue.Producers) []byte {
	b = binary.AppendUvarint(append(b, frameVersion), uint64(removed))
	return ps.Append(b)
}

// readTruncate reads a truncate frame's payload.
func readTruncate(b []byte) (removed int64, ps queue.Producers, err error) {
	r, err := newFrameReader(commitlog.Truncate, b)
	if err != nil {
		return 0, ps, err
	}
	removed = r.uvarint()
	if err := r.err(commitlog.Truncate); err != nil {
		return 0, ps, err
	}
	ps, _, err = queue.DecodeProducers(r.b)
	if err != nil {
		return 0, ps, fmt.Errorf("read truncate frame: %w", err)
	}
	return removed, ps, nil
}
