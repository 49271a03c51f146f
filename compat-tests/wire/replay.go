// Package wire replays the recorded exchanges of an Apache Kafka 4.3.1 against
// another broker and compares the answers field by field.
//
// Requests are sent in the order of the recording. What a broker hands out
// (topic ids, fetch session ids, producer ids) is learnt from its answers and
// put in place of the recorded values in later requests; times are moved to now.
// A correlation id that does not continue the one before opens a new connection.
// Fields that vary from run to run are compared for presence only; differences
// that stay for a reason are listed in differences.tsv.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Options choose what is replayed.
type Options struct {
	// Address is the broker under test.
	Address string
	// Beside, if set, is a second broker: its answers take the place of the
	// recorded ones.
	Beside string
	// Serves tells whether an exchange is to be replayed.
	Serves func(*Exchange) bool
	// Settle is waited after an exchange that changes topics, for brokers whose
	// metadata reaches the log layer later.
	Settle time.Duration
	// Progress, if set, is called before each exchange.
	Progress func(*Exchange)
}

// Outcomes that are no answer.
const (
	closed   = "connection closed"
	noAnswer = "no answer"
)

const (
	answerWithin  = 20 * time.Second
	silenceWithin = 400 * time.Millisecond
	// patience is for coordinators that are still being made.
	patience = 5 * time.Second
)

// Replay sends the exchanges and returns how many were sent and every difference.
func Replay(exchanges []Exchange, o Options) (sent int, found []Difference, err error) {
	target := newSide(o.Address)
	defer target.hangUp()
	var beside *side
	if o.Beside != "" {
		beside = newSide(o.Beside)
		defer beside.hangUp()
	}
	for i := range exchanges {
		e := &exchanges[i]
		if !o.Serves(e) {
			continue
		}
		if o.Progress != nil {
			o.Progress(e)
		}
		diffs, err := step(e, target, beside)
		if err != nil {
			return sent, found, fmt.Errorf("%s: %w", e, err)
		}
		if instead, refused := standIns[e.Note]; refused && e.API == "Produce" {
			if err := target.standIn(e, exchanges, instead); err != nil {
				return sent, found, fmt.Errorf("in place of %s: %w", e, err)
			}
		}
		sent++
		found = append(found, diffs...)
		if o.Settle > 0 && changesTopics(e.Key) {
			time.Sleep(o.Settle)
		}
	}
	return sent, found, nil
}

func changesTopics(key int16) bool {
	const metadata, findCoordinator, createTopics, deleteTopics, createPartitions = 3, 10, 19, 20, 37
	return key == metadata || key == findCoordinator || key == createTopics || key == deleteTopics || key == createPartitions
}

// step sends one exchange to the broker under test, and to the one beside it.
func step(e *Exchange, target, beside *side) ([]Difference, error) {
	got, gotOutcome, err := target.exchange(e)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); asksToWait(e, got) && !asksToWait(e, e.Response); {
		if target.hopeless[e.Key] || time.Now().After(deadline) {
			target.hopeless[e.Key] = true // Once is enough to see that it never comes.
			break
		}
		time.Sleep(100 * time.Millisecond)
		if got, gotOutcome, err = target.exchange(e); err != nil {
			return nil, err
		}
	}
	want, wantOutcome := e.Response, e.Outcome
	if beside != nil {
		if want, wantOutcome, err = beside.exchange(e); err != nil {
			return nil, fmt.Errorf("broker beside: %w", err)
		}
		beside.learn(e, want)
	}
	target.learn(e, got)
	if wantOutcome != gotOutcome {
		return []Difference{{e, "outcome", outcome(wantOutcome), outcome(gotOutcome)}}, nil
	}
	if wantOutcome != "" {
		return nil, nil
	}
	wantResp, err := decodeResponse(e, want)
	if err != nil {
		return nil, fmt.Errorf("Kafka's answer: %w", err)
	}
	gotResp, err := decodeResponse(e, got)
	if err != nil {
		return []Difference{{e, "layout", "decodes", err.Error()}}, nil
	}
	ids := target.ids
	if beside != nil {
		ids = target.ids.beside(beside.ids)
		ids.learn(reflect.ValueOf(wantResp), reflect.ValueOf(gotResp))
	}
	c := comparer{ids: ids, about: e}
	c.compare("", reflect.ValueOf(wantResp), reflect.ValueOf(gotResp))
	return c.found, nil
}

// asksToWait tells whether an answer says that a coordinator is still being made
// or loaded, which the recording has waited for.
func asksToWait(e *Exchange, raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	resp, err := decodeResponse(e, raw)
	return err == nil && hasCode(reflect.ValueOf(resp), 14, 15, 16)
}

// hasCode tells whether an answer has one of some error codes anywhere.
func hasCode(v reflect.Value, codes ...int64) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && hasCode(v.Elem(), codes...)
	case reflect.Slice:
		for i := range v.Len() {
			if hasCode(v.Index(i), codes...) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Name == "ErrorCode" && slices.Contains(codes, f.Int()) || hasCode(f, codes...) {
				return true
			}
		}
	}
	return false
}

func outcome(s string) string {
	if s == "" {
		return "an answer"
	}
	return s
}

// standIns name, for records that Kafka takes although they are damaged and that
// are refused here, a good request with as many records, which is sent in their
// place: offsets then go on as in the recording.
var standIns = map[string]string{
	"key length -5":              "timestamp 0",
	"gzip: record length 2^31-1": "timestamp 0",
}

func (s *side) standIn(e *Exchange, exchanges []Exchange, note string) error {
	for i := range exchanges {
		good := exchanges[i]
		if good.Key != e.Key || good.Version != e.Version || good.Note != note {
			continue
		}
		other := newSide(s.address)
		other.ids, other.introduced = s.ids, s.introduced
		defer other.hangUp()
		_, outcome, err := other.exchange(&good)
		if err == nil && outcome != "" {
			err = errors.New(outcome)
		}
		return err
	}
	return fmt.Errorf("no exchange %q", note)
}

// side is one broker and the connection in use.
type side struct {
	address string
	ids     *identities
	conn    net.Conn
	last    int32
	// hopeless are the APIs whose coordinator did not come.
	hopeless map[int16]bool
	// introduced are the transactional ids whose producers are known.
	introduced map[string]bool
}

func newSide(address string) *side {
	return &side{address: address, ids: newIdentities(), hopeless: map[int16]bool{}, introduced: map[string]bool{}}
}

func (s *side) hangUp() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// learn remembers the identities in an answer; what cannot be decoded has none.
func (s *side) learn(e *Exchange, raw []byte) {
	if len(raw) == 0 || len(e.Response) == 0 {
		return
	}
	want, err := decodeResponse(e, e.Response)
	if err != nil {
		return
	}
	got, err := decodeResponse(e, raw)
	if err != nil {
		return
	}
	s.ids.learn(reflect.ValueOf(want), reflect.ValueOf(got))
}

// exchange sends one request and reads its answer.
func (s *side) exchange(e *Exchange) (answer []byte, outcome string, err error) {
	if err := s.introduce(e); err != nil {
		return nil, "", err
	}
	if s.conn == nil || e.Correlation() != s.last+1 {
		s.hangUp()
		if s.conn, err = net.DialTimeout("tcp", s.address, answerWithin); err != nil {
			return nil, "", err
		}
	}
	s.last = e.Correlation()
	if strings.Contains(e.Note, "ms later") || strings.Contains(e.Note, "after completion") ||
		strings.Contains(e.Note, "after the transaction ended") {
		time.Sleep(silenceWithin) // The recording waited here for what the request before has started.
	}
	req := s.ids.adapt(e)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(req)))
	if _, err = s.conn.Write(append(frame, req...)); err != nil {
		s.hangUp()
		return nil, closed, nil
	}
	wait := answerWithin
	if e.Outcome == noAnswer {
		wait = silenceWithin
	}
	if err = s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, "", err
	}
	answer, err = readFrame(s.conn)
	switch {
	case err == nil && e.Outcome != noAnswer && int32(binary.BigEndian.Uint32(answer)) != e.Correlation():
		return nil, "", fmt.Errorf("answer has correlation id %x", answer[:4])
	case err == nil:
		return answer, "", nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		if e.Outcome != noAnswer || !acksNone(e) {
			s.hangUp() // a late answer must not meet the next request
		}
		return nil, noAnswer, nil
	default:
		s.hangUp()
		return nil, closed, nil
	}
}

// acksNone tells a produce without acknowledgement: its silence is its answer.
func acksNone(e *Exchange) bool { return e.Key == 0 && e.Version < 13 }

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	const most = 128 << 20
	if n < 4 || n > most {
		return nil, fmt.Errorf("answer claims %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
