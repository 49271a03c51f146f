package metrics

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sample returns the value of the series with exactly these labels (k=v,…).
func sample(t *testing.T, m *Metrics, name, labels string) (float64, bool) {
	t.Helper()
	families, err := m.Gatherer().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			var pairs []string
			for _, l := range s.GetLabel() {
				pairs = append(pairs, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(pairs, ",") == labels {
				// All but one of these are nil, and read as 0.
				return s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount()), true
			}
		}
	}
	return 0, false
}

func requireSample(t *testing.T, m *Metrics, want float64, name, labels string) {
	t.Helper()
	got, ok := sample(t, m, name, labels)
	require.True(t, ok, "no series %s{%s}", name, labels)
	require.InDelta(t, want, got, 0, "%s{%s}", name, labels)
}

const bytesIn = "kafka_server_brokertopicmetrics_bytesin_total"

func TestTopicTrafficIsShownByTopicAndInTotal(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	m.Topic("orders").BytesIn.Add(100)
	m.Topic("orders").BytesIn.Add(20)
	m.Topic("payments").BytesIn.Add(3)
	requireSample(t, m, 120, bytesIn, "topic=orders")
	requireSample(t, m, 3, bytesIn, "topic=payments")
	requireSample(t, m, 123, bytesIn, "")
}

func TestTopicsBeyondTheCapAreInTheTotalOnly(t *testing.T) {
	m := New(Options{MaxTopics: 1})
	m.Topic("a").BytesIn.Add(1)
	m.Topic("b").BytesIn.Add(2)
	m.Topic("c").BytesIn.Add(4)
	requireSample(t, m, 7, bytesIn, "")
	_, shown := sample(t, m, bytesIn, "topic=b")
	require.False(t, shown)

	none := New(Options{})
	none.Topic("a").BytesIn.Add(1)
	requireSample(t, none, 1, bytesIn, "")
	_, shown = sample(t, none, bytesIn, "topic=a")
	require.False(t, shown)

	none.SetMaxTopics(1)
	none.Topic("b").BytesIn.Add(2)
	requireSample(t, none, 2, bytesIn, "topic=b")
	requireSample(t, none, 3, bytesIn, "")
}

func TestADeletedTopicLeavesItsCountInTheTotal(t *testing.T) {
	m := New(Options{MaxTopics: 1})
	m.Topic("a").BytesIn.Add(5)
	m.ForgetTopic("a")
	m.ForgetTopic("never-seen")
	_, shown := sample(t, m, bytesIn, "topic=a")
	require.False(t, shown)
	requireSample(t, m, 5, bytesIn, "")
	m.Topic("b").BytesIn.Add(1) // The room is free again.
	requireSample(t, m, 1, bytesIn, "topic=b")
	requireSample(t, m, 6, bytesIn, "")
}

func TestRequestsAreCountedByNameVersionAndError(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	m.Request(0, 9, 2*time.Millisecond)
	m.Request(0, 9, 3*time.Millisecond)
	m.Request(1, 13, time.Second)
	m.RequestError(0, 6)
	m.RequestError(0, 0)
	m.RequestError(0, 9999)
	requireSample(t, m, 2, "kafka_network_requestmetrics_requests_total", "request=Produce,version=9")
	requireSample(t, m, 1, "kafka_network_requestmetrics_requests_total", "request=Fetch,version=13")
	requireSample(t, m, 1, "kafka_network_requestmetrics_errors_total", "error=NOT_LEADER_OR_FOLLOWER,request=Produce")
	requireSample(t, m, 2, "kafka_network_requestmetrics_totaltimems_count", "request=Produce")
	requireSample(t, m, 2, "mainstem_request_duration_seconds", "request=Produce")
}

func TestNamesAreKafkas(t *testing.T) {
	for key, want := range map[int16]string{
		0: "Produce", 17: "SaslHandshake", 22: "InitProducerId", 29: "DescribeAcls", 36: "SaslAuthenticate",
		45: "AlterPartitionReassignments", 50: "DescribeUserScramCredentials", 65: "DescribeTransactions",
	} {
		require.Equal(t, want, APIName(key))
	}
	for code, want := range map[int16]string{0: "NONE", -1: "UNKNOWN_SERVER_ERROR", 6: "NOT_LEADER_OR_FOLLOWER", 9999: "UNKNOWN_SERVER_ERROR"} {
		require.Equal(t, want, ErrorName(code))
	}
}

func TestHostileRequestKeysAreIgnored(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	for _, key := range []int16{-1, 128, 32767, -32768} {
		m.Request(key, 0, time.Second)
		m.RequestError(key, 1)
	}
	m.Request(3, 32767, time.Second)
	m.Request(3, -1, time.Second)
	requireSample(t, m, 0, "kafka_network_requestmetrics_totaltimems_count", "request=Metadata")
}

func TestQuantilesForgetWhatIsLongAgo(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	now := time.Unix(1000, 0)
	m.now = func() time.Time { return now }
	const name, labels = "kafka_network_requestmetrics_totaltimems", "quantile=0.99,request=Fetch"
	at := func() float64 {
		v, ok := sample(t, m, name, labels)
		require.True(t, ok)
		return v
	}
	for range 1000 {
		m.Request(1, 13, time.Second)
	}
	require.InEpsilon(t, 1000, at(), 0.25)
	now = now.Add(window)
	require.InEpsilon(t, 1000, at(), 0.25)
	for range 1000 {
		m.Request(1, 13, time.Millisecond)
	}
	now = now.Add(window)
	require.InEpsilon(t, 1, at(), 0.25)
	now = now.Add(window)
	at()
	now = now.Add(window)
	require.Zero(t, at())
}

func TestGaugesComeFromTheSource(t *testing.T) {
	m := New(Options{Version: "v1", MaxTopics: 10})
	_, shown := sample(t, m, "mainstem_log_poisoned", "")
	require.False(t, shown, "nobody answers for the log yet")

	m.Topic("orders")
	m.SetSource(Source{
		State:      func() State { return State{Ready: true, Phase: Running} },
		Cluster:    func() Cluster { return Cluster{ActiveController: true, Brokers: 3} },
		Partitions: func() Partitions { return Partitions{Replicas: 7, Leaders: 4} },
		Log:        func() Log { return Log{Bytes: 1 << 20, FreeBytes: 5, Poisoned: true} },
		Sessions:   func() Sessions { return Sessions{Sessions: 2, Partitions: 9} },
		Parked:     func() Parked { return Parked{Fetches: 6} },
		EachPartition: func(yield func(PartitionLog) bool) {
			_ = yield(PartitionLog{Topic: "unseen"}) && yield(PartitionLog{Topic: "orders", Partition: 3, Bytes: 11, Start: 1, End: 8})
		},
	})
	requireSample(t, m, 3, "kafka_server_kafkaserver_brokerstate", "")
	requireSample(t, m, 1, "mainstem_ready", "")
	requireSample(t, m, 1, "kafka_controller_kafkacontroller_activecontrollercount", "")
	requireSample(t, m, 7, "kafka_server_replicamanager_partitioncount", "")
	requireSample(t, m, 4, "kafka_server_replicamanager_leadercount", "")
	requireSample(t, m, 1, "mainstem_log_poisoned", "")
	requireSample(t, m, 5, "mainstem_disk_free_bytes", "")
	requireSample(t, m, 9, "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "")
	requireSample(t, m, 6, "kafka_server_delayedoperationpurgatory_purgatorysize", "delayedOperation=Fetch")
	requireSample(t, m, 11, "kafka_log_log_size", "partition=3,topic=orders")
	requireSample(t, m, 8, "kafka_log_log_logendoffset", "partition=3,topic=orders")
	_, shown = sample(t, m, "kafka_log_log_size", "partition=0,topic=unseen")
	require.False(t, shown)
}

func TestPartitionSeriesAreCapped(t *testing.T) {
	m := New(Options{MaxTopics: 2})
	m.Topic("wide")
	m.SetSource(Source{EachPartition: func(yield func(PartitionLog) bool) {
		for p := range int32(100) {
			if !yield(PartitionLog{Topic: "wide", Partition: p}) {
				return
			}
		}
	}})
	families, err := m.Gatherer().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "kafka_log_log_size" {
			require.Len(t, f.GetMetric(), 2)
			return
		}
	}
	require.Fail(t, "no partition is shown")
}

func TestConnectionsAreCountedByListener(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	m.ConnectionOpened("PLAINTEXT")
	m.ConnectionOpened("PLAINTEXT")
	m.ConnectionClosed("PLAINTEXT")
	m.ConnectionClosed("NEVER")
	m.ConnectionRefused("limit")
	requireSample(t, m, 1, "mainstem_connections", "listener=PLAINTEXT")
	requireSample(t, m, 2, "mainstem_connections_opened_total", "listener=PLAINTEXT")
	requireSample(t, m, 1, "mainstem_connections_refused_total", "reason=limit")
}

func TestHooksMayRaceWithScrapes(t *testing.T) {
	m := New(Options{MaxTopics: 3})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 500 {
				m.Topic(string(rune('a' + n%5))).MessagesIn.Inc()
				m.Request(int16(n%3), int16(i), time.Duration(n)*time.Microsecond)
				m.RequestError(0, int16(n%3))
				m.ConnectionOpened("L")
				m.Sync.Observe(time.Microsecond)
			}
		})
	}
	for range 5 {
		_, err := m.Gatherer().Gather()
		require.NoError(t, err)
	}
	wg.Wait()
	requireSample(t, m, 2000, "kafka_server_brokertopicmetrics_messagesin_total", "")
	requireSample(t, m, 2000, "mainstem_log_sync_duration_seconds", "")
}

func TestCountingAllocatesNothing(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	topic := m.Topic("orders")
	m.Request(0, 9, time.Millisecond)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		topic.BytesIn.Add(100)
		m.Request(0, 9, time.Millisecond)
		m.Sync.Observe(time.Millisecond)
	}))
}

func TestEverySeriesHasAHelpText(t *testing.T) {
	m := New(Options{MaxTopics: 10})
	m.Request(0, 0, 0)
	m.RequestError(0, 3)
	m.ConnectionOpened("L")
	m.ConnectionRefused("limit")
	families, err := m.Gatherer().Gather()
	require.NoError(t, err)
	for _, f := range families {
		require.NotEmpty(t, f.GetHelp(), f.GetName())
	}
}
