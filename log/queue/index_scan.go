package queue

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"sort"
	"weak"

	"github.com/mainstem/mainstem/log/commitlog"
)

// maxSpan bounds the entries' bytes that are read at once, as long as a group is not larger.
const maxSpan = 64 << 10

// group is where a group of entries lies.
type group struct {
	base, newest int64
	pos          uint32
	len          uint32
	crc          uint32
	n            int
}

// end is the position after the group.
func (g *group) end() uint32 { return g.pos + g.len }

// table is a row's table of groups.
type table struct {
	at     int64 // position of the row's block
	groups []group
}

// tableOf returns a row's table of groups.
func (x *Index) tableOf(r *Row) (*table, error) {
	if r.groups() <= 1 {
		return &table{r.blockPos, []group{{base: r.First, newest: r.MaxTimestamp, len: r.groupsLen, crc: r.crc, n: int(r.Entries)}}}, nil
	}
	if last := x.table.Load(); last != nil {
		if t := last.Value(); t != nil && t.at == r.blockPos {
			return t, nil
		}
	}
	t, err := x.readTable(r)
	if err != nil {
		return nil, err
	}
	w := weak.Make(t)
	x.table.Store(&w)
	return t, nil
}

// readTable reads the table of a row that has more than one group.
func (x *Index) readTable(r *Row) (*table, error) {
	n := r.groups()
	b := make([]byte, n*tableRowLen)
	if err := readFull(x.f, b, r.blockPos+int64(r.groupsLen)); err != nil {
		return nil, fmt.Errorf("read table of %s: %w", x.name, err)
	}
	if crc32.Checksum(b, castagnoli) != r.crc {
		return nil, fmt.Errorf("read table of %s at %d: %w", x.name, r.blockPos, ErrCorrupt)
	}
	le := binary.LittleEndian
	gs := make([]group, n)
	for i := range gs {
		t := b[i*tableRowLen:]
		gs[i] = group{base: int64(le.Uint64(t)), newest: int64(le.Uint64(t[8:])), pos: le.Uint32(t[16:]), crc: le.Uint32(t[20:]), n: groupEntries}
	}
	gs[n-1].n = int(r.Entries) - (n-1)*groupEntries
	for i := range gs {
		end := r.groupsLen
		if i+1 < n {
			end = gs[i+1].pos
		}
		if end < gs[i].pos || end > r.groupsLen {
			return nil, fmt.Errorf("read table of %s at %d: %w", x.name, r.blockPos, ErrCorrupt)
		}
		gs[i].len = end - gs[i].pos
	}
	return &table{r.blockPos, gs}, nil
}

// Scan calls fn for a row's entries that reach beyond offset and whose
// timestamp may be at least minTimestamp (whole groups are passed over), in
// order, until it returns false. An entry is only lent to fn.
func (x *Index) Scan(r *Row, offset, minTimestamp int64, fn func(*Entry) bool) error {
	if r.Entries == 0 || r.Last < offset || r.MaxTimestamp < minTimestamp {
		return nil
	}
	t, err := x.tableOf(r)
	if err != nil {
		return err
	}
	gs := t.groups
	first := max(sort.Search(len(gs), func(i int) bool { return gs[i].base > offset })-1, 0)
	s := scan{x: x, r: r, offset: offset, fn: fn}
	for i := first; i < len(gs); {
		n := s.span(gs[i:], minTimestamp)
		if n == 0 {
			i++
			continue
		}
		if err := s.groups(gs[i : i+n]); err != nil || s.ended {
			return err
		}
		i += n
	}
	return nil
}

// scan goes over a row's entries.
type scan struct {
	x      *Index
	r      *Row
	offset int64
	fn     func(*Entry) bool
	want   uint32 // bytes to read at once: one group first, more while entries are wanted
	buf    []byte
	es     [groupEntries]Entry
	ended  bool
}

// span returns how many groups are to be read at once; none if the first is too old.
func (s *scan) span(gs []group, minTimestamp int64) int {
	n := 0
	for n < len(gs) && gs[n].newest >= minTimestamp && (n == 0 || gs[n].end()-gs[0].pos <= s.want) {
		n++
	}
	if n > 0 {
		s.want = min(max(2*s.want, 4*gs[0].len), maxSpan)
	}
	return n
}

// groups reads groups that lie side by side, and calls fn for their entries.
func (s *scan) groups(gs []group) error {
	from := gs[0].pos
	size := int(gs[len(gs)-1].end() - from)
	if cap(s.buf) < size {
		s.buf = make([]byte, size)
	}
	b := s.buf[:size]
	if err := readFull(s.x.f, b, s.r.blockPos+int64(from)); err != nil {
		return fmt.Errorf("read entries of %s: %w", s.x.name, err)
	}
	for i := range gs {
		if err := s.group(&gs[i], b[gs[i].pos-from:gs[i].end()-from]); err != nil || s.ended {
			return err
		}
	}
	return nil
}

// group decodes a group, all of it before fn is called.
func (s *scan) group(g *group, b []byte) error {
	corrupt := func() error { return fmt.Errorf("read entries of %s at %d: %w", s.x.name, s.r.blockPos, ErrCorrupt) }
	if g.n < 0 || g.n > len(s.es) || crc32.Checksum(b, castagnoli) != g.crc {
		return corrupt()
	}
	es := s.es[:g.n]
	d := decoder{b: b}
	var last Entry
	for i := range es {
		es[i] = d.entry(&last)
		last = es[i]
	}
	if d.failed || len(d.b) > 0 {
		return corrupt()
	}
	for i := range es {
		if es[i].Next() > s.offset && !s.fn(&es[i]) {
			s.ended = true
			return nil
		}
	}
	return nil
}

func (d *decoder) entry(last *Entry) (e Entry) {
	flags := d.byte()
	e.Base, e.Epoch = last.Next(), last.Epoch
	if flags&entryBaseNext == 0 {
		e.Base += d.varint()
	}
	lsn := d.uvarint()
	pos := lsn
	if flags&entryLinear == 0 {
		pos = d.uvarint()
	}
	e.LSN, e.Pos = last.LSN+commitlog.LSN(lsn), last.Pos+uint32(pos)
	e.Size, e.Count = d.length(), d.length()
	e.MaxTimestamp = last.MaxTimestamp + d.varint()
	if flags&entrySameEpoch == 0 {
		e.Epoch += int32(d.varint())
	}
	return e
}

// length reads a uvarint that fits an int32.
func (d *decoder) length() int32 {
	v := d.uvarint()
	if v > math.MaxInt32 {
		d.failed = true
		return 0
	}
	return int32(v)
}
