package queue

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"
	"sort"
	"sync/atomic"
	"weak"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/log/vfs"
)

// Index is an open index file. It is safe for concurrent use.
type Index struct {
	f          vfs.File
	name       string
	size       int64
	info       IndexInfo
	states     int64 // position of the states
	pages      int64 // of the directory
	fencesPos  int64
	partitions int64
	entries    int64
	bytes      int64
	fences     []fence
	// table is the last table that was read, as long as the garbage collector lets it: who reads a
	// partition from start to end comes for the same one again and again.
	table atomic.Pointer[weak.Pointer[table]]
}

// fence is the first row of a directory page and where the page lies.
type fence struct {
	id  commitlog.PartitionID
	pos int64
	len uint32
	crc uint32
}

// OpenIndex opens an index file and reads its footer and fences.
func OpenIndex(fs vfs.FS, dir, name string) (*Index, error) {
	f, err := fs.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", name, err)
	}
	x := &Index{f: f, name: name}
	if err := x.load(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open index %s: %w", name, err)
	}
	return x, nil
}

// Close closes the file. REQUIRES: nobody reads it any more.
func (x *Index) Close() error { return x.f.Close() }

// Info returns which segment the index is of.
func (x *Index) Info() IndexInfo { return x.info }

// Partitions returns the number of rows.
func (x *Index) Partitions() int { return int(x.partitions) }

// Entries returns the number of entries.
func (x *Index) Entries() int64 { return x.entries }

// Bytes returns the bytes of the batches that the entries name.
func (x *Index) Bytes() int64 { return x.bytes }

// Size returns the file's size.
func (x *Index) Size() int64 { return x.size }

// Memory returns roughly the memory that the open index takes.
func (x *Index) Memory() int { return 200 + len(x.fences)*40 }

func (x *Index) load() error {
	size, err := x.f.Size()
	if err != nil {
		return err
	}
	x.size = size
	if size < indexHeaderLen+indexFooterLen {
		return fmt.Errorf("size %d: %w", size, ErrCorrupt)
	}
	header := make([]byte, indexHeaderLen)
	if err := readFull(x.f, header, 0); err != nil {
		return err
	}
	le := binary.LittleEndian
	if string(header[:4]) != indexMagic {
		return fmt.Errorf("header magic: %w", ErrCorrupt)
	}
	if v := le.Uint16(header[4:]); v != indexVersion {
		return fmt.Errorf("index of version %d: %w", v, ErrFormatTooNew)
	}
	x.info = IndexInfo{commitlog.SegmentID(le.Uint64(header[8:])), commitlog.LSN(le.Uint64(header[16:])), commitlog.LSN(le.Uint64(header[24:]))}
	footer := make([]byte, indexFooterLen)
	if err := readFull(x.f, footer, size-indexFooterLen); err != nil {
		return err
	}
	if err := x.loadFooter(footer, header); err != nil {
		return err
	}
	return x.loadFences(le.Uint32(footer[48:]))
}

func (x *Index) loadFooter(f, header []byte) error {
	le := binary.LittleEndian
	if string(f[60:]) != indexEndMagic || le.Uint32(f[56:]) != crc32.Checksum(f[:56], castagnoli) || le.Uint32(f[52:]) != crc32.Checksum(header, castagnoli) {
		return fmt.Errorf("footer: %w", ErrCorrupt)
	}
	x.states, x.pages, x.fencesPos = int64(le.Uint64(f)), int64(le.Uint64(f[8:])), int64(le.Uint64(f[16:]))
	x.partitions, x.entries, x.bytes = int64(le.Uint64(f[24:])), int64(le.Uint64(f[32:])), int64(le.Uint64(f[40:]))
	end := x.size - indexFooterLen
	if x.states < indexHeaderLen || x.pages < x.states || x.fencesPos < x.pages || end < x.fencesPos || x.partitions < 0 {
		return fmt.Errorf("footer positions: %w", ErrCorrupt)
	}
	if n := (x.partitions + pageRows - 1) / pageRows; (end-x.fencesPos)%fenceLen != 0 || (end-x.fencesPos)/fenceLen != n {
		return fmt.Errorf("footer counts: %w", ErrCorrupt)
	}
	return nil
}

func (x *Index) loadFences(crc uint32) error {
	n := x.size - indexFooterLen - x.fencesPos
	if n > maxIndexSection {
		return fmt.Errorf("fences of %d bytes: %w", n, ErrCorrupt)
	}
	b := make([]byte, n)
	if err := readFull(x.f, b, x.fencesPos); err != nil {
		return err
	}
	if crc32.Checksum(b, castagnoli) != crc {
		return fmt.Errorf("fences: %w", ErrCorrupt)
	}
	le := binary.LittleEndian
	x.fences = make([]fence, 0, len(b)/fenceLen)
	for ; len(b) > 0; b = b[fenceLen:] {
		f := fence{id: readID(b), pos: int64(le.Uint64(b[20:])), len: le.Uint32(b[28:]), crc: le.Uint32(b[32:])}
		if f.pos < x.pages || f.pos+int64(f.len) > x.fencesPos || f.len > pageRows*maxRowLen {
			return fmt.Errorf("fence: %w", ErrCorrupt)
		}
		x.fences = append(x.fences, f)
	}
	return nil
}

func readID(b []byte) (id commitlog.PartitionID) {
	copy(id.Topic[:], b)
	id.Partition = int32(binary.LittleEndian.Uint32(b[16:]))
	return id
}

// readFull reads all of b; a file that is too short is corrupt.
func readFull(f vfs.File, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF { //nolint:errorlint // ReaderAt returns io.EOF itself.
		return fmt.Errorf("read %d bytes at %d: cut short: %w", len(b), off, ErrCorrupt)
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), off, err)
}

// Lookup finds a partition's row.
func (x *Index) Lookup(id commitlog.PartitionID) (Row, bool, error) {
	i := sort.Search(len(x.fences), func(i int) bool { return CompareIDs(x.fences[i].id, id) > 0 })
	if i == 0 {
		return Row{}, false, nil
	}
	var found Row
	ok := false
	err := x.page(i-1, func(at commitlog.PartitionID, r Row) bool {
		if at == id {
			found, ok = r, true
		}
		return !ok
	})
	return found, ok, err
}

// Rows calls fn for each row in order until it returns false.
func (x *Index) Rows(fn func(commitlog.PartitionID, Row) bool) error {
	goOn := true
	for i := 0; i < len(x.fences) && goOn; i++ {
		err := x.page(i, func(id commitlog.PartitionID, r Row) bool {
			goOn = fn(id, r)
			return goOn
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// page reads a directory page.
func (x *Index) page(i int, fn func(commitlog.PartitionID, Row) bool) error {
	f := x.fences[i]
	b := make([]byte, f.len)
	if err := readFull(x.f, b, f.pos); err != nil {
		return fmt.Errorf("read directory of %s: %w", x.name, err)
	}
	if crc32.Checksum(b, castagnoli) != f.crc {
		return fmt.Errorf("read directory of %s at %d: %w", x.name, f.pos, ErrCorrupt)
	}
	d := decoder{b: b}
	var id commitlog.PartitionID
	for n := 0; len(d.b) > 0; n++ {
		r := d.row(&id, n > 0)
		if d.failed || !x.plausible(&r) {
			return fmt.Errorf("read directory of %s at %d: %w", x.name, f.pos, ErrCorrupt)
		}
		if !fn(id, r) {
			return nil
		}
	}
	return nil
}

func (d *decoder) row(id *commitlog.PartitionID, mayRepeat bool) (r Row) {
	flags := d.byte()
	if flags&rowSameTopic == 0 {
		copy(id.Topic[:], d.bytes(16))
	} else if !mayRepeat {
		d.failed = true
	}
	id.Partition = int32(uint32(d.uvarint()))
	if flags&rowHasEntries != 0 {
		r.First = d.offset()
		r.Last = r.First + d.offset()
		r.Entries = int32(min(d.uvarint(), math.MaxInt32))
		r.Bytes, r.MaxTimestamp = d.offset(), d.varint()
		r.blockPos, r.groupsLen = d.offset(), uint32(min(d.uvarint(), math.MaxUint32))
		if c := d.bytes(4); c != nil {
			r.crc = binary.LittleEndian.Uint32(c)
		}
	}
	if flags&rowHasState != 0 {
		r.statePos, r.stateLen = d.offset(), uint32(min(d.uvarint(), math.MaxUint32))
	}
	return r
}

// plausible bounds what a row may say by the sections of the file.
func (x *Index) plausible(r *Row) bool {
	if r.Entries > 0 {
		end := r.blockPos + int64(r.groupsLen)
		if r.groups() > 1 {
			end += int64(r.groups()) * tableRowLen
		}
		if r.blockPos < indexHeaderLen || end > x.states || int64(r.groupsLen) < int64(r.Entries)*5 {
			return false
		}
	}
	return r.stateLen == 0 || r.statePos >= x.states && r.statePos+stateHeaderLen+int64(r.stateLen) <= x.pages
}

// State reads a row's state, nil if it has none.
func (x *Index) State(r *Row) (*State, error) {
	if r.stateLen == 0 {
		return nil, nil
	}
	if r.stateLen > maxIndexSection {
		return nil, fmt.Errorf("read state of %s: %w", x.name, ErrCorrupt)
	}
	b := make([]byte, stateHeaderLen+int(r.stateLen))
	if err := readFull(x.f, b, r.statePos); err != nil {
		return nil, fmt.Errorf("read state of %s: %w", x.name, err)
	}
	_, state, _, err := cutState(b)
	if err != nil {
		return nil, fmt.Errorf("read state of %s at %d: %w", x.name, r.statePos, err)
	}
	return DecodeState(state)
}

// States calls fn for each partition's state, in order. Every one is checked.
func (x *Index) States(fn func(commitlog.PartitionID, *State) error) error {
	if err := readStates(x.f, x.states, x.pages, fn); err != nil {
		return fmt.Errorf("read states of %s: %w", x.name, err)
	}
	return nil
}

// cutState takes the first state off b.
func cutState(b []byte) (id commitlog.PartitionID, state, rest []byte, err error) {
	if len(b) < stateHeaderLen {
		return id, nil, nil, ErrCorrupt
	}
	le := binary.LittleEndian
	n := le.Uint32(b[20:])
	if int64(n) > int64(len(b)-stateHeaderLen) {
		return id, nil, nil, ErrCorrupt
	}
	state = b[stateHeaderLen : stateHeaderLen+int(n)]
	if crc32.Update(crc32.Checksum(b[:24], castagnoli), castagnoli, state) != le.Uint32(b[24:]) {
		return id, nil, nil, ErrCorrupt
	}
	return readID(b), state, b[stateHeaderLen+int(n):], nil
}

// readStates reads the states in [from, to) of a file, a piece at a time.
func readStates(f vfs.File, from, to int64, fn func(commitlog.PartitionID, *State) error) error {
	buf := make([]byte, 0, min(to-from, 1<<20))
	for from < to || len(buf) > 0 {
		if len(buf) >= stateHeaderLen {
			need := stateHeaderLen + int64(binary.LittleEndian.Uint32(buf[20:]))
			if need > int64(len(buf))+to-from {
				return ErrCorrupt
			}
			if need <= int64(len(buf)) {
				id, raw, rest, err := cutState(buf)
				if err != nil {
					return err
				}
				s, err := DecodeState(raw)
				if err != nil {
					return err
				}
				if err := fn(id, s); err != nil {
					return err
				}
				buf = rest
				continue
			}
			buf = growTo(buf, int(need))
		} else {
			buf = growTo(buf, 1<<20)
		}
		n := min(int64(cap(buf)-len(buf)), to-from)
		if n == 0 {
			return ErrCorrupt
		}
		at := len(buf)
		buf = buf[:at+int(n)]
		if err := readFull(f, buf[at:], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// growTo returns b with a capacity of at least n, at its front.
func growTo(b []byte, n int) []byte {
	return append(make([]byte, 0, max(n, 1<<20)), b...)
}
