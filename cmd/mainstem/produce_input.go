package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordSource gives one record after the other and io.EOF after the last.
// Partition is that which the input asks for, or nil.
type recordSource interface {
	next() (r *kgo.Record, partition *int32, err error)
}

// lines makes each line a value, or key, separator and value.
type lines struct {
	in        *bufio.Reader
	delimiter byte
	separator []byte // Nil: no key in the line.
	null      []byte // Stands for no value, and for no key; nil: nothing does.
	n         int
}

func (l *lines) next() (*kgo.Record, *int32, error) {
	line, err := readLine(l.in, l.delimiter)
	if err != nil {
		return nil, nil, err
	}
	l.n++
	r := &kgo.Record{Value: line}
	if l.separator != nil {
		key, value, ok := bytes.Cut(line, l.separator)
		if !ok {
			return nil, nil, usage("Put the key and the separator in front of the value.",
				"line %d has no key separator %q", l.n, l.separator)
		}
		r.Key, r.Value = l.orNull(key), value
	}
	r.Value = l.orNull(r.Value)
	return r, nil, nil
}

func (l *lines) orNull(b []byte) []byte {
	if l.null != nil && bytes.Equal(b, l.null) {
		return nil
	}
	return b
}

// readLine returns the bytes before the next delimiter, never nil; what follows
// the last one counts if it is not empty.
func readLine(in *bufio.Reader, delimiter byte) ([]byte, error) {
	line, err := in.ReadBytes(delimiter)
	if err == nil {
		return line[:len(line)-1], nil
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return line, nil
	}
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	return nil, fmt.Errorf("read standard input: %w", err)
}

// jsonLines reads what consume --json writes.
type jsonLines struct {
	in            *bufio.Reader
	keepPartition bool
	n             int
}

func (l *jsonLines) next() (*kgo.Record, *int32, error) {
	for {
		line, err := readLine(l.in, '\n')
		if err != nil {
			return nil, nil, err
		}
		l.n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, partition, err := parseJSON(line)
		if err != nil {
			return nil, nil, usage(`A line is like {"key":"k","value":"v"}; see 'mainstem produce --help'.`, "line %d: %w", l.n, err)
		}
		if !l.keepPartition {
			partition = nil
		}
		return r, partition, nil
	}
}

// formatted reads records in a layout of the user's.
type formatted struct {
	reader *kgo.RecordReader
	n      int
}

func newFormatted(in io.Reader, layout string) (*formatted, error) {
	r, err := kgo.NewRecordReader(in, layout)
	if err != nil {
		return nil, usage("See 'mainstem produce --help'.", "--format: %w", err)
	}
	return &formatted{reader: r}, nil
}

func (f *formatted) next() (*kgo.Record, *int32, error) {
	r, err := f.reader.ReadRecord()
	if errors.Is(err, io.EOF) {
		return nil, nil, io.EOF
	}
	f.n++
	if err != nil {
		return nil, nil, usage("The input must be as --format says.", "record %d: %w", f.n, err)
	}
	r.Topic = ""
	return r, nil, nil
}

// whole makes one record of all the input.
type whole struct {
	in   io.Reader
	done bool
}

func (w *whole) next() (*kgo.Record, *int32, error) {
	if w.done {
		return nil, nil, io.EOF
	}
	w.done = true
	value, err := io.ReadAll(w.in)
	if err != nil {
		return nil, nil, fmt.Errorf("read standard input: %w", err)
	}
	return &kgo.Record{Value: value}, nil, nil
}
