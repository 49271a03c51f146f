package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonRecord is a record as one line of JSON, the same way out and in:
//
//	{"topic":"t","partition":0,"offset":7,"timestamp":1700000000000,
//	 "key":"k","value":"v","headers":[{"key":"h","value":"x"}]}
//
// Bytes that are no UTF-8 stand in key_base64 and value_base64 instead. null is
// null: a record without key, or a tombstone. Timestamps are milliseconds.
type jsonRecord struct {
	Topic       string       `json:"topic,omitempty"`
	Partition   *int32       `json:"partition,omitempty"`
	Offset      *int64       `json:"offset,omitempty"`
	Timestamp   *int64       `json:"timestamp,omitempty"`
	Key         jsonBytes    `json:"key"`
	KeyBase64   *string      `json:"key_base64,omitempty"`
	Value       jsonBytes    `json:"value"`
	ValueBase64 *string      `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key         string    `json:"key"`
	Value       jsonBytes `json:"value"`
	ValueBase64 *string   `json:"value_base64,omitempty"`
}

// jsonBytes is text in JSON. What is read may also be a number, an object or any
// other JSON, which stands for its own text.
type jsonBytes []byte

// MarshalJSON writes text; nil is null.
func (b jsonBytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON reads text, null, or any other JSON as it stands there.
func (b *jsonBytes) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case 'n':
		*b = nil
	case '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*b = jsonBytes(s)
	default:
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			return err
		}
		*b = compact.Bytes()
	}
	return nil
}

// split gives bytes to the one of the two fields that can hold them.
func split(b []byte) (jsonBytes, *string) {
	if utf8.Valid(b) {
		return b, nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return nil, &s
}

func join(what string, text jsonBytes, coded *string) ([]byte, error) {
	if coded == nil {
		return text, nil
	}
	if text != nil {
		return nil, fmt.Errorf("%s and %s_base64 are both given", what, what)
	}
	b, err := base64.StdEncoding.DecodeString(*coded)
	if err != nil {
		return nil, fmt.Errorf("%s_base64: %w", what, err)
	}
	return b, nil
}

// appendJSON appends a record as a line.
func appendJSON(b []byte, r *kgo.Record) ([]byte, error) {
	ms := r.Timestamp.UnixMilli()
	out := jsonRecord{Topic: r.Topic, Partition: &r.Partition, Offset: &r.Offset, Timestamp: &ms}
	out.Key, out.KeyBase64 = split(r.Key)
	out.Value, out.ValueBase64 = split(r.Value)
	for _, h := range r.Headers {
		jh := jsonHeader{Key: h.Key}
		jh.Value, jh.ValueBase64 = split(h.Value)
		out.Headers = append(out.Headers, jh)
	}
	w := bytes.NewBuffer(b)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return b, fmt.Errorf("write record as JSON: %w", err)
	}
	return w.Bytes(), nil
}

// parseJSON reads one line. The offset is not used; partition is that of the line.
func parseJSON(line []byte) (r *kgo.Record, partition *int32, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var in jsonRecord
	if err := d.Decode(&in); err != nil {
		return nil, nil, fmt.Errorf("read JSON record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("read JSON record: more than one value on the line")
	}
	r = &kgo.Record{}
	if r.Key, err = join("key", in.Key, in.KeyBase64); err != nil {
		return nil, nil, err
	}
	if r.Value, err = join("value", in.Value, in.ValueBase64); err != nil {
		return nil, nil, err
	}
	for _, h := range in.Headers {
		value, err := join("header value", h.Value, h.ValueBase64)
		if err != nil {
			return nil, nil, err
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: value})
	}
	if in.Timestamp != nil {
		r.Timestamp = time.UnixMilli(*in.Timestamp)
	}
	return r, in.Partition, nil
}
