package group

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/coordinator"
)

// The kinds of records, by the int16 that their keys begin with.
const (
	keyOffsetOld = 0
	keyOffset    = 1
	keyClassic   = 2
)

var errMalformed = errors.New("malformed record")

// Replay takes in a record of the log.
func (m *Machine) Replay(r coordinator.Record, producer int64) error {
	if len(r.Key) < 2 {
		return fmt.Errorf("key of %d bytes: %w", len(r.Key), errMalformed)
	}
	switch kind := int16(binary.BigEndian.Uint16(r.Key)); {
	case kind == keyOffsetOld || kind == keyOffset:
		return m.replayOffset(r.Key, r.Value, producer)
	case kind == keyClassic:
		return m.replayClassic(r.Key, r.Value)
	default:
		return m.replayConsumer(kind, r.Key, r.Value)
	}
}

// Loaded starts the timers.
func (m *Machine) Loaded(t *coordinator.Turn) {
	for _, g := range m.groups {
		g.loaded(t)
	}
	m.forgetDeletedTopics(t)
	t.Set(&m.expiry, t.Now().Add(m.settings().OffsetRetentionCheck))
}

// takeString takes an int16 length and as many bytes.
func takeString(b []byte) (s, rest []byte, err error) {
	if len(b) < 2 {
		return nil, nil, errMalformed
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	if n < 0 || n > len(b)-2 {
		return nil, nil, errMalformed
	}
	return b[2 : 2+n], b[2+n:], nil
}

// takeCompact takes a varint length plus one and as many bytes.
func takeCompact(b []byte) (s, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n == 0 || n-1 > uint64(len(b)-k) {
		return nil, nil, errMalformed
	}
	end := k + int(n-1)
	return b[k:end], b[end:], nil
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}
