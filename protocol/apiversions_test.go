package protocol

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// exchange is a recorded request and its answer, headers included.
type exchange struct {
	key, version      int16
	request, response []byte
}

func recorded(t *testing.T) (all []exchange) {
	f, err := os.Open("testdata/kafka-4.3.1-versions.txt")
	require.NoError(t, err)
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		var e exchange
		var req, resp string
		_, err := fmt.Sscan(sc.Text(), &e.key, &e.version, &req, &resp)
		require.NoError(t, err)
		e.request, err = hex.DecodeString(req)
		require.NoError(t, err)
		e.response, err = hex.DecodeString(resp)
		require.NoError(t, err)
		all = append(all, e)
	}
	require.NoError(t, sc.Err())
	require.NotEmpty(t, all)
	return all
}

// kafkaFeatures are those of the recorded Kafka.
func kafkaFeatures() Features {
	return Features{
		Supported: []SupportedFeature{
			{"group.version", 0, 1},
			{"kraft.version", 0, 1},
			{"metadata.version", 7, 30},
			{"share.version", 0, 1},
			{"streams.version", 0, 1},
			{"transaction.version", 0, 2},
			{"eligible.leader.replicas.version", 0, 1},
		},
		Finalized: []FinalizedFeature{
			{"group.version", 1},
			{"streams.version", 1},
			{"transaction.version", 2},
			{"eligible.leader.replicas.version", 1},
			{"share.version", 1},
			{"metadata.version", 30},
			{"kraft.version", 0},
		},
	}
}

// sortKeys puts the rows of an answer in order, in which alone Kafka's differ.
func sortKeys(v *kmsg.ApiVersionsResponse) *kmsg.ApiVersionsResponse {
	slices.SortFunc(v.ApiKeys, func(a, b kmsg.ApiVersionsResponseApiKey) int { return int(a.ApiKey) - int(b.ApiKey) })
	return v
}

// A server with Kafka's table and features gives Kafka's answers.
func TestApiVersionsAndSaslAnswersAreThoseOfKafka(t *testing.T) {
	exchanges := recorded(t)
	var apis []API
	for _, e := range exchanges {
		if e.key != keyApiVersions || e.version != 0 {
			continue
		}
		table := kmsg.NewPtrApiVersionsResponse()
		require.NoError(t, table.ReadFrom(e.response[4:]))
		for _, k := range table.ApiKeys {
			if k.ApiKey == 17 || k.ApiKey == keyApiVersions || k.ApiKey == 36 {
				continue
			}
			apis = append(apis, API{Key: k.ApiKey, Min: k.MinVersion, Max: k.MaxVersion, Submit: func(*Call) Finish { return nil }})
		}
		break
	}
	require.Len(t, apis, 72)
	features := kafkaFeatures()
	s := serve(t, Options{APIs: apis, Features: func() Features { return features }})
	c := dial(t, s, "PLAINTEXT")
	for _, e := range exchanges {
		if e.key == keyApiVersions {
			features.Epoch = -1
			if want := kmsg.NewPtrApiVersionsResponse(); e.version >= 3 && e.version <= 4 {
				want.Version = e.version
				require.NoError(t, want.ReadFrom(e.response[4:]))
				features.Epoch = want.FinalizedFeaturesEpoch
			}
		}
		c.send(sized(e.request))
		id, got := c.receive()
		require.Equal(t, e.response[:4], i32(id))
		if e.key != keyApiVersions {
			// All but the text, which is ours: tags if any, the code.
			require.Equal(t, e.response[4:7], got[:3], "key %d version %d", e.key, e.version)
			continue
		}
		v := e.version
		if v > 4 {
			v = 0
		}
		want, have := kmsg.NewPtrApiVersionsResponse(), kmsg.NewPtrApiVersionsResponse()
		want.Version, have.Version = v, v
		require.NoError(t, want.ReadFrom(e.response[4:]))
		require.NoError(t, have.ReadFrom(got))
		require.Equal(t, sortKeys(want), sortKeys(have), "version %d", e.version)
		require.Len(t, got, len(e.response)-4, "version %d", e.version)
	}
}

func TestUnknownApiVersionsVersionGetsOneRowWhateverItsBody(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	c := dial(t, s, "PLAINTEXT")
	for _, v := range []int16{5, 127, 0x7fff, -1} {
		c.send(raw(keyApiVersions, v, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3))
		id, b := c.receive()
		require.Equal(t, int32(11), id)
		require.Equal(t, []byte{0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4}, b)
	}
	c.alive()
}

func TestProduceIsAdvertisedFromZero(t *testing.T) {
	s := serve(t, Options{APIs: (&fakeBroker{}).apis()})
	c := dial(t, s, "PLAINTEXT")
	req := kmsg.NewPtrApiVersionsRequest()
	c.send(frameOf(req, 1, "c"))
	resp := c.answer(req, 1).(*kmsg.ApiVersionsResponse)
	require.Equal(t, int16(0), resp.ApiKeys[0].ApiKey)
	require.Equal(t, int16(0), resp.ApiKeys[0].MinVersion)
	require.Equal(t, int16(13), resp.ApiKeys[0].MaxVersion)
}

func TestHiddenAPIIsServedAndNotShown(t *testing.T) {
	apis := (&fakeBroker{}).apis()
	apis[2].Hidden = true
	s := serve(t, Options{APIs: apis})
	c := dial(t, s, "PLAINTEXT")
	c.alive()
	req := kmsg.NewPtrApiVersionsRequest()
	c.send(frameOf(req, 1, "c"))
	for _, k := range c.answer(req, 1).(*kmsg.ApiVersionsResponse).ApiKeys {
		require.NotEqual(t, int16(3), k.ApiKey)
	}
}

func TestSoftwareNamesAreChecked(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "apache-kafka-java": true, "4.3.1": true, "A9": true, "a..b": true,
		"": false, "-a": false, "a-": false, ".a": false, "a.": false, "a b": false, "ä": false, "a_b": false, "-": false,
	} {
		require.Equal(t, ok, softwareName(name), name)
	}
	s := serve(t, Options{APIs: []API{{Key: 3, Min: 0, Max: 13, Submit: func(c *Call) Finish {
		name, version := c.Conn.Software()
		resp := c.Request.ResponseKind().(*kmsg.MetadataResponse)
		resp.ClusterID = kmsg.StringPtr(name + "/" + version)
		return c.Answer(resp)
	}}}})
	c := dial(t, s, "PLAINTEXT")
	bad := kmsg.NewPtrApiVersionsRequest()
	bad.Version, bad.ClientSoftwareName, bad.ClientSoftwareVersion = 3, "a b", "1"
	c.send(frameOf(bad, 1, "c"))
	resp := c.answer(bad, 1).(*kmsg.ApiVersionsResponse)
	require.Equal(t, kerr.InvalidRequest.Code, resp.ErrorCode)
	require.Empty(t, resp.ApiKeys)
	good := kmsg.NewPtrApiVersionsRequest()
	good.Version, good.ClientSoftwareName, good.ClientSoftwareVersion = 3, "test-client", "1.2"
	c.send(frameOf(good, 2, "c"))
	c.answer(good, 2)
	c.send(frameOf(metadataOf(9), 3, "c"))
	require.Equal(t, "test-client/1.2", *c.answer(metadataOf(9), 3).(*kmsg.MetadataResponse).ClusterID)
}

func TestTablesThatContradictThemselvesAreRefused(t *testing.T) {
	submit := func(*Call) Finish { return nil }
	for name, apis := range map[string][]API{
		"twice":                {{Key: 3, Max: 1, Submit: submit}, {Key: 3, Max: 1, Submit: submit}},
		"no handler":           {{Key: 3, Max: 1}},
		"unknown key":          {{Key: 4711, Submit: submit}},
		"beyond kmsg":          {{Key: 3, Max: 99, Submit: submit}},
		"upside down":          {{Key: 3, Min: 2, Max: 1, Submit: submit}},
		"answered here anyway": {{Key: 18, Submit: submit}},
	} {
		_, err := Listen(Options{APIs: apis})
		require.ErrorIs(t, err, ErrAPITable, name)
	}
}
