package queue

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/vfs"
)

// The checkpoint file: every partition's state, all frames below one LSN
// applied. Conventions are those of the index file.
//
//	file    = header states entries segments footer
//
//	header  = magic "MSCP" | u16 version, 1 | u16 flags: 1 complete, it holds the
//	          entries of all segments without an index | u64 LSN     16 bytes
//
//	states  = as in the index file, sorted by topic and partition
//
//	entries = of segments that have no index, when complete (at a clean stop),
//	          else empty; one a partition and segment:
//	          16 bytes topic | u32 partition | u64 segment | u32 entries |
//	          u32 length of the group | u32 CRC of all before it and of the
//	          group that follows | the group, as in the index file
//
//	segments= for each sealed segment: u64 segment | u64 live bytes when it
//	          was last counted                                       16 bytes
//
//	footer  = u64 position of entries | u64 of segments | u64 states |
//	          u32 CRC of segments | u32 CRC of the header |
//	          u32 CRC of the footer up to here | magic "PCSM"        40 bytes
const (
	checkpointVersion   = 1
	checkpointHeaderLen = 16
	checkpointFooterLen = 40
	checkpointMagic     = "MSCP"
	checkpointEndMagic  = "PCSM"
	loadedHeaderLen     = 40
	liveLen             = 16
	checkpointComplete  = 1
)

// CheckpointPart is what a checkpoint holds of one partition.
type CheckpointPart struct {
	ID    commitlog.PartitionID
	State []byte
	Runs  []Run // entries of segments without an index; at a clean stop only
}

// LiveBytes says how many bytes of a segment were live when it was counted.
type LiveBytes struct {
	Segment commitlog.SegmentID
	Bytes   int64
}

// WriteCheckpoint writes a checkpoint as WriteIndex writes an index. parts
// are sorted by CompareIDs. Of c, only Upto, Complete and Live are written.
func WriteCheckpoint(fs vfs.FS, dir, name string, c Checkpoint, parts []CheckpointPart) (int64, error) {
	w, err := newFileWriter(fs, dir, name)
	if err != nil {
		return 0, err
	}
	writeCheckpoint(w, c, parts)
	return w.finish()
}

func writeCheckpoint(w *fileWriter, c Checkpoint, parts []CheckpointPart) {
	le := binary.LittleEndian
	header := append([]byte(checkpointMagic), checkpointVersion, 0, 0, 0)
	if c.Complete {
		header[6] = checkpointComplete
	}
	header = le.AppendUint64(header, uint64(c.Upto))
	w.write(header)
	for i := range parts {
		writeState(w, parts[i].ID, parts[i].State)
	}
	entries := w.pos
	for i := range parts {
		for _, r := range parts[i].Runs {
			writeRun(w, parts[i].ID, r)
		}
	}
	segments := w.pos
	var s []byte
	for _, l := range c.Live {
		s = le.AppendUint64(s, uint64(l.Segment))
		s = le.AppendUint64(s, uint64(l.Bytes))
	}
	w.write(s)

	var f []byte
	for _, v := range []uint64{uint64(entries), uint64(segments), uint64(len(parts))} {
		f = le.AppendUint64(f, v)
	}
	f = le.AppendUint32(f, crc32.Checksum(s, castagnoli))
	f = le.AppendUint32(f, crc32.Checksum(header, castagnoli))
	f = le.AppendUint32(f, crc32.Checksum(f, castagnoli))
	w.write(append(f, checkpointEndMagic...))
}

// writeRun writes entries of one partition and segment.
func writeRun(w *fileWriter, id commitlog.PartitionID, r Run) {
	le := binary.LittleEndian
	group := appendGroup(nil, r.Entries)
	h := append(w.scratch[:0], id.Topic[:]...)
	h = le.AppendUint32(h, uint32(id.Partition))
	h = le.AppendUint64(h, uint64(r.Segment))
	h = le.AppendUint32(h, uint32(len(r.Entries)))
	h = le.AppendUint32(h, uint32(len(group)))
	h = le.AppendUint32(h, crc32.Update(crc32.Checksum(h, castagnoli), castagnoli, group))
	w.write(h)
	w.scratch = h
	w.write(group)
}

// Checkpoint is what a checkpoint holds besides the states and entries.
type Checkpoint struct {
	Upto       commitlog.LSN // frames below are in the states
	Complete   bool          // the entries of all segments without an index are there
	Partitions int
	Size       int64
	Live       []LiveBytes
}

// ReadCheckpoint reads a checkpoint: states to fn, then entries to load.
func ReadCheckpoint(fs vfs.FS, dir, name string, fn func(commitlog.PartitionID, *State) error, load func(commitlog.PartitionID, Run) error) (c Checkpoint, err error) {
	f, err := fs.Open(filepath.Join(dir, name))
	if err != nil {
		return c, fmt.Errorf("open checkpoint %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // Nothing was written.
	if err := readCheckpoint(f, &c, fn, load); err != nil {
		return c, fmt.Errorf("read checkpoint %s: %w", name, err)
	}
	return c, nil
}

func readCheckpoint(f vfs.File, c *Checkpoint, fn func(commitlog.PartitionID, *State) error, load func(commitlog.PartitionID, Run) error) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	c.Size = size
	if size < checkpointHeaderLen+checkpointFooterLen {
		return fmt.Errorf("size %d: %w", size, ErrCorrupt)
	}
	var header [checkpointHeaderLen]byte
	var footer [checkpointFooterLen]byte
	if err := readFull(f, header[:], 0); err != nil {
		return err
	}
	if err := readFull(f, footer[:], size-checkpointFooterLen); err != nil {
		return err
	}
	le := binary.LittleEndian
	if string(header[:4]) != checkpointMagic {
		return fmt.Errorf("header magic: %w", ErrCorrupt)
	}
	if v := le.Uint16(header[4:]); v != checkpointVersion {
		return fmt.Errorf("checkpoint of version %d: %w", v, ErrFormatTooNew)
	}
	if string(footer[36:]) != checkpointEndMagic || le.Uint32(footer[32:]) != crc32.Checksum(footer[:32], castagnoli) || le.Uint32(footer[28:]) != crc32.Checksum(header[:], castagnoli) {
		return fmt.Errorf("footer: %w", ErrCorrupt)
	}
	entries, segments := int64(le.Uint64(footer[:])), int64(le.Uint64(footer[8:]))
	end := size - checkpointFooterLen
	if entries < checkpointHeaderLen || segments < entries || end < segments || (end-segments)%liveLen != 0 || end-segments > maxIndexSection {
		return fmt.Errorf("footer positions: %w", ErrCorrupt)
	}
	c.Upto, c.Complete = commitlog.LSN(le.Uint64(header[8:])), header[6]&checkpointComplete != 0
	if err := c.loadLive(f, segments, end, le.Uint32(footer[24:])); err != nil {
		return err
	}
	if err := readStates(f, checkpointHeaderLen, entries, func(id commitlog.PartitionID, s *State) error {
		c.Partitions++
		return fn(id, s)
	}); err != nil {
		return err
	}
	if uint64(c.Partitions) != le.Uint64(footer[16:]) {
		return fmt.Errorf("%d partitions: %w", c.Partitions, ErrCorrupt)
	}
	return readRuns(f, entries, segments, load)
}

func (c *Checkpoint) loadLive(f vfs.File, from, to int64, crc uint32) error {
	b := make([]byte, to-from)
	if err := readFull(f, b, from); err != nil {
		return err
	}
	if crc32.Checksum(b, castagnoli) != crc {
		return fmt.Errorf("segments: %w", ErrCorrupt)
	}
	le := binary.LittleEndian
	for ; len(b) > 0; b = b[liveLen:] {
		c.Live = append(c.Live, LiveBytes{commitlog.SegmentID(le.Uint64(b)), int64(le.Uint64(b[8:]))})
	}
	return nil
}

// readRuns reads the entries in [from, to) of a checkpoint.
func readRuns(f vfs.File, from, to int64, load func(commitlog.PartitionID, Run) error) error {
	if to-from > maxIndexSection {
		return fmt.Errorf("entries of %d bytes: %w", to-from, ErrCorrupt)
	}
	b := make([]byte, to-from)
	if err := readFull(f, b, from); err != nil {
		return err
	}
	le := binary.LittleEndian
	for len(b) > 0 {
		if len(b) < loadedHeaderLen {
			return fmt.Errorf("entries: %w", ErrCorrupt)
		}
		n, size := le.Uint32(b[28:]), le.Uint32(b[32:])
		if int64(size) > int64(len(b)-loadedHeaderLen) || n > size {
			return fmt.Errorf("entries: %w", ErrCorrupt)
		}
		raw := b[loadedHeaderLen : loadedHeaderLen+int(size)]
		if crc32.Update(crc32.Checksum(b[:36], castagnoli), castagnoli, raw) != le.Uint32(b[36:]) {
			return fmt.Errorf("entries: %w", ErrCorrupt)
		}
		es := make([]Entry, n)
		d := decoder{b: raw}
		var last Entry
		for i := range es {
			es[i] = d.entry(&last)
			last = es[i]
		}
		if d.failed || len(d.b) > 0 {
			return fmt.Errorf("entries: %w", ErrCorrupt)
		}
		if err := load(readID(b), Run{Segment: commitlog.SegmentID(le.Uint64(b[20:])), Entries: es}); err != nil {
			return err
		}
		b = b[loadedHeaderLen+int(size):]
	}
	return nil
}
