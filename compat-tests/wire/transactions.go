package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"reflect"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The recording does not hold the InitProducerId requests by which the producers
// of its transactions came to their ids: they are sent in their place, right before
// the first request of each.

// transactionTimeout is that of the recorded producers, in milliseconds.
const transactionTimeout = 60_000

// newer is in the note of the requests before which another producer has come.
const newer = "fenced by a newer InitProducerId"

// speaker is the transactional producer that a request speaks for.
func speaker(e *Exchange, req kmsg.Request) (id string, producer int64, ok bool) {
	if strings.Contains(e.Note, "unknown transactional id") || strings.Contains(e.Note, "empty transactional id") {
		return "", 0, false
	}
	switch r := req.(type) {
	case *kmsg.AddPartitionsToTxnRequest:
		return r.TransactionalID, r.ProducerID, r.Version < 4
	case *kmsg.EndTxnRequest:
		return r.TransactionalID, r.ProducerID, true
	case *kmsg.ProduceRequest:
		if r.TransactionID == nil || len(r.Topics) == 0 || len(r.Topics[0].Partitions) == 0 {
			return "", 0, false
		}
		const producerAt, headerLen = 43, 61
		b := r.Topics[0].Partitions[0].Records
		if len(b) < headerLen {
			return "", 0, false
		}
		producer = int64(binary.BigEndian.Uint64(b[producerAt:]))
		return *r.TransactionID, producer, producer >= 0
	}
	return "", 0, false
}

// introduce makes the producer known that an exchange speaks for, and a newer one
// where the recording had one.
func (s *side) introduce(e *Exchange) error {
	req, _, ok := splitRequest(e)
	if !ok {
		return nil
	}
	if r, init := req.(*kmsg.InitProducerIDRequest); init && r.TransactionalID != nil {
		s.introduced[*r.TransactionalID] = true
	}
	id, recorded, ok := speaker(e, req)
	if !ok || id == "" {
		return nil
	}
	key := id
	if strings.Contains(e.Note, newer) {
		key += ", " + newer
	}
	if s.introduced[key] {
		return nil
	}
	s.introduced[key] = true
	got, err := s.initProducer(id)
	if err != nil {
		return fmt.Errorf("introduce %s: %w", id, err)
	}
	s.ids.producers[recorded] = got
	return nil
}

// initProducer asks for the producer id of a transactional id, and again while the
// coordinator is not ready.
func (s *side) initProducer(id string) (int64, error) {
	conn, err := net.DialTimeout("tcp", s.address, answerWithin)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 1, &id, transactionTimeout
	var code int16
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		body := []byte{0, byte(req.Key()), 0, byte(req.Version), 0, 0, 0, 1, 0xff, 0xff}
		body = req.AppendTo(body)
		if err := conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
			return 0, err
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
			return 0, err
		}
		answer, err := readFrame(conn)
		if err != nil {
			return 0, err
		}
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		if err := resp.ReadFrom(answer[4:]); err != nil {
			return 0, err
		}
		if code = resp.ErrorCode; code == 0 {
			return resp.ProducerID, nil
		}
	}
	return 0, fmt.Errorf("InitProducerId is answered by error %d", code)
}

// adaptProducer puts the producer id that was handed out in place of the recorded
// one; ids that were wrong on purpose stay.
func (ids *identities) adaptProducer(req kmsg.Request) {
	f := reflect.ValueOf(req).Elem().FieldByName("ProducerID")
	if !f.IsValid() {
		return
	}
	if id, known := ids.producers[f.Int()]; known {
		f.SetInt(id)
	}
}
