package queue

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/vfs"
)

// WriteIndex writes a segment's index under a temporary name, syncs it and
// renames it. parts are sorted by CompareIDs. It returns the file's size.
func WriteIndex(fs vfs.FS, dir, name string, info IndexInfo, parts []IndexPart) (int64, error) {
	w, err := newFileWriter(fs, dir, name)
	if err != nil {
		return 0, err
	}
	writeIndex(w, info, parts)
	return w.finish()
}

// writeIndex writes all sections.
func writeIndex(w *fileWriter, info IndexInfo, parts []IndexPart) {
	header := appendIndexHeader(nil, info)
	w.write(header)
	rows := make([]Row, len(parts))
	var entries, bytes uint64
	for i := range parts {
		writeBlock(w, parts[i].Entries, &rows[i])
		entries += uint64(rows[i].Entries)
		bytes += uint64(rows[i].Bytes)
	}
	states := w.pos
	for i := range parts {
		if parts[i].State != nil {
			rows[i].statePos, rows[i].stateLen = w.pos, uint32(len(parts[i].State))
			writeState(w, parts[i].ID, parts[i].State)
		}
	}
	pages := w.pos
	fences := writePages(w, parts, rows)
	fencesPos := w.pos
	w.write(fences)

	le := binary.LittleEndian
	var f []byte
	for _, v := range []uint64{uint64(states), uint64(pages), uint64(fencesPos), uint64(len(parts)), entries, bytes} {
		f = le.AppendUint64(f, v)
	}
	f = le.AppendUint32(f, crc32.Checksum(fences, castagnoli))
	f = le.AppendUint32(f, crc32.Checksum(header, castagnoli))
	f = le.AppendUint32(f, crc32.Checksum(f, castagnoli))
	w.write(append(f, indexEndMagic...))
}

func appendIndexHeader(b []byte, info IndexInfo) []byte {
	le := binary.LittleEndian
	b = append(b, indexMagic...)
	b = le.AppendUint16(b, indexVersion)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, uint64(info.Segment))
	b = le.AppendUint64(b, uint64(info.First))
	return le.AppendUint64(b, uint64(info.End))
}

// writeBlock writes a partition's entries and fills its row.
func writeBlock(w *fileWriter, es []Entry, row *Row) {
	if len(es) == 0 {
		return
	}
	*row = Row{First: es[0].Base, Last: es[len(es)-1].Last(), MaxTimestamp: es[0].MaxTimestamp, Entries: int32(len(es)), blockPos: w.pos}
	var table []byte
	le := binary.LittleEndian
	for len(es) > 0 {
		n := min(len(es), groupEntries)
		group := appendGroup(w.scratch[:0], es[:n])
		newest := es[0].MaxTimestamp
		for i := range es[:n] {
			newest = max(newest, es[i].MaxTimestamp)
			row.Bytes += int64(es[i].Size)
		}
		row.MaxTimestamp = max(row.MaxTimestamp, newest)
		row.crc = crc32.Checksum(group, castagnoli)
		table = le.AppendUint64(table, uint64(es[0].Base))
		table = le.AppendUint64(table, uint64(newest))
		table = le.AppendUint32(table, uint32(w.pos-row.blockPos))
		table = le.AppendUint32(table, row.crc)
		w.write(group)
		w.scratch = group
		es = es[n:]
	}
	row.groupsLen = uint32(w.pos - row.blockPos)
	if len(table) > tableRowLen {
		row.crc = crc32.Checksum(table, castagnoli)
		w.write(table)
	}
}

// appendGroup codes a group of entries.
func appendGroup(b []byte, es []Entry) []byte {
	var last Entry
	for i := range es {
		b = appendEntry(b, &es[i], &last)
		last = es[i]
	}
	return b
}

func appendEntry(b []byte, e, last *Entry) []byte {
	lsn, pos := uint64(e.LSN-last.LSN), uint64(e.Pos-last.Pos)
	flags := byte(0)
	if e.Base == last.Next() {
		flags |= entryBaseNext
	}
	if e.Epoch == last.Epoch {
		flags |= entrySameEpoch
	}
	if lsn == pos {
		flags |= entryLinear
	}
	b = append(b, flags)
	if flags&entryBaseNext == 0 {
		b = binary.AppendVarint(b, e.Base-last.Next())
	}
	b = binary.AppendUvarint(b, lsn)
	if flags&entryLinear == 0 {
		b = binary.AppendUvarint(b, pos)
	}
	b = binary.AppendUvarint(b, uint64(e.Size))
	b = binary.AppendUvarint(b, uint64(e.Count))
	b = binary.AppendVarint(b, e.MaxTimestamp-last.MaxTimestamp)
	if flags&entrySameEpoch == 0 {
		b = binary.AppendVarint(b, int64(e.Epoch)-int64(last.Epoch))
	}
	return b
}

// writeState writes a partition's state; checkpoints have the same form.
func writeState(w *fileWriter, id commitlog.PartitionID, state []byte) {
	w.scratch = appendState(w.scratch[:0], id, state)
	w.write(w.scratch)
	w.write(state)
}

// appendState appends what stands before a state's bytes.
func appendState(b []byte, id commitlog.PartitionID, state []byte) []byte {
	le := binary.LittleEndian
	b = append(b, id.Topic[:]...)
	b = le.AppendUint32(b, uint32(id.Partition))
	b = le.AppendUint32(b, uint32(len(state)))
	return le.AppendUint32(b, crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, state))
}

// writePages writes the directory and returns its fences.
func writePages(w *fileWriter, parts []IndexPart, rows []Row) []byte {
	var fences []byte
	le := binary.LittleEndian
	for at := 0; at < len(parts); at += pageRows {
		n := min(len(parts)-at, pageRows)
		page := w.scratch[:0]
		for i := at; i < at+n; i++ {
			page = appendRow(page, &parts[i].ID, i > at && parts[i].ID.Topic == parts[i-1].ID.Topic, &rows[i])
		}
		first := parts[at].ID
		fences = append(fences, first.Topic[:]...)
		fences = le.AppendUint32(fences, uint32(first.Partition))
		fences = le.AppendUint64(fences, uint64(w.pos))
		fences = le.AppendUint32(fences, uint32(len(page)))
		fences = le.AppendUint32(fences, crc32.Checksum(page, castagnoli))
		w.write(page)
		w.scratch = page
	}
	return fences
}

func appendRow(b []byte, id *commitlog.PartitionID, sameTopic bool, r *Row) []byte {
	flags := byte(0)
	if sameTopic {
		flags |= rowSameTopic
	}
	if r.Entries > 0 {
		flags |= rowHasEntries
	}
	if r.stateLen > 0 {
		flags |= rowHasState
	}
	b = append(b, flags)
	if !sameTopic {
		b = append(b, id.Topic[:]...)
	}
	b = binary.AppendUvarint(b, uint64(uint32(id.Partition)))
	if r.Entries > 0 {
		b = binary.AppendUvarint(b, uint64(r.First))
		b = binary.AppendUvarint(b, uint64(r.Last-r.First))
		b = binary.AppendUvarint(b, uint64(r.Entries))
		b = binary.AppendUvarint(b, uint64(r.Bytes))
		b = binary.AppendVarint(b, r.MaxTimestamp)
		b = binary.AppendUvarint(b, uint64(r.blockPos))
		b = binary.AppendUvarint(b, uint64(r.groupsLen))
		b = binary.LittleEndian.AppendUint32(b, r.crc)
	}
	if r.stateLen > 0 {
		b = binary.AppendUvarint(b, uint64(r.statePos))
		b = binary.AppendUvarint(b, uint64(r.stateLen))
	}
	return b
}

// fileWriter writes a new file front to back and keeps the first error.
type fileWriter struct {
	fs      vfs.FS
	f       vfs.File
	dir     string
	name    string
	buf     []byte
	pos     int64 // of the next byte
	flushed int64 // bytes that are in the file
	scratch []byte
	err     error
}

// writeBuffer is how much is gathered before it is written.
const writeBuffer = 256 << 10

// tempSuffix ends the name of a file that is not complete yet; the log removes such files at open.
const tempSuffix = ".tmp"

func newFileWriter(fs vfs.FS, dir, name string) (*fileWriter, error) {
	f, err := fs.Create(filepath.Join(dir, name) + tempSuffix)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return &fileWriter{fs: fs, f: f, dir: dir, name: name, buf: make([]byte, 0, writeBuffer)}, nil
}

func (w *fileWriter) write(b []byte) {
	w.pos += int64(len(b))
	for len(b) > 0 {
		n := min(len(b), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, b[:n]...)
		b = b[n:]
		if len(w.buf) == cap(w.buf) {
			w.flush()
		}
	}
}

func (w *fileWriter) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.f.WriteAt(w.buf, w.flushed)
	}
	w.flushed += int64(len(w.buf))
	w.buf = w.buf[:0]
}

// finish writes what is left, syncs and gives the file its name.
func (w *fileWriter) finish() (int64, error) {
	w.flush()
	if w.err == nil {
		w.err = w.f.Sync()
	}
	if err := w.f.Close(); w.err == nil {
		w.err = err
	}
	path := filepath.Join(w.dir, w.name)
	if w.err == nil {
		w.err = w.fs.Rename(path+tempSuffix, path)
	}
	if w.err == nil {
		w.err = w.fs.SyncDir(w.dir)
	}
	if w.err != nil {
		_ = w.fs.Remove(path + tempSuffix) // The first error is the one to tell; the log removes what is left at open.
		return 0, fmt.Errorf("write %s: %w", w.name, w.err)
	}
	return w.pos, nil
}
