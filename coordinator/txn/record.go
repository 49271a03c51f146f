package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mainstem/mainstem/coordinator"
)

// valueVersion is what is written; it is also the newest that is read.
const valueVersion = 1

// Numbers of the tags of a value.
const (
	tagPrevious = iota
	tagNext
	tagVersion
)

var errMalformed = errors.New("malformed record")

// keyOf is the key of an id's record.
func keyOf(id string) []byte {
	b := make([]byte, 0, 2+2+len(id))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(id)))
	return append(b, id...)
}

// value is the value of the txn's record.
func (x *txn) value() []byte {
	b := make([]byte, 0, 64+32*len(x.places))
	b = binary.BigEndian.AppendUint16(b, valueVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(x.producer))
	b = binary.BigEndian.AppendUint16(b, uint16(x.epoch))
	b = binary.BigEndian.AppendUint32(b, uint32(x.timeout))
	b = append(b, byte(x.state))
	b = x.appendPlaces(b)
	b = binary.BigEndian.AppendUint64(b, uint64(x.updated))
	b = binary.BigEndian.AppendUint64(b, uint64(x.started))
	return x.appendTags(b)
}

// appendPlaces appends the partitions: null when Empty, as Kafka has it.
func (x *txn) appendPlaces(b []byte) []byte {
	if x.state == Empty {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(x.places))+1)
	for _, topic := range x.places.topics() {
		b = binary.AppendUvarint(b, uint64(len(topic))+1)
		b = append(b, topic...)
		parts := x.places[topic]
		b = binary.AppendUvarint(b, uint64(len(parts))+1)
		for _, p := range parts {
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		}
		b = append(b, 0)
	}
	return b
}

// appendTags appends what is not what a reader takes for granted.
func (x *txn) appendTags(b []byte) []byte {
	count := len(b)
	b = append(b, 0)
	for tag, id := range [...]int64{tagPrevious: x.previous, tagNext: x.next} {
		if id != coordinator.NoProducer {
			b[count]++
			b = append(b, byte(tag), 8)
			b = binary.BigEndian.AppendUint64(b, uint64(id))
		}
	}
	if x.version != Version1 {
		b[count]++
		b = append(b, tagVersion, 2)
		b = binary.BigEndian.AppendUint16(b, uint16(x.version))
	}
	return b
}

// Replay takes in a record of the log.
func (m *Machine) Replay(r coordinator.Record, _ int64) error {
	key := reader{b: r.Key}
	if kind := key.int16(); key.failed || kind != 0 {
		return fmt.Errorf("key of kind %d: %w", kind, errMalformed)
	}
	id := key.take(int(key.int16()))
	if key.failed {
		return fmt.Errorf("key: %w", errMalformed)
	}
	if r.Value == nil {
		delete(m.txns, string(id))
		return nil
	}
	x := m.txns[string(id)]
	read := txn{m: m, lastEpoch: noEpoch}
	if err := read.read(r.Value); err != nil {
		return fmt.Errorf("value of %q: %w", id, err)
	}
	if x == nil {
		x = &txn{id: string(id)}
		m.txns[x.id] = x
	}
	read.id = x.id
	*x = read
	return nil
}

// ReplayEnd has nothing to do: transactional ids are not themselves in transactions.
func (m *Machine) ReplayEnd(coordinator.Marker) error { return nil }

// read reads a value of any version.
func (x *txn) read(b []byte) error {
	r := reader{b: b}
	version := r.int16()
	if version < 0 || version > valueVersion {
		return fmt.Errorf("version %d: %w", version, errMalformed)
	}
	r.compact = version >= 1
	x.producer, x.epoch, x.timeout = r.int64(), r.int16(), r.int32()
	x.state = State(r.int8())
	x.places = r.places()
	x.updated, x.started = r.int64(), r.int64()
	x.previous, x.next, x.version = coordinator.NoProducer, coordinator.NoProducer, Version1
	if r.compact {
		r.tags(func(tag uint64, field *reader) {
			switch tag {
			case tagPrevious:
				x.previous = field.int64()
			case tagNext:
				x.next = field.int64()
			case tagVersion:
				x.version = field.int16()
			}
		})
	}
	if r.failed || x.state < Empty || x.state > CompleteAbort {
		return errMalformed
	}
	return nil
}
