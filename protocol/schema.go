package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// kind is the type of a field on the wire.
type kind uint8

const (
	kindFixed  kind = iota // a number, a bool or a uuid
	kindString             // int16 or compact length, then the text
	kindBytes              // int32 or compact length, then the bytes
	kindArray              // int32 or compact count, then the elements
	kindStruct             // a struct in place; an int8 in front if it may be null
)

// field is one field of a request, over all versions.
type field struct {
	name     string
	kind     kind
	size     int // of a fixed field
	min, max int16
	nullable int16   // the first version in which null is allowed, or never
	elem     *object // of an array of structs, and of a struct
	one      *field  // of an array of anything else
	tag      int     // -1 for an ordinary field
}

// object is the content of a request or of a struct in it.
type object struct {
	fields []field
	tagged []field
}

// parser reads the notation of schemaTable.
type parser struct {
	text string
	pos  int
}

// parseSchema reads a layout. A layout is a list of fields in the order of the
// wire, then the tagged fields, if there are any:
//
//	layout  = field {" " field} [" {" tagged {" " tagged} "}"]
//	field   = name ":" type ["/" first ["-" last]] ["?" [first]]
//	tagged  = number ":" field
//	type    = "bool" | "i8" | "i16" | "u16" | "i32" | "i64" | "f64" | "uuid"
//	        | "str" | "bytes" | "[" type "]" | "[" layout "]" | "(" layout ")"
//
// After "/" stand the versions that have the field, after "?" the first version
// in which it may be null. What it reads is part of the program, so a mistake in
// it panics.
func parseSchema(layout string) *object {
	p := &parser{text: layout}
	o := p.object()
	if p.pos != len(p.text) {
		p.fail("end of the layout")
	}
	return o
}

func (p *parser) fail(want string) {
	panic(fmt.Sprintf("BUG: request layout: want %s at %q", want, p.text[p.pos:]))
}

func (p *parser) peek() byte {
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expect(c byte) {
	if !p.accept(c) {
		p.fail(strconv.QuoteRune(rune(c)))
	}
}

func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.text) && strings.IndexByte(" :/-?[](){}", p.text[p.pos]) < 0 {
		p.pos++
	}
	if start == p.pos {
		p.fail("a word")
	}
	return p.text[start:p.pos]
}

func (p *parser) number() int16 {
	n, err := strconv.ParseInt(p.word(), 10, 16)
	if err != nil {
		p.fail("a number")
	}
	return int16(n)
}

func (p *parser) object() *object {
	o := &object{}
	for {
		if p.accept('{') {
			for {
				tag := p.number()
				p.expect(':')
				f := p.field()
				f.tag = int(tag)
				o.tagged = append(o.tagged, f)
				if !p.accept(' ') {
					break
				}
			}
			p.expect('}')
			return o
		}
		o.fields = append(o.fields, p.field())
		if !p.accept(' ') {
			return o
		}
	}
}

func (p *parser) field() field {
	name := p.word()
	p.expect(':')
	f := p.value()
	f.name, f.max, f.nullable, f.tag = name, never, never, -1
	if p.accept('/') {
		f.min = p.number()
		if p.accept('-') {
			f.max = p.number()
		}
	}
	if p.accept('?') {
		f.nullable = 0
		if c := p.peek(); c >= '0' && c <= '9' {
			f.nullable = p.number()
		}
	}
	return f
}

// value reads a type.
func (p *parser) value() field {
	switch {
	case p.accept('('):
		o := p.object()
		p.expect(')')
		return field{kind: kindStruct, elem: o}
	case p.accept('['):
		defer p.expect(']')
		start := p.pos
		if w := p.word(); p.peek() == ':' {
			p.pos = start
			return field{kind: kindArray, elem: p.object()}
		} else if one, ok := scalar(w); ok {
			return field{kind: kindArray, one: &one}
		}
		p.fail("a type")
	}
	f, ok := scalar(p.word())
	if !ok {
		p.fail("a type")
	}
	return f
}

func scalar(name string) (field, bool) {
	f := field{max: never, nullable: never, tag: -1}
	switch name {
	case "bool", "i8":
		f.size = 1
	case "i16", "u16":
		f.size = 2
	case "i32":
		f.size = 4
	case "i64", "f64":
		f.size = 8
	case "uuid":
		f.size = 16
	case "str":
		f.kind = kindString
	case "bytes":
		f.kind = kindBytes
	default:
		return f, false
	}
	return f, true
}

// requestSchema is what is known of one API's requests.
type requestSchema struct {
	name     string
	flexible int16
	programs []*program // by version
}

// schemas gives the schemas by API key, compiled once.
var schemas = sync.OnceValue(func() map[int16]*requestSchema {
	all := make(map[int16]*requestSchema, len(schemaTable))
	for _, row := range schemaTable {
		o := parseSchema(row.layout)
		s := &requestSchema{name: row.name, flexible: row.flexible}
		for v := int16(0); v <= max(kmsg.RequestForKey(row.key).MaxVersion(), beyondKmsg[row.key]); v++ {
			s.programs = append(s.programs, compile(o, v, v >= row.flexible))
		}
		all[row.key] = s
	}
	return all
})

// apiName is the name of an API, or its number.
func apiName(key int16) string {
	if s := schemas()[key]; s != nil {
		return s.name
	}
	return "API " + strconv.Itoa(int(key))
}
