package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// identities maps what the recorded broker handed out (topic ids, fetch session
// ids, producer ids, ids of group members) to what the broker under test handed out in its place.
type identities struct {
	topics    map[[16]byte][16]byte
	sessions  map[int32]int32
	producers map[int64]int64
	members   map[string]string
	shift     int64 // milliseconds between the recording and now
}

// beside maps what the other of two live brokers handed out to what this one
// did, by what the recorded one had in both places.
func (ids *identities) beside(other *identities) *identities {
	both := newIdentities()
	for recorded, id := range other.topics {
		if own, known := ids.topics[recorded]; known {
			both.topics[id] = own
		}
	}
	for recorded, member := range other.members {
		if own, known := ids.members[recorded]; known {
			both.members[member] = own
		}
	}
	return both
}

// recordedAt is when the recording began, in milliseconds.
const recordedAt = 1796042805000

func newIdentities() *identities {
	return &identities{
		topics:    map[[16]byte][16]byte{},
		sessions:  map[int32]int32{},
		producers: map[int64]int64{},
		members:   map[string]string{},
		shift:     time.Now().UnixMilli() - recordedAt,
	}
}

// learn walks the recorded and the real answer side by side and remembers each
// pair of identities.
func (ids *identities) learn(want, got reflect.Value) {
	want, got = reflect.Indirect(want), reflect.Indirect(got)
	if !want.IsValid() || !got.IsValid() {
		return
	}
	switch want.Kind() {
	case reflect.Struct:
		for i := range want.NumField() {
			name := want.Type().Field(i).Name
			w, g := want.Field(i), got.Field(i)
			switch {
			case name == "TopicID":
				w, g := w.Interface().([16]byte), g.Interface().([16]byte)
				if w != ([16]byte{}) && g != ([16]byte{}) {
					ids.topics[w] = g
				}
			case name == "SessionID" && w.Kind() == reflect.Int32:
				if w.Int() != 0 {
					ids.sessions[int32(w.Int())] = int32(g.Int())
				}
			case name == "ProducerID" && w.Kind() == reflect.Int64:
				if w.Int() >= 0 && g.Int() >= 0 {
					ids.producers[w.Int()] = g.Int()
				}
			case name == "MemberID" && w.Kind() == reflect.String:
				ids.learnMember(w.String(), g.String())
			default:
				ids.learn(w, g)
			}
		}
	case reflect.Slice:
		if want.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		pairs, _, _ := ids.pairUp(want, got)
		for _, p := range pairs {
			ids.learn(p.want, p.got)
		}
	}
}

// learnMember remembers a member id that was handed out. Both have one length: a
// name and a random part.
func (ids *identities) learnMember(want, got string) {
	const shortest = 22
	if want != got && len(want) == len(got) && len(want) >= shortest {
		ids.members[want] = got
	}
}

// adapt returns the request as it must be sent to the broker under test.
func (ids *identities) adapt(e *Exchange) []byte {
	out := bytes.Clone(e.Request)
	for w, g := range ids.topics {
		out = bytes.ReplaceAll(out, w[:], g[:])
	}
	for w, g := range ids.members {
		out = bytes.ReplaceAll(out, []byte(w), []byte(g))
	}
	moved := *e
	moved.Request = out
	req, h, ok := splitRequest(&moved)
	if !ok {
		return out
	}
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		if id, known := ids.sessions[r.SessionID]; known {
			r.SessionID = id
		}
	case *kmsg.ListOffsetsRequest:
		for t := range r.Topics {
			for p := range r.Topics[t].Partitions {
				ids.shiftTime(&r.Topics[t].Partitions[p].Timestamp)
			}
		}
	case *kmsg.ProduceRequest:
		for t := range r.Topics {
			for p := range r.Topics[t].Partitions {
				ids.adaptBatch(r.Topics[t].Partitions[p].Records)
			}
		}
	case *kmsg.InitProducerIDRequest, *kmsg.AddPartitionsToTxnRequest, *kmsg.AddOffsetsToTxnRequest,
		*kmsg.EndTxnRequest, *kmsg.TxnOffsetCommitRequest:
		ids.adaptProducer(req)
	case *kmsg.ListTransactionsRequest:
		for i, id := range r.ProducerIDFilters {
			if now, known := ids.producers[id]; known {
				r.ProducerIDFilters[i] = now
			}
		}
	default:
		return out
	}
	return append(out[:h.length:h.length], req.AppendTo(nil)...)
}

// shiftTime moves a time of the recording to now; special values stay.
func (ids *identities) shiftTime(ms *int64) {
	const hour = 3_600_000
	if *ms > recordedAt-24*hour && *ms < recordedAt+24*hour {
		*ms += ids.shift
	}
}

// adaptBatch moves the times and the producer of a record batch in place. A
// batch whose checksum was wrong on purpose is left alone.
func (ids *identities) adaptBatch(b []byte) {
	const (
		magicAt, crcAt, attributesAt = 16, 17, 21
		baseTimeAt, maxTimeAt        = 27, 35
		producerAt, headerLen        = 43, 61
	)
	if len(b) < headerLen || b[magicAt] != 2 {
		return
	}
	size := int64(binary.BigEndian.Uint32(b[8:])) + 12
	if size != int64(len(b)) {
		return
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	if binary.BigEndian.Uint32(b[crcAt:]) != crc32.Checksum(b[attributesAt:], table) {
		return
	}
	for _, at := range []int{baseTimeAt, maxTimeAt} {
		ms := int64(binary.BigEndian.Uint64(b[at:]))
		ids.shiftTime(&ms)
		binary.BigEndian.PutUint64(b[at:], uint64(ms))
	}
	if id, known := ids.producers[int64(binary.BigEndian.Uint64(b[producerAt:]))]; known {
		binary.BigEndian.PutUint64(b[producerAt:], uint64(id))
	}
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attributesAt:], table))
}
