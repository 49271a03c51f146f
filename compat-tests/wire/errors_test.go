package wire

import (
	"encoding/binary"
	"encoding/csv"
	"errors"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// answerRow is a row of the list of codes that Apache Kafka 4.3.1 gave: what was
// sent, where in the answer a code stood, and which.
type answerRow struct {
	api     string
	version int16
	input   string
	where   string
	code    string
}

// answerRows reads the list. What is said about frames alone is left to the
// tests of the protocol.
func answerRows(t *testing.T) (rows []answerRow) {
	t.Helper()
	f, err := os.Open("testdata/kafka-4.3.1-errors.tsv")
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	all, err := r.ReadAll()
	require.NoError(t, err)
	for _, cells := range all[1:] {
		version, err := strconv.ParseInt(cells[1], 10, 16)
		require.NoError(t, err)
		if cells[0] != "(frame)" {
			rows = append(rows, answerRow{cells[0], int16(version), cells[2], cells[3], cells[4]})
		}
	}
	return rows
}

// Inputs of the rows that no exchange was recorded for: versions and whole APIs that
// a broker does not serve.
const (
	outside   = "version outside the range"
	notServed = "API not served on the broker listener, version 0"
	// layout0 is ApiVersions of an unknown version, which is a field case.
	layout0 = "version above the range"
)

// TestEveryListedAnswerIsReplayed holds the list of codes against the recording:
// each was recorded, so TestRecordedExchanges asks for it, or is a version that is
// not served, which is asked for here.
func TestEveryListedAnswerIsReplayed(t *testing.T) {
	exchanges, err := Recorded()
	require.NoError(t, err)
	byInput := map[answerRow][]*Exchange{}
	keys := map[string]int16{}
	for key := range kmsg.MaxKey + 1 {
		keys[strings.ToLower(kmsg.NameForKey(int16(key)))] = int16(key)
	}
	for i := range exchanges {
		e := &exchanges[i]
		at := answerRow{api: e.API, version: e.Version, input: e.Note}
		byInput[at] = append(byInput[at], e)
		keys[strings.ToLower(e.API)] = e.Key
	}
	node := harness.Start(t)
	refused := 0
	for _, r := range answerRows(t) {
		switch {
		case r.input == layout0:
			continue
		case r.input == outside || r.input == notServed || strings.HasPrefix(r.api, "key "):
			key, ok := keys[strings.ToLower(r.api)]
			if number, unnamed := strings.CutPrefix(r.api, "key "); unnamed {
				n, err := strconv.ParseInt(number, 10, 16)
				key, ok = int16(n), err == nil
			}
			require.True(t, ok, r.api)
			assert.True(t, closes(t, node.Address, key, r.version), "%s version %d", r.api, r.version)
			refused++
			continue
		}
		answers := byInput[answerRow{api: r.api, version: r.version, input: r.input}]
		recorded := false
		for _, e := range answers {
			recorded = recorded || says(t, e, r)
		}
		assert.True(t, recorded, "%s version %d, %s: no exchange has %s at %s", r.api, r.version, r.input, r.code, r.where)
	}
	assert.Greater(t, refused, 80)
}

// says tells whether an exchange's answer is what the row says.
func says(t *testing.T, e *Exchange, r answerRow) bool {
	t.Helper()
	if e.Outcome != "" {
		return strings.HasPrefix(r.where, e.Outcome)
	}
	want, err := strconv.ParseInt(r.code, 10, 16)
	require.NoError(t, err, "%s", e)
	resp, err := decodeResponse(e, e.Response)
	if err != nil {
		return true // Of a kind that cannot be decoded here; the replay compares its bytes.
	}
	found := map[int64]bool{}
	codes(reflect.ValueOf(resp), found)
	if r.where == "everywhere" {
		return len(found) == 0 || len(found) == 1 && found[want]
	}
	return found[want]
}

// codes collects the error codes in an answer.
func codes(v reflect.Value, into map[int64]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			codes(v.Elem(), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			codes(v.Index(i), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case f.PkgPath != "":
			case strings.HasSuffix(f.Name, "ErrorCode") && v.Field(i).Kind() == reflect.Int16:
				into[v.Field(i).Int()] = true
			default:
				codes(v.Field(i), into)
			}
		}
	}
}

// closes sends an empty request and tells whether the broker hangs up on it.
func closes(t *testing.T, address string, key, version int16) bool {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, answerWithin)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(answerWithin)))
	b := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 10}, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 7)
	b = binary.BigEndian.AppendUint16(b, 0xffff)
	_, err = conn.Write(b)
	require.NoError(t, err)
	n, err := conn.Read(make([]byte, 1))
	return n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}
