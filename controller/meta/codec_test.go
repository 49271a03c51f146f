package meta

import (
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var (
	idA = TopicID{0: 0xa, 15: 1}
	idB = TopicID{0: 0xb, 15: 2}
)

func bigChunk() []Partition {
	return []Partition{
		{Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}, Leader: 1, base: 5, LeaderEpoch: 5, PartitionEpoch: 7},
		{Replicas: []int32{1, 2, 3}, ISR: []int32{2}, Leader: 2, base: -4, LeaderEpoch: -4},
		{Replicas: []int32{3, 1}, ISR: []int32{3, 1}, Leader: -1, Adding: []int32{1}, Removing: []int32{3, 2147483647}},
	}
}

// goldens are the values of this version; their bytes never change.
func goldens() map[string][]byte {
	return map[string][]byte{
		"cluster":  EncodeCluster("MkU3OEVBNTcwNTJENDM2Qg"),
		"topic":    EncodeTopic(TopicRecord{Name: "orders.v1", ID: idA, Partitions: 9999}),
		"internal": EncodeTopic(TopicRecord{Name: "__consumer_offsets", ID: idB, Internal: true, Partitions: 50}),
		"parts":    EncodeChunk(bigChunk()),
		"configs":  EncodeConfigs(map[string]string{"retention.ms": "-1", "cleanup.policy": "compact", "empty": ""}),
		"broker": EncodeBroker(&Broker{
			ID: 1, Incarnation: idB, Rack: "r1", CleanlyStopped: true,
			Listeners: []Endpoint{{"PLAINTEXT", "::1", 9092, "PLAINTEXT"}, {"OUT", "b1.example", 65535, "SSL"}},
		}),
		"live":      EncodeLive(Live{Incarnation: idA, Owner: "boot:1:2"}),
		"number":    EncodeNumber(math.MaxInt64),
		"quotas":    EncodeQuotas(map[string]float64{"producer_byte_rate": 1 << 20, "request_percentage": 12.5}),
		"tombstone": EncodeTombstone(Tombstone{ID: idA, Name: "gone", Holders: []int32{0, 7}}),
	}
}

func TestValuesOfEveryShippedVersionStayReadable(t *testing.T) {
	for name, b := range goldens() {
		file := filepath.Join("testdata", name+".v1.hex")
		if *rewrite {
			require.NoError(t, os.WriteFile(file, []byte(hex.EncodeToString(b)+"\n"), 0o644))
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(text)), hex.EncodeToString(b), name)
	}
	g := goldens()
	id, err := DecodeCluster(g["cluster"])
	require.NoError(t, err)
	require.Equal(t, "MkU3OEVBNTcwNTJENDM2Qg", id)
	topic, err := DecodeTopic(g["internal"])
	require.NoError(t, err)
	require.Equal(t, TopicRecord{Name: "__consumer_offsets", ID: idB, Internal: true, Partitions: 50}, topic)
	parts, err := DecodeChunk(g["parts"])
	require.NoError(t, err)
	require.Equal(t, bigChunk(), parts)
	configs, err := DecodeConfigs(g["configs"])
	require.NoError(t, err)
	require.Equal(t, map[string]string{"retention.ms": "-1", "cleanup.policy": "compact", "empty": ""}, configs)
	b, err := DecodeBroker(g["broker"])
	require.NoError(t, err)
	require.Equal(t, Endpoint{"OUT", "b1.example", 65535, "SSL"}, b.Listeners[1])
	require.True(t, b.CleanlyStopped)
	live, err := DecodeLive(g["live"])
	require.NoError(t, err)
	require.Equal(t, Live{Incarnation: idA, Owner: "boot:1:2"}, live)
	stone, err := DecodeTombstone(idA, g["tombstone"])
	require.NoError(t, err)
	require.Equal(t, Tombstone{ID: idA, Name: "gone", Holders: []int32{0, 7}}, stone)
	quotas, err := DecodeQuotas(g["quotas"])
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"producer_byte_rate": 1 << 20, "request_percentage": 12.5}, quotas)
	n, err := DecodeNumber("n", g["number"], math.MaxInt64)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, n)
}

// decoders read any value of their kind.
func decoders() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		"cluster":   func(b []byte) error { _, err := DecodeCluster(b); return err },
		"topic":     func(b []byte) error { _, err := DecodeTopic(b); return err },
		"parts":     func(b []byte) error { _, err := DecodeChunk(b); return err },
		"configs":   func(b []byte) error { _, err := DecodeConfigs(b); return err },
		"broker":    func(b []byte) error { _, err := DecodeBroker(b); return err },
		"live":      func(b []byte) error { _, err := DecodeLive(b); return err },
		"number":    func(b []byte) error { _, err := DecodeNumber("n", b, math.MaxInt64); return err },
		"quotas":    func(b []byte) error { _, err := DecodeQuotas(b); return err },
		"tombstone": func(b []byte) error { _, err := DecodeTombstone(idA, b); return err },
	}
}

func TestNewerVersionAsksForAnUpgradeAndDamageIsCorrupt(t *testing.T) {
	for name, decode := range decoders() {
		b := goldens()[name]
		require.NoError(t, decode(b), name)

		newer := append([]byte{2}, b[1:]...)
		var tooNew *TooNewError
		require.ErrorAs(t, decode(newer), &tooNew, name)
		require.Equal(t, 2, tooNew.Version)
		require.ErrorContains(t, tooNew, "upgrade this one first")

		require.ErrorIs(t, decode(append([]byte{0}, b[1:]...)), ErrCorrupt, name)
		require.ErrorIs(t, decode(append(b[:len(b):len(b)], 0)), ErrCorrupt, name)
		for n := range len(b) {
			require.ErrorIs(t, decode(b[:n]), ErrCorrupt, "%s cut at %d", name, n)
		}
	}
}

func TestNewerLayoutAsksForAnUpgrade(t *testing.T) {
	w := newWriter(8)
	w.uv(layoutVersion + 1)
	w.str("whatever comes then")
	_, err := DecodeCluster(w.b)
	var tooNew *TooNewError
	require.ErrorAs(t, err, &tooNew)
	require.Equal(t, "the key layout", tooNew.What)
}

func TestChunkOfEqualPartitionsIsSmallAndShared(t *testing.T) {
	parts := make([]Partition, ChunkPartitions)
	for i := range parts {
		parts[i] = Partition{Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}, Leader: 1}
	}
	b := EncodeChunk(parts)
	require.Less(t, len(b), 4*ChunkPartitions)
	out, err := DecodeChunk(b)
	require.NoError(t, err)
	require.Equal(t, parts, out)
	require.Same(t, &out[0].Replicas[0], &out[127].ISR[0])
}

func TestKeysReadBack(t *testing.T) {
	k := Keys{}
	for key, want := range map[string]parsedKey{
		k.Cluster():                                      {kind: kindCluster},
		k.Topic("a.b_c"):                                 {kind: kindTopic, name: "a_b_c"},
		k.Chunk(idA, 300):                                {kind: kindChunk, id: idA, chunk: 300},
		k.TopicConfigs(idB):                              {kind: kindTopicConfigs, id: idB},
		k.Configs(Resource{ResourceBroker, ""}):          {kind: kindConfigs, resource: Resource{ResourceBroker, ""}},
		k.Configs(Resource{ResourceGroup, "g/ü\x00"}):    {kind: kindConfigs, resource: Resource{ResourceGroup, "g/ü\x00"}},
		k.Configs(Resource{ResourceClientMetrics, "cm"}): {kind: kindConfigs, resource: Resource{ResourceClientMetrics, "cm"}},
		k.Broker(0):                                      {kind: kindBroker, node: 0},
		k.Live(math.MaxInt32):                            {kind: kindLive, node: math.MaxInt32},
		k.Openings(3):                                    {kind: kindOpenings, node: 3},
		k.Deleted(idA):                                   {kind: kindDeleted, id: idA},
		k.ProducerIDs():                                  {kind: kindProducerIDs},
		k.Feature("metadata.v"):                          {kind: kindFeature, name: "metadata.v"},
		"1/acls/later":                                   {},
		"2/topics/x":                                     {},
		"1/parts/short/000000":                           {},
		"1/live/-000000001":                              {},
		"1/brokers/99999999999":                          {},
		"1/configs/nothing":                              {},
		"1/configs/2/notanid":                            {},
		"1/deleted/notanid":                              {},
		k.Parts(idA) + "zzzzzz":                          {},
		k.Parts(idA) + "0000000":                         {},
	} {
		require.Equal(t, want, parseKey(key), key)
	}
}

func TestTopicNames(t *testing.T) {
	for name, legal := range map[string]bool{
		"a": true, "A-z_0.9": true, strings.Repeat("x", 249): true, "...": true, "__consumer_offsets": true,
		"": false, ".": false, "..": false, strings.Repeat("x", 250): false, "a b": false, "a/b": false, "ä": false, "a\x00": false,
	} {
		require.Equal(t, legal, LegalTopicName(name), "%q", name)
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range goldens() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, decode := range decoders() {
			err := decode(b)
			var tooNew *TooNewError
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.As(err, &tooNew) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if parts, err := DecodeChunk(b); err == nil {
			again, err := DecodeChunk(EncodeChunk(parts))
			require.NoError(t, err)
			require.Equal(t, parts, again)
		}
	})
}
