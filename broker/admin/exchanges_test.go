package admin

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/controller/meta"
)

// exchange is one request that was sent to an Apache Kafka 4.3.1, and its answer.
type exchange struct {
	API               string
	Key, Version      int16
	Note              string
	Request, Response string
}

// asked is the configuration of that Kafka.
const asked = `process.roles=broker,controller
node.id=1
broker.rack=rack1
controller.quorum.voters=1@127.0.0.1:29192
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:28192,CONTROLLER://127.0.0.1:29192
advertised.listeners=PLAINTEXT://127.0.0.1:28192
log.dirs=/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// otherwise are the exchanges in which Mainstem answers otherwise, and why.
var otherwise = map[string]string{
	"Metadata: zero topic id and null name":                "42 instead of -1",
	"CreatePartitions: 20000":                              "44 instead of -1",
	"IncrementalAlterConfigs: topic: operation 9":          "42 instead of -1",
	"DescribeTopicPartitions: empty name":                  "17 instead of -1",
	"DescribeConfigs: logger of broker 1, one logger":      "there is one logger, root",
	"IncrementalAlterConfigs: logger: SET level":           "there is one logger, root",
	"IncrementalAlterConfigs: logger: SET bad level":       "there is one logger, root; its levels are checked below",
	"DescribeQuorum: __cluster_metadata 0":                 "epoch and offsets are etcd's",
	"ListConfigResources: version 0 (client metrics only)": "what exists was made by other APIs",
	"ListConfigResources: all types":                       "what exists was made by other APIs",
	"ListConfigResources: topics and groups":               "what exists was made by other APIs",
	"ElectLeaders: preferred, all (null)":                  "what exists was made by other APIs",
	"DescribeLogDirs: all (null)":                          "what exists was made by other APIs",
	"DescribeConfigs: broker 1, all keys":                  "compared with the table of configs in package config",
}

// vary are fields whose values differ from run to run, or that are ours.
var vary = []string{"Version", "ErrorMessage", "TopicID", "Size", "TotalBytes", "UsableBytes", "Dir", "Documentation", "UnknownTags"}

func TestAnswersAreThoseOfKafka(t *testing.T) {
	f, err := os.Open("testdata/exchanges.jsonl")
	require.NoError(t, err)
	defer f.Close()
	w := newWorld(t, asked)
	ids := map[meta.TopicID]meta.TopicID{} // Recorded to ours.
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		var e exchange
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		if e.Response == "" {
			continue // The connection was closed: a matter of package protocol.
		}
		n++
		name := e.API + ": " + e.Note
		req, want := e.decode(t)
		w.learnDeleted(want, ids)
		replaceIDs(reflect.ValueOf(req), ids)
		if e.API != "Metadata" || strings.Contains(e.Note, "300 ms later") {
			w.creator.wg.Wait() // Topics that were asked about have been made by then.
		}
		got := w.ask(req)
		learnIDs(want, got, ids)
		if why := otherwise[name]; why != "" {
			continue
		}
		// Compared as text, in which the order of elements does not count.
		if a, b := plain(want), plain(got); a != b {
			t.Errorf("%s v%d\nKafka    %s\nMainstem %s", name, e.Version, a, b)
		}
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 300, n)
}

func (e *exchange) decode(t *testing.T) (kmsg.Request, kmsg.Response) {
	req := kmsg.RequestForKey(e.Key)
	req.SetVersion(e.Version)
	raw, err := hex.DecodeString(e.Request)
	require.NoError(t, err)
	r := kbin.Reader{Src: raw}
	r.Int16()
	r.Int16()
	r.Int32()
	r.NullableString()
	if req.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	require.NoError(t, req.ReadFrom(r.Src), e.Note)
	resp := req.ResponseKind()
	raw, err = hex.DecodeString(e.Response)
	require.NoError(t, err)
	r = kbin.Reader{Src: raw}
	r.Int32()
	if req.IsFlexible() {
		kmsg.SkipTags(&r)
	}
	require.NoError(t, resp.ReadFrom(r.Src), e.Note)
	return req, resp
}

// replaceIDs puts our topic ids in the place of recorded ones.
func replaceIDs(v reflect.Value, ids map[meta.TopicID]meta.TopicID) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			replaceIDs(v.Elem(), ids)
		}
	case reflect.Slice:
		for i := range v.Len() {
			replaceIDs(v.Index(i), ids)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Name == "TopicID" {
				if ours, ok := ids[f.Interface().(meta.TopicID)]; ok {
					f.Set(reflect.ValueOf(ours))
				}
			} else if f.CanSet() {
				replaceIDs(f, ids)
			}
		}
	}
}

// learnIDs pairs the ids of topics that were created or shown.
func learnIDs(want, got kmsg.Response, ids map[meta.TopicID]meta.TopicID) {
	ours := idsOf(got)
	for name, id := range idsOf(want) {
		if o, ok := ours[name]; ok && id != (meta.TopicID{}) {
			ids[id] = o
		}
	}
}

// learnDeleted pairs the id of a topic that no answer showed before it was deleted.
func (w *world) learnDeleted(want kmsg.Response, ids map[meta.TopicID]meta.TopicID) {
	deleted, ok := want.(*kmsg.DeleteTopicsResponse)
	if !ok {
		return
	}
	for _, t := range deleted.Topics {
		if t.Topic == nil || t.TopicID == (meta.TopicID{}) {
			continue
		}
		if topic := w.store.Image().Topic(*t.Topic); topic != nil {
			ids[t.TopicID] = topic.ID
		}
	}
}

func idsOf(r kmsg.Response) map[string]meta.TopicID {
	m := map[string]meta.TopicID{}
	switch r := r.(type) {
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.Topics {
			m[t.Topic] = t.TopicID
		}
	case *kmsg.MetadataResponse:
		for _, t := range r.Topics {
			if t.Topic != nil {
				m[*t.Topic] = t.TopicID
			}
		}
	}
	delete(m, "")
	return m
}

// plain writes a value so that the order of elements, what varies, and what
// only this Kafka had do not count.
func plain(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		panic(err)
	}
	return text(tree)
}

func text(v any) string {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["Topic"].(string)
		config, _ := v["Name"].(string)
		if strings.HasPrefix(name, "__") && v["Partitions"] != nil || config == "mainstem.durability" {
			return ""
		}
		var fields []string
		for k, f := range v {
			if !slices.Contains(vary, k) {
				fields = append(fields, k+"="+text(f))
			}
		}
		slices.Sort(fields)
		return "{" + strings.Join(fields, " ") + "}"
	case []any:
		var elements []string
		for _, e := range v {
			if s := text(e); s != "" {
				elements = append(elements, s)
			}
		}
		slices.Sort(elements)
		return "[" + strings.Join(elements, "\n") + "]"
	case nil:
		return "[]"
	}
	return fmt.Sprint(v)
}
