package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is what the body of a request that does not fit its schema
// gives.
var ErrMalformed = errors.New("malformed request")

// ErrTooDense is given when decoding a request would take far more memory than
// any client has use for.
var ErrTooDense = errors.New("request would take too much memory")

// maxDecoded bounds the estimate of what one decoded request takes: 100,000
// partitions of any request are a tenth of it.
const maxDecoded = 192 << 20

// opcode is a step of a program.
type opcode uint8

const (
	opSkip   opcode = iota // n bytes
	opString               // see kindString
	opBytes                // see kindBytes
	opRun                  // an array of elements of n bytes each
	opArray                // an array of what sub walks
	opStruct               // an int8, then what sub walks unless it is negative
	opTags                 // tagged fields
)

// op is one step over the wire form of a request.
type op struct {
	code     opcode
	nullable bool
	n        int
	sub      *program
	tags     []tagOp
	name     string
}

// tagOp walks a known tagged field; a nil program is a tag that this version
// lacks.
type tagOp struct {
	tag uint32
	sub *program
}

// program walks one struct in one version.
type program struct {
	ops  []op
	cost int // what the struct takes in memory, without what it points to
}

// compile makes the program of an object in one version. Neighbouring fields of
// fixed size become one step.
func compile(o *object, version int16, flexible bool) *program {
	p := &program{}
	for i := range o.fields {
		f := &o.fields[i]
		p.cost += f.memory()
		if version >= f.min && version <= f.max {
			p.add(f, version, flexible)
		}
	}
	if !flexible {
		return p
	}
	p.cost += 8
	tags := op{code: opTags, name: "tags"}
	for i := range o.tagged {
		f := &o.tagged[i]
		p.cost += f.memory()
		t := tagOp{tag: uint32(f.tag)}
		if version >= f.min && version <= f.max {
			t.sub = &program{}
			t.sub.add(f, version, flexible)
		}
		tags.tags = append(tags.tags, t)
	}
	p.ops = append(p.ops, tags)
	return p
}

// memory is about what kmsg keeps for the field inside its struct.
func (f *field) memory() int {
	switch f.kind {
	case kindFixed:
		return f.size
	case kindString:
		return 16
	case kindStruct:
		return 8
	}
	return 24
}

// add appends the steps of one field.
func (p *program) add(f *field, version int16, flexible bool) {
	s := op{name: f.name, nullable: version >= f.nullable}
	switch f.kind {
	case kindFixed:
		if last := len(p.ops) - 1; last >= 0 && p.ops[last].code == opSkip {
			p.ops[last].n += f.size
			return
		}
		s.code, s.n = opSkip, f.size
	case kindString:
		s.code = opString
	case kindBytes:
		s.code = opBytes
	case kindStruct:
		sub := compile(f.elem, version, flexible)
		if f.nullable == never {
			p.ops = append(p.ops, sub.ops...)
			return
		}
		s.code, s.sub = opStruct, sub
	case kindArray:
		s.code = opArray
		switch {
		case f.elem != nil:
			s.sub = compile(f.elem, version, flexible)
		case f.one.kind == kindFixed:
			s.code, s.n = opRun, f.one.size
		default:
			s.sub = &program{cost: f.one.memory()}
			s.sub.add(f.one, version, flexible)
		}
		if sub := s.sub; sub != nil && len(sub.ops) == 1 && sub.ops[0].code == opSkip {
			s.n = sub.ops[0].n
		}
	}
	p.ops = append(p.ops, s)
}

// walker goes over the body of a request without taking memory, and adds up
// what decoding it would take.
type walker struct {
	b        []byte
	flexible bool
	cost     int
}

// walkBody checks a body against its schema; what follows the request is
// ignored. The result is about the memory that its decoded form takes.
func walkBody(key, version int16, body []byte) (cost int, err error) {
	s := schemas()[key]
	if s == nil || version < 0 || int(version) >= len(s.programs) {
		return 0, fmt.Errorf("%w: no schema of API %d version %d", ErrMalformed, key, version)
	}
	return s.walk(version, body)
}

// walk is walkBody for a version that the schema has.
func (s *requestSchema) walk(version int16, body []byte) (cost int, err error) {
	p := s.programs[version]
	w := walker{b: body, flexible: version >= s.flexible, cost: p.cost}
	if err := w.run(p); err != nil {
		return w.cost, fmt.Errorf("%s version %d: %w", s.name, version, err)
	}
	return w.cost, nil
}

// malformed is ErrMalformed at a field.
func malformed(name, what string) error {
	return fmt.Errorf("%w: %s: %s", ErrMalformed, name, what)
}

func (w *walker) run(p *program) error {
	for i := range p.ops {
		s := &p.ops[i]
		var err error
		switch s.code {
		case opSkip:
			if len(w.b) < s.n {
				return malformed(s.name, "cut short")
			}
			w.b = w.b[s.n:]
		case opString:
			err = w.text(s)
		case opBytes:
			err = w.bytes(s)
		case opRun, opArray:
			err = w.array(s)
		case opStruct:
			err = w.optional(s)
		case opTags:
			err = w.tags(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// length reads a length of width bytes, or a compact one; below zero is null.
func (w *walker) length(s *op, width int) (int, error) {
	var n int
	switch {
	case w.flexible:
		u, ok := w.uvarint()
		if !ok {
			return 0, malformed(s.name, "cut short")
		}
		n = int(u) - 1
	case len(w.b) < width:
		return 0, malformed(s.name, "cut short")
	case width == 2:
		n = int(int16(binary.BigEndian.Uint16(w.b)))
		w.b = w.b[2:]
	default:
		n = int(int32(binary.BigEndian.Uint32(w.b)))
		w.b = w.b[4:]
	}
	if n < 0 {
		if !s.nullable {
			return 0, malformed(s.name, "null where none is allowed")
		}
		return -1, nil
	}
	if n > len(w.b) {
		return 0, malformed(s.name, "longer than the request")
	}
	return n, nil
}

func (w *walker) text(s *op) error {
	n, err := w.length(s, 2)
	if err != nil || n < 0 {
		return err
	}
	if n > 0x7fff {
		return malformed(s.name, "string longer than 32767")
	}
	w.b = w.b[n:]
	w.cost += n + 8
	return nil
}

func (w *walker) bytes(s *op) error {
	n, err := w.length(s, 4)
	if n > 0 {
		w.b = w.b[n:]
	}
	return err
}

func (w *walker) array(s *op) error {
	n, err := w.length(s, 4)
	if err != nil || n < 0 {
		return err
	}
	cost := s.n
	if s.sub != nil {
		cost = s.sub.cost
	}
	if w.cost += n * cost; w.cost > maxDecoded {
		return fmt.Errorf("%w: %s: %d elements", ErrTooDense, s.name, n)
	}
	if s.n > 0 {
		if len(w.b)/s.n < n {
			return malformed(s.name, "longer than the request")
		}
		w.b = w.b[n*s.n:]
		return nil
	}
	for range n {
		if err := w.run(s.sub); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) optional(s *op) error {
	if len(w.b) == 0 {
		return malformed(s.name, "cut short")
	}
	present := int8(w.b[0]) >= 0
	w.b = w.b[1:]
	if !present {
		return nil
	}
	w.cost += s.sub.cost
	return w.run(s.sub)
}

// tags walks tagged fields: unknown ones are skipped, known ones must be of this
// version and hold what they should.
func (w *walker) tags(s *op) error {
	n, ok := w.uvarint()
	if !ok {
		return malformed(s.name, "cut short")
	}
	for ; n > 0; n-- {
		tag, ok1 := w.uvarint()
		size, ok2 := w.uvarint()
		if !ok1 || !ok2 || uint64(size) > uint64(len(w.b)) {
			return malformed(s.name, "cut short")
		}
		value := w.b[:size]
		w.b = w.b[size:]
		known := false
		for i := range s.tags {
			if s.tags[i].tag != tag {
				continue
			}
			known = true
			if err := w.tagged(&s.tags[i], value); err != nil {
				return err
			}
		}
		if known {
			continue
		}
		// kmsg keeps unknown tags in a map.
		if w.cost += 64; w.cost > maxDecoded {
			return fmt.Errorf("%w: %s", ErrTooDense, s.name)
		}
	}
	return nil
}

func (w *walker) tagged(t *tagOp, value []byte) error {
	if t.sub == nil {
		return malformed("tags", fmt.Sprintf("tag %d is not of this version", t.tag))
	}
	inner := walker{b: value, flexible: w.flexible, cost: w.cost}
	err := inner.run(t.sub)
	w.cost = inner.cost
	return err
}

// uvarint reads an unsigned number of at most 32 bits in at most 5 bytes.
func (w *walker) uvarint() (uint32, bool) {
	if len(w.b) > 0 && w.b[0] < 0x80 {
		u := uint32(w.b[0])
		w.b = w.b[1:]
		return u, true
	}
	u, n := uvarint(w.b)
	if n == 0 {
		return 0, false
	}
	w.b = w.b[n:]
	return u, true
}

// uvarint reads an unsigned number of at most 32 bits in at most 5 bytes, and
// gives their number, zero for none.
func uvarint(b []byte) (uint32, int) {
	var u uint64
	for i := 0; i < len(b) && i < 5; i++ {
		u |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return uint32(u), i + 1
		}
	}
	return 0, 0
}
