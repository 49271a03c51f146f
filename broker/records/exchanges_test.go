package records

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
)

// exchange is a request to Apache Kafka 4.3.1 and what it answered, in hex, without
// the frame's length.
type exchange struct {
	API      string `json:"api"`
	Key      int16  `json:"key"`
	Version  int16  `json:"version"`
	Note     string `json:"note"`
	Request  string `json:"request"`
	Response string `json:"response"`
	Outcome  string `json:"outcome"`
}

// deviations are the notes of exchanges in which the answer is meant to differ.
func deviations() map[string]string {
	return map[string]string{
		"null records":               "Kafka never answers; 87",
		"codec 5 (none such)":        "-1 in Kafka, which is a fault of the client; 87",
		"codec 7 (none such)":        "the same",
		"gzip bit on plain bytes":    "the same",
		"snappy bit on junk":         "the same",
		"lz4 bit on junk":            "the same",
		"zstd bit on junk":           "the same",
		"key length -5":              "Kafka stores it; 87",
		"gzip: record length 2^31-1": "Kafka stores it; 87",
	}
}

func recordedExchanges(t testing.TB) (out []exchange) {
	f, err := os.Open("testdata/exchanges.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e exchange
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		out = append(out, e)
	}
	require.NoError(t, lines.Err())
	return out
}

func topicID(t testing.TB, s string) (id meta.TopicID) {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	require.Equal(t, len(id), copy(id[:], b))
	return id
}

// TestAnswersAreThoseOfKafka replays requests that were recorded with Kafka, by a
// real connection, and compares the answers field by field. Offsets are compared by
// sign, since batches that Kafka stores and Mainstem refuses shift them.
func TestAnswersAreThoseOfKafka(t *testing.T) {
	r := newRig(t)
	r.Create(
		replicatest.Topic{Name: "wire", Partitions: 2, ID: topicID(t, "699d8e4c333b49949d322191df3c46d9")},
		replicatest.Topic{Name: "wire2", ID: topicID(t, "5818059c2f5b4fcdb52ca16078b2948d")},
		replicatest.Topic{Name: "wirec", ID: topicID(t, "147572f0e04448c8a192216b335dbe5a"), Configs: map[string]string{"cleanup.policy": "compact"}},
		replicatest.Topic{Name: "wirelat", ID: topicID(t, "56756af1c9d847dbb89a17c59a7daafe"), Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}},
		replicatest.Topic{Name: "wiregz", ID: topicID(t, "91b8a219226c497da83c844f9c85b7ba"), Configs: map[string]string{"compression.type": "gzip"}},
		replicatest.Topic{Name: "wiresmall", ID: topicID(t, "a5093098fd9c408fb07056e7948d405d"), Configs: map[string]string{"max.message.bytes": "200"}},
		replicatest.Topic{Name: "wiredef", ID: topicID(t, "8d706cb500cb466a9176ea59c8969699")},
		replicatest.Topic{Name: "__consumer_offsets", Partitions: 50},
	)
	differ := deviations()
	sessions := make(map[int32]int32)
	c := r.dial()
	for _, e := range recordedExchanges(t) {
		request, err := hex.DecodeString(e.Request)
		require.NoError(t, err)
		for kafkas, ours := range sessions {
			request = bytes.ReplaceAll(request, binary.BigEndian.AppendUint32(nil, uint32(kafkas)), binary.BigEndian.AppendUint32(nil, uint32(ours)))
		}
		if e.API == "Fetch" {
			// Kafka's partition ends at 36; here some batches less are stored.
			p := r.Partition("wire", 0)
			require.Eventually(t, func() bool { return p.HighWatermark() == p.Log().End() }, 10*time.Second, time.Millisecond,
				"what came with acks=0 is not committed")
			end := uint64(p.HighWatermark())
			request = bytes.ReplaceAll(request, binary.BigEndian.AppendUint64(nil, 36), binary.BigEndian.AppendUint64(nil, end))
		}
		c.write(request)
		switch {
		case e.Outcome == "connection closed":
			_, err := c.read()
			require.ErrorIs(t, err, errClosed, "%s v%d %s", e.API, e.Version, e.Note)
			c = r.dial()
			continue
		case e.Outcome == "no answer" && e.Note != "null records":
			continue // The next answer has the next correlation id, or the test fails.
		}
		body, err := c.read()
		require.NoError(t, err, "%s v%d %s", e.API, e.Version, e.Note)
		require.Equal(t, request[4:8], body[:4], "%s v%d %s: correlation id", e.API, e.Version, e.Note)
		got := parse(t, e, body)
		if why, known := differ[e.Note]; known {
			requireDeviation(t, e, got, why)
			continue
		}
		response, err := hex.DecodeString(e.Response)
		require.NoError(t, err)
		want := parse(t, e, response)
		if w, ok := want.(*kmsg.FetchResponse); ok && w.SessionID != 0 {
			g := got.(*kmsg.FetchResponse)
			require.NotZero(t, g.SessionID, "%s v%d %s", e.API, e.Version, e.Note)
			sessions[w.SessionID] = g.SessionID
		}
		normalize(reflect.ValueOf(want))
		normalize(reflect.ValueOf(got))
		require.Equal(t, want, got, "%s v%d %s", e.API, e.Version, e.Note)
	}
}

func parse(t *testing.T, e exchange, body []byte) kmsg.Response {
	t.Helper()
	req := kmsg.RequestForKey(e.Key)
	req.SetVersion(e.Version)
	resp := req.ResponseKind()
	body = body[4:]
	if req.IsFlexible() {
		body = body[1:]
	}
	require.NoError(t, resp.ReadFrom(body), "%s v%d %s", e.API, e.Version, e.Note)
	return resp
}

// requireDeviation holds what is answered instead of what Kafka answers.
func requireDeviation(t *testing.T, e exchange, got kmsg.Response, why string) {
	t.Helper()
	switch g := got.(type) {
	case *kmsg.ProduceResponse:
		require.EqualValues(t, 87, g.Topics[0].Partitions[0].ErrorCode, "%s: %s", e.Note, why)
	case *kmsg.InitProducerIDResponse:
		require.EqualValues(t, 15, g.ErrorCode, "%s: %s", e.Note, why)
	default:
		t.Fatalf("%s: %s", e.Note, why)
	}
}

// normalize leaves of what depends on the run only whether it is there.
func normalize(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			normalize(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.Struct {
				normalize(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if !v.Type().Field(i).IsExported() {
				continue
			}
			switch name := v.Type().Field(i).Name; name {
			case "BaseOffset", "LogAppendTime", "HighWatermark", "LastStableOffset", "Offset", "Timestamp", "EndOffset", "LowWatermark", "ProducerID":
				f.SetInt(sign(f.Int()))
			case "SessionID":
				if f.Int() != 0 {
					f.SetInt(1)
				}
			case "RecordBatches":
				if f.Len() > 0 {
					f.SetBytes([]byte("some"))
				}
			case "ErrorMessage":
				if !f.IsNil() {
					f.Elem().SetString("text")
				}
			default:
				normalize(f)
			}
		}
	}
}

// sign is -1 for what is not there, 0 for what is.
func sign(v int64) int64 {
	if v < 0 {
		return -1
	}
	return 0
}
