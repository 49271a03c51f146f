package wire

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

//go:embed testdata/kafka-4.3.1.jsonl
var recorded embed.FS

// Exchange is one recorded request and what Apache Kafka 4.3.1 answered. Both
// byte strings include the Kafka header and leave out the length prefix.
type Exchange struct {
	Row      int
	API      string
	Key      int16
	Version  int16
	Note     string
	Request  []byte
	Response []byte
	// Outcome says what the client saw instead of an answer: "connection
	// closed" or "no answer"; it is empty where there was one.
	Outcome string
}

// Correlation returns the correlation id of the request. Ids count up by one on
// a connection, so one that does not continue marks a new connection.
func (e *Exchange) Correlation() int32 { return int32(binary.BigEndian.Uint32(e.Request[4:])) }

// String names the exchange in reports.
func (e *Exchange) String() string {
	return fmt.Sprintf("row %d, %s v%d, %s", e.Row, e.API, e.Version, e.Note)
}

// Recorded loads all exchanges in the order in which they were recorded.
func Recorded() ([]Exchange, error) {
	raw, err := recorded.ReadFile("testdata/kafka-4.3.1.jsonl")
	if err != nil {
		return nil, err
	}
	var out []Exchange
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			API, Note, Request, Response, Outcome string
			Key, Version                          int16
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("exchange %d: %w", len(out), err)
		}
		e := Exchange{Row: len(out), API: r.API, Key: r.Key, Version: r.Version, Note: r.Note, Outcome: r.Outcome}
		if e.Request, err = hex.DecodeString(r.Request); err != nil {
			return nil, fmt.Errorf("request %d: %w", len(out), err)
		}
		if e.Response, err = hex.DecodeString(r.Response); err != nil {
			return nil, fmt.Errorf("response %d: %w", len(out), err)
		}
		out = append(out, e)
	}
	return out, lines.Err()
}
