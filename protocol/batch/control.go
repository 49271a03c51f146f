package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A control record's key and value, big-endian:
//
//	key:    version int16, type int16
//	value:  version int16, coordinator epoch int32     (of a marker, types 0 and 1)
//
// Versions of later formats only append, so what is longer is read as far as it is known.
const (
	controlKeyLen   = 4
	markerValueLen  = 6
	controlVersion0 = 0
)

// ErrNoMarker says that a batch is no control batch with a transaction marker.
var ErrNoMarker = errors.New("batch holds no transaction marker")

// MarkerType says how a transaction ended.
type MarkerType int16

// The types of markers.
const (
	Abort MarkerType = iota
	Commit
)

// String returns the type's name.
func (t MarkerType) String() string {
	switch t {
	case Abort:
		return "abort"
	case Commit:
		return "commit"
	default:
		return fmt.Sprintf("control type %d", int16(t))
	}
}

// Marker ends a transaction on a partition.
type Marker struct {
	Type             MarkerType
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32
	Timestamp        int64
}

// Batch returns the control batch that holds the marker, at base offset 0 and leader epoch 0.
func (m Marker) Batch() []byte {
	key := make([]byte, 0, controlKeyLen)
	key = binary.BigEndian.AppendUint16(key, controlVersion0)
	key = binary.BigEndian.AppendUint16(key, uint16(m.Type))
	value := make([]byte, 0, markerValueLen)
	value = binary.BigEndian.AppendUint16(value, controlVersion0)
	value = binary.BigEndian.AppendUint32(value, uint32(m.CoordinatorEpoch))
	b := NewBuilder(Spec{
		Transactional: true,
		Control:       true,
		Producer:      &Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch, Sequence: -1},
	})
	b.Append(m.Timestamp, key, value)
	out, err := b.Batch()
	if err != nil {
		panic("BUG: one uncompressed record makes no batch: " + err.Error())
	}
	return out
}

// ParseMarker reads the marker out of a control batch. Anything else is ErrNoMarker.
func ParseMarker(b []byte) (Marker, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return Marker{}, fmt.Errorf("parse marker: %w", err)
	}
	if !h.IsControl() {
		return Marker{}, fmt.Errorf("parse marker: data records: %w", ErrNoMarker)
	}
	for r, err := range Records(b) {
		if err != nil {
			return Marker{}, fmt.Errorf("parse marker: %w", err)
		}
		return markerOf(h, r)
	}
	return Marker{}, fmt.Errorf("parse marker: %w", ErrEmpty)
}

func markerOf(h Header, r Record) (Marker, error) {
	if len(r.Key) < controlKeyLen || int16(binary.BigEndian.Uint16(r.Key)) < controlVersion0 {
		return Marker{}, fmt.Errorf("parse marker: key of %d bytes: %w", len(r.Key), ErrNoMarker)
	}
	m := Marker{
		Type:          MarkerType(binary.BigEndian.Uint16(r.Key[2:])),
		ProducerID:    h.ProducerID,
		ProducerEpoch: h.ProducerEpoch,
		Timestamp:     r.Timestamp,
	}
	if m.Type != Abort && m.Type != Commit {
		return Marker{}, fmt.Errorf("parse marker: %v: %w", m.Type, ErrNoMarker)
	}
	if len(r.Value) < markerValueLen || int16(binary.BigEndian.Uint16(r.Value)) < controlVersion0 {
		return Marker{}, fmt.Errorf("parse marker: value of %d bytes: %w", len(r.Value), ErrNoMarker)
	}
	m.CoordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
	return m, nil
}
