package main

import (
	"bufio"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// writer makes the function that prints a record as the flags say.
func (o *consume) writer() (func(*bufio.Writer, *kgo.Record) error, error) {
	var scratch []byte
	if o.json {
		return func(w *bufio.Writer, r *kgo.Record) (err error) {
			if scratch, err = appendJSON(scratch[:0], r); err != nil {
				return err
			}
			return writeBytes(w, scratch)
		}, nil
	}
	formatter, err := kgo.NewRecordFormatter(o.layout())
	if err != nil {
		return nil, usage("See 'mainstem consume --help'.", "--format: %w", err)
	}
	return func(w *bufio.Writer, r *kgo.Record) error {
		scratch = formatter.AppendRecord(scratch[:0], r)
		return writeBytes(w, scratch)
	}, nil
}

func (o *consume) layout() string {
	if o.format != "" {
		return o.format
	}
	layout := ""
	if o.offsets {
		layout += `%t/%p %o %d{go#RFC3339Nano#}\t`
	}
	if o.headers {
		layout += `%h{%k=%v }\t`
	}
	if o.keys {
		layout += `%k\t`
	}
	return layout + `%v\n`
}

func writeBytes(w *bufio.Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
