package quotas

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

func TestAProducerKeepsToItsRate(t *testing.T) {
	t.Parallel()
	node := start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	set(t, node, "client-id=p", "producer_byte_rate", 1e6)
	free, none := client(t, node, "other")
	send(t, free, "t", 60)
	require.Zero(t, none.count.Load(), "others are not throttled")
	cl, told := client(t, node, "p")
	begin := time.Now()
	send(t, cl, "t", 60)
	require.GreaterOrEqual(t, time.Since(begin), 3*time.Second, "6 MB at 1 MB/s, of which 2 MB may come at once")
	require.NotZero(t, told.count.Load())
	require.NotZero(t, node.Metric(t, "kafka_server_quota_byte_rate", `resource="Produce"`, `clientId="p"`))
	require.NotZero(t, node.Metric(t, "kafka_server_quota_throttle_time", `resource="Produce"`, `clientId="p"`))
}

func TestConnectionsOfOneClientIDShareItsRate(t *testing.T) {
	t.Parallel()
	node := start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	set(t, node, "client-id", "producer_byte_rate", 1e6)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 2 {
		cl, _ := client(t, node, "shared")
		wg.Go(func() { send(t, cl, "t", 30) })
	}
	for i := range 3 {
		cl, told := client(t, node, fmt.Sprint("alone ", i))
		send(t, cl, "t", 15)
		require.Zero(t, told.count.Load(), "each other id has a rate of its own")
	}
	wg.Wait()
	require.GreaterOrEqual(t, time.Since(begin), 3*time.Second)
}

func TestAConsumerKeepsToItsRateAndMissesNothing(t *testing.T) {
	t.Parallel()
	node := start(t)
	frames.Dial(t, node.Address).Create(3, "t")
	writer, _ := client(t, node, "writer")
	send(t, writer, "t", 45)
	set(t, node, "client-id=c", "consumer_byte_rate", 1e6)
	for name, opts := range map[string][]kgo.Opt{"sessions": nil, "no sessions": {kgo.DisableFetchSessions()}} {
		t.Run(name, func(t *testing.T) {
			cl, told := client(t, node, "c", append(opts, kgo.ConsumeTopics("t"), kgo.FetchMaxWait(time.Second))...)
			begin := time.Now()
			seen := map[string]bool{}
			for len(seen) < 45 {
				got := cl.PollFetches(limited(t))
				require.NoError(t, got.Err())
				got.EachRecord(func(r *kgo.Record) {
					at := fmt.Sprint(r.Partition, "/", r.Offset)
					require.False(t, seen[at], at)
					seen[at] = true
				})
			}
			require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
			require.NotZero(t, told.count.Load())
		})
	}
}

func TestAClientThatDoesNotWaitIsHeld(t *testing.T) {
	t.Parallel()
	node := start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	set(t, node, "client-id", "producer_byte_rate", 1e5)
	batch := frames.NewBatch(frames.Values(string(make([]byte, recordBytes)))...).Seal()
	for _, version := range []int16{3, 5, 9} {
		c := frames.DialAs(t, node.Address, fmt.Sprint("v", version))
		begin := time.Now()
		throttled := time.Duration(0)
		for range 5 { // At once, without a look at the answers.
			c.Send(frames.Produce(version, 1, "t", batch))
		}
		for i := range int32(5) {
			req := frames.Produce(version, 1, "t", batch)
			resp := frames.Receive[*kmsg.ProduceResponse](c, req, i+1)
			require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
			if i < 4 {
				throttled += time.Duration(resp.ThrottleMillis) * time.Millisecond
			}
		}
		require.GreaterOrEqual(t, throttled, 2*time.Second)
		require.GreaterOrEqual(t, time.Since(begin), throttled, "version %d", version)
	}
}

func TestUnacknowledgedProducesAreHeldToo(t *testing.T) {
	t.Parallel()
	node := start(t)
	c := frames.DialAs(t, node.Address, "c")
	c.Create(1, "t")
	set(t, node, "client-id=c", "producer_byte_rate", 1e5)
	batch := frames.NewBatch(frames.Values(string(make([]byte, recordBytes)))...).Seal()
	begin := time.Now()
	for range 5 {
		c.Send(frames.Produce(9, 0, "t", batch))
	}
	require.GreaterOrEqual(t, c.End("t", 0), int64(4), "this is looked at after the produces")
	require.Eventually(t, func() bool { return c.End("t", 0) == 5 }, frames.Patience, 10*time.Millisecond, "the last is committed later")
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
}

func TestPrecedenceOfEntities(t *testing.T) {
	t.Parallel()
	node := start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	const tight, wide = 1, 1e9
	// Each is stronger than those before it.
	for i, entity := range []string{
		"client-id", "client-id=c", "user", "user,client-id", "user,client-id=c", "user=ANONYMOUS", "user=ANONYMOUS,client-id", "user=ANONYMOUS,client-id=c",
	} {
		rate := [2]float64{tight, wide}[i%2]
		set(t, node, entity, "producer_byte_rate", rate)
		require.Equal(t, rate == tight, produce(t, node, "c", "t") > 0, entity)
	}
	require.NotZero(t, produce(t, node, "another", "t"), "user and any client id")
	set(t, node, "user=ANONYMOUS,client-id", "producer_byte_rate", 0)
	require.Zero(t, produce(t, node, "another", "t"), "the user")
	set(t, node, "user=somebody", "producer_byte_rate", tight)
	require.Zero(t, produce(t, node, "another", "t"), "another user's quota is no matter")
}

func TestQuotasHoldAtOnceAndSurviveRestarts(t *testing.T) {
	t.Parallel()
	node := start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	require.Zero(t, produce(t, node, "c", "t"))
	set(t, node, "client-id=c", "producer_byte_rate", 1)
	require.NotZero(t, produce(t, node, "c", "t"))
	for name, stop := range map[string]func(){"stop": func() { require.NoError(t, node.Stop()) }, "kill": node.Kill} {
		stop()
		require.NoError(t, node.Start())
		require.NotZero(t, produce(t, node, "c", "t"), name)
		require.Zero(t, produce(t, node, "other", "t"), name)
	}
	set(t, node, "client-id=c", "producer_byte_rate", 0)
	require.Zero(t, produce(t, node, "c", "t"))
}

func TestTheTimeOfRequestsIsBounded(t *testing.T) {
	t.Parallel()
	node := start(t)
	ask := func(c *frames.Conn) time.Duration {
		req := kmsg.NewPtrMetadataRequest()
		req.Version = 12
		return time.Duration(frames.Ask[*kmsg.MetadataResponse](c, req).ThrottleMillis) * time.Millisecond
	}
	c := frames.DialAs(t, node.Address, "c")
	require.Zero(t, ask(c))
	set(t, node, "client-id=c", "request_percentage", 1e-6)
	begin := time.Now()
	for range 3 {
		require.Equal(t, time.Second, ask(c), "one sample at most")
	}
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
	require.Zero(t, ask(frames.DialAs(t, node.Address, "other")))

	ids := frames.Dial(t, node.Address).Create(1, "t")
	c = frames.DialAs(t, node.Address, "c")
	fetch := frames.Fetch("t", 0)
	fetch.Version, fetch.SessionEpoch, fetch.Topics[0].TopicID = 13, -1, ids["t"]
	for range 2 {
		resp := frames.Ask[*kmsg.FetchResponse](c, fetch)
		require.EqualValues(t, 1000, resp.ThrottleMillis)
		require.Empty(t, resp.Topics)
		fetch.SessionID, fetch.SessionEpoch = 12345, 7
		resp = frames.Ask[*kmsg.FetchResponse](c, fetch)
		require.EqualValues(t, 1000, resp.ThrottleMillis)
		require.Equal(t, kerr.FetchSessionIDNotFound.Code, resp.ErrorCode)
		fetch.SessionID, fetch.SessionEpoch = 0, -1
	}
	require.Equal(t, time.Second, produce(t, node, "c", "t"))
}

func TestChangesOfTopicsAreBounded(t *testing.T) {
	t.Parallel()
	node := start(t)
	set(t, node, "client-id=c", "controller_mutation_rate", 2)
	create := func(version int16, name string, partitions int32) (code int16, throttle int32) {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis = version, 30_000
		req.Topics = []kmsg.CreateTopicsRequestTopic{frames.NewTopic(name, partitions, 1, nil)}
		resp := frames.Ask[*kmsg.CreateTopicsResponse](frames.DialAs(t, node.Address, "c"), req)
		return resp.Topics[0].ErrorCode, resp.ThrottleMillis
	}
	code, throttle := create(7, "a", 1000)
	require.Zero(t, code, "a request may overdraw it")
	require.Zero(t, throttle)
	code, throttle = create(6, "b", 1)
	require.Equal(t, kerr.ThrottlingQuotaExceeded.Code, code)
	require.Greater(t, throttle, int32(60_000))
	code, throttle = create(5, "c", 1)
	require.Zero(t, code, "older clients do not know the code")
	require.Greater(t, throttle, int32(60_000))
	listed, err := kadm.NewClient(freeClient(t, node.Address)).ListTopics(limited(t))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "c"}, listed.Names())
}

func freeClient(t *testing.T, address string) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ClientID("free"))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

func TestConnectionsFromAnAddressAreBounded(t *testing.T) {
	t.Parallel()
	node := start(t)
	adm := kadm.NewClient(freeClient(t, node.Address))
	_, err := adm.BrokerMetadata(limited(t)) // Its connections are there before.
	require.NoError(t, err)
	setBy(t, adm, "ip=127.0.0.1", "connection_creation_rate", 2)
	refused, served := 0, 0
	for range 20 {
		c := frames.Dial(t, node.Address)
		c.Send(kmsg.NewPtrApiVersionsRequest())
		if _, _, err := c.Next(); err != nil {
			refused++
		} else {
			served++
		}
	}
	require.NotZero(t, refused)
	require.NotZero(t, served)
	setBy(t, adm, "ip=127.0.0.1", "connection_creation_rate", 0)
	require.Zero(t, versions(t, frames.Dial(t, node.Address)))
}

// versions makes an exchange.
func versions(t *testing.T, c *frames.Conn) int16 {
	t.Helper()
	return frames.Ask[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest()).ErrorCode
}
