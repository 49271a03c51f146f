// Package clients writes and reads the same records with many Kafka clients and
// compares every byte: whatever one writes, each other must read.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Header is one header of a record.
type Header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// Record is what a client writes and another must read back.
type Record struct {
	Key     []byte   `json:"key"`   // null: no key
	Value   []byte   `json:"value"` // null: a tombstone
	Headers []Header `json:"headers"`
}

// Client is one Kafka client under its own name. Write sends all records to
// partition 0 in order, Read reads n records of partition 0 from the beginning,
// by assignment.
type Client interface {
	Name() string
	Codecs() []string
	Write(ctx context.Context, address, topic, codec string, records []Record) error
	Read(ctx context.Context, address, topic string, n int) ([]Record, error)
}

// Abilities narrow what a client is given to write; readers get everything.
type Abilities struct {
	NoHeaders    bool // cannot write headers
	NoTombstones bool // cannot write a null value
	NoEmptyKey   bool // cannot tell an empty key from none
	Text         bool // values and keys are lines of text
	// HeadersByName: headers of one name stand together, in no order among others.
	HeadersByName bool
	// ReadsEmptyAsNull: the reader cannot tell an empty key or value from none.
	ReadsEmptyAsNull bool
}

// Narrow is implemented by clients that cannot write or tell every record.
type Narrow interface{ Abilities() Abilities }

// Records returns the records of one topic: keys and none, tombstones, empty
// values, headers, repeated header names, sizes from 1 B to 900,000 B. They are
// printable, so that line-oriented tools take part, and barely compressible.
func Records(seed uint64, a Abilities) []Record {
	rng := rand.New(rand.NewPCG(seed, 17))
	var out []Record
	for _, size := range []int{1, 2, 10, 100, 1000, 10_000, 100_000, 900_000} {
		out = append(out, Record{Key: fmt.Appendf(nil, "key-%d", size), Value: printable(rng, size)})
	}
	for i := range 50 {
		out = append(out, Record{Key: fmt.Appendf(nil, "k%d", i%7), Value: printable(rng, 1+rng.IntN(300))})
	}
	if !a.Text {
		out = append(out, Record{Value: []byte("without a key")}, Record{Key: []byte("empty value"), Value: []byte{}})
		binary := make([]byte, 512)
		for i := range binary {
			binary[i] = byte(i)
		}
		out = append(out, Record{Key: []byte("binary"), Value: binary})
		if !a.NoEmptyKey {
			out = append(out, Record{Key: []byte{}, Value: []byte("empty key")})
		}
	}
	if !a.NoTombstones {
		out = append(out, Record{Key: []byte("k1")})
	}
	if !a.NoHeaders {
		out = append(out, Record{Key: []byte("h1"), Value: []byte("one header"), Headers: []Header{{"trace", []byte("abc")}}})
	}
	if !a.NoHeaders && !a.HeadersByName {
		out = append(out, Record{Key: []byte("h2"), Value: []byte("repeated names"), Headers: []Header{{"a", []byte("1")}, {"b", []byte("2")}, {"a", []byte("3")}}})
	}
	return out
}

func printable(rng *rand.Rand, n int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return b
}

// Compare returns the first difference of what was written and what was read.
// What the reader cannot tell apart is not held against it.
func Compare(want, got []Record, reader Abilities) error {
	same := sameBytes
	if reader.ReadsEmptyAsNull {
		same = bytes.Equal
	}
	if len(want) != len(got) {
		return fmt.Errorf("%d records written, %d read", len(want), len(got))
	}
	for i := range want {
		w, g := want[i], got[i]
		if reader.HeadersByName {
			w.Headers, g.Headers = byName(w.Headers), byName(g.Headers)
		}
		switch {
		case !same(w.Key, g.Key):
			return fmt.Errorf("record %d: key %s written, %s read", i, brief(w.Key), brief(g.Key))
		case !same(w.Value, g.Value):
			return fmt.Errorf("record %d: value %s written, %s read", i, brief(w.Value), brief(g.Value))
		case len(w.Headers) != len(g.Headers):
			return fmt.Errorf("record %d: %d headers written, %d read", i, len(w.Headers), len(g.Headers))
		}
		for h := range w.Headers {
			if w.Headers[h].Key != g.Headers[h].Key || !bytes.Equal(w.Headers[h].Value, g.Headers[h].Value) {
				return fmt.Errorf("record %d: header %d differs", i, h)
			}
		}
	}
	return nil
}

func byName(headers []Header) []Header {
	return slices.SortedStableFunc(slices.Values(headers), func(a, b Header) int { return strings.Compare(a.Key, b.Key) })
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func brief(b []byte) string {
	if b == nil {
		return "null"
	}
	s, _ := json.Marshal(string(b[:min(len(b), 40)]))
	return fmt.Sprintf("%s (%d B)", s, len(b))
}
