package config

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestLayersOverrideEachOther(t *testing.T) {
	l := live(t, "message.max.bytes=2000")
	assert.Equal(t, 2000, l.Values().MessageMaxBytes)
	require.NoError(t, l.Apply(map[string]string{"message.max.bytes": "3000"}, nil))
	assert.Equal(t, 3000, l.Int("message.max.bytes"))
	require.NoError(t, l.Apply(map[string]string{"message.max.bytes": "3000"}, map[string]string{"message.max.bytes": " +4000 "}))
	assert.Equal(t, 4000, l.Values().MessageMaxBytes)
	assert.Equal(t, "4000", l.String("message.max.bytes"))
	e := byName(l.DescribeBroker())["message.max.bytes"]
	assert.Equal(t, "4000", *e.Value)
	var sources []int8
	for _, s := range e.ConfigSynonyms {
		sources = append(sources, int8(s.Source))
	}
	assert.Equal(t, []int8{2, 3, 4, 5}, sources)
	require.NoError(t, l.Apply(nil, nil))
	assert.Equal(t, 2000, l.Values().MessageMaxBytes)
}

func TestHooksHearOnlyOfWhatChanged(t *testing.T) {
	l := live(t, "")
	var calls []int
	l.OnChange(func(v *Values) { calls = append(calls, v.MessageMaxBytes) }, "message.max.bytes", "fetch.max.bytes")
	require.NoError(t, l.Apply(map[string]string{"log.retention.ms": "5"}, nil))
	assert.Empty(t, calls)
	require.NoError(t, l.Apply(map[string]string{"log.retention.ms": "5", "message.max.bytes": "7"}, nil))
	require.NoError(t, l.Apply(map[string]string{"log.retention.ms": "5", "message.max.bytes": "7"}, nil))
	assert.Equal(t, []int{7}, calls)
	assert.Panics(t, func() { l.OnChange(func(*Values) {}, "no.such") })
}

func TestTopicGenerationFollowsTopicDefaults(t *testing.T) {
	l := live(t, "")
	g := l.TopicGeneration()
	require.NoError(t, l.Apply(map[string]string{"max.connections": "9"}, nil))
	assert.Equal(t, g, l.TopicGeneration())
	require.NoError(t, l.Apply(map[string]string{"log.retention.ms": "9"}, nil))
	assert.NotEqual(t, g, l.TopicGeneration())
}

func TestStoredNonsenseIsLeftOutAndReported(t *testing.T) {
	l := live(t, "")
	err := l.Apply(
		map[string]string{"num.partitions": "3", "log.retention.ms": "x", "message.max.bytes": "5", "log.cleaner.threads": "200", "listeners": "PLAINTEXT://:1"},
		map[string]string{"min.insync.replicas": "2", "my.note": "1"})
	for _, name := range []string{"num.partitions", "log.retention.ms", "listeners", "min.insync.replicas", "log.cleaner.dedupe.buffer.size"} {
		if name == "log.cleaner.dedupe.buffer.size" {
			continue // Not set while running: log.cleaner.threads is judged by Validate.
		}
		assert.ErrorContains(t, err, name)
	}
	assert.Equal(t, 1, l.Int("num.partitions"))
	assert.Equal(t, 5, l.Values().MessageMaxBytes, "the rest takes effect")
	assert.Equal(t, 1, l.Int("min.insync.replicas"))
}

func TestTopicSettingsFallBackOnTheBrokers(t *testing.T) {
	l := live(t, "log.retention.hours=2\nlog.roll.hours=3\ncompression.type=gzip\nmainstem.durability=async\nlog.cleanup.policy=compact,delete\n")
	d := l.Topic(nil)
	assert.Equal(t, int64(2*3600_000), d.RetentionMs)
	assert.Equal(t, int64(3*3600_000), d.SegmentMs)
	assert.Equal(t, "gzip", d.CompressionType)
	assert.Equal(t, Async, d.Durability)
	assert.True(t, d.Compact && d.Delete)
	assert.Equal(t, 1048588, d.MaxMessageBytes)
	assert.Equal(t, int64(3600_000), d.TimestampAfterMaxMs)
	assert.Equal(t, 1, d.MinInsyncReplicas)

	own := l.Topic(map[string]string{
		"retention.ms": "-1", "cleanup.policy": "", "mainstem.durability": "fsync", "internal.segment.bytes": "100",
		"message.timestamp.type": "LogAppendTime", "no.such": "1", "max.message.bytes": "nonsense", "min.cleanable.dirty.ratio": "0.25",
	})
	assert.Equal(t, int64(-1), own.RetentionMs)
	assert.False(t, own.Compact || own.Delete)
	assert.Equal(t, Fsync, own.Durability)
	assert.Equal(t, 100, own.SegmentBytes)
	assert.True(t, own.LogAppendTime)
	assert.Equal(t, 1048588, own.MaxMessageBytes, "what does not pass counts as not set")
	assert.InDelta(t, 0.25, own.MinCleanableDirtyRatio, 0)

	require.NoError(t, l.Apply(map[string]string{"log.retention.ms": "5"}, nil))
	assert.Equal(t, int64(5), l.Topic(nil).RetentionMs, "milliseconds go before hours")
}

func TestEveryTopicConfigReachesTheStruct(t *testing.T) {
	// Kept for compatibility alone: they change nothing in Mainstem.
	inert := map[string]bool{
		"follower.replication.throttled.replicas": true, "leader.replication.throttled.replicas": true,
		"local.retention.bytes": true, "local.retention.ms": true,
		"remote.log.copy.disable": true, "remote.log.delete.on.disable": true, "remote.storage.enable": true,
	}
	other := map[string]string{
		"cleanup.policy": "compact", "compression.type": "zstd", "message.timestamp.type": "LogAppendTime",
		"min.cleanable.dirty.ratio": "0.75", "preallocate": "true", "unclean.leader.election.enable": "true",
		DurabilityName: "async", "compression.gzip.level": "5", "compression.lz4.level": "5", "compression.zstd.level": "5",
		"segment.bytes": "2000000",
	}
	l := live(t, "")
	for _, d := range TopicDefs() {
		v, ok := other[d.Name]
		if !ok {
			v = "77"
		}
		changed := *l.Topic(map[string]string{d.Name: v}) != *l.Topic(nil)
		assert.Equal(t, !inert[d.Name], changed, d.Name)
	}
}

func TestRetentionInHoursIsNotShownAsMilliseconds(t *testing.T) {
	l := live(t, "log.retention.hours=1")
	e := byName(l.DescribeTopic(nil))["retention.ms"]
	assert.Equal(t, "3600000", *e.Value)
	assert.Empty(t, e.ConfigSynonyms)
	assert.Equal(t, sourceDefault, e.Source)
	for _, c := range l.CreatedTopic(map[string]string{"segment.bytes": "1048576"}) {
		switch c.Name {
		case "retention.ms":
			assert.Equal(t, int8(4), c.Source)
		case "segment.bytes":
			assert.Equal(t, int8(1), c.Source)
		case "min.insync.replicas":
			assert.Equal(t, int8(3), c.Source)
		case "max.message.bytes":
			assert.Equal(t, int8(5), c.Source)
		}
	}
}

func TestCreatedTopicListsOwnSettingsOnlyWhereSet(t *testing.T) {
	l := live(t, "")
	shown := func(overrides map[string]string) bool {
		return slices.ContainsFunc(l.CreatedTopic(overrides), func(c kmsg.CreateTopicsResponseTopicConfig) bool { return c.Name == DurabilityName })
	}
	assert.False(t, shown(nil))
	assert.True(t, shown(map[string]string{DurabilityName: "async"}))
}

func TestTopicAndGroupSettingsShowFirst(t *testing.T) {
	l := live(t, "")
	e := byName(l.DescribeTopic(map[string]string{"retention.ms": " +9 "}))["retention.ms"]
	assert.Equal(t, "9", *e.Value)
	assert.Equal(t, sourceTopic, e.Source)
	e = byName(l.DescribeGroup(map[string]string{"consumer.session.timeout.ms": "50000"}))["consumer.session.timeout.ms"]
	require.Len(t, e.ConfigSynonyms, 2)
	assert.Equal(t, sourceGroup, e.Source)
	e = byName(DescribeClientMetrics(map[string]string{"interval.ms": "500"}))["interval.ms"]
	assert.Equal(t, sourceMetrics, e.Source)
}

func TestSecretsAndUnknownSettingsAreNotShown(t *testing.T) {
	l := live(t, "etcd.user=u\netcd.password=secret\nlistener.name.internal.ssl.key.password=secret\n")
	require.NoError(t, l.Apply(nil, map[string]string{"my.note": "secret", "leader.replication.throttled.rate": "5"}))
	entries := byName(l.DescribeBroker())
	for _, name := range []string{"etcd.password", "listener.name.internal.ssl.key.password", "my.note"} {
		e, ok := entries[name]
		require.True(t, ok, name)
		assert.True(t, e.IsSensitive, name)
		assert.Nil(t, e.Value, name)
		for _, s := range e.ConfigSynonyms {
			assert.Nil(t, s.Value, name)
		}
	}
	assert.Equal(t, "5", *entries["leader.replication.throttled.rate"].Value)
	assert.NotContains(t, entries, "follower.replication.throttled.rate")
}

func TestBrokerChangesThatAreRefused(t *testing.T) {
	l := live(t, "")
	for _, c := range []struct {
		scope Scope
		set   map[string]string
		want  error
		text  string
	}{
		{ThisBroker, map[string]string{"num.partitions": "2"}, ErrNotDynamic, "num.partitions"},
		{AllBrokers, map[string]string{"ssl.client.auth": "none"}, ErrPerBroker, "name a broker"},
		{ThisBroker, map[string]string{"ssl.keystore.location": "x"}, ErrPerListener, "listener.name"},
		{ThisBroker, map[string]string{"min.insync.replicas": "2"}, ErrClusterOnly, "cluster"},
		{AllBrokers, map[string]string{"listener.name.a.ssl.key.password": "x"}, ErrPerBroker, ""},
		{ThisBroker, map[string]string{"num.io.threads": "17"}, nil, "double the present 8"},
		{ThisBroker, map[string]string{"listeners": "PLAINTEXT://127.0.0.1:1"}, nil, "while the broker runs"},
		{ThisBroker, map[string]string{"log.cleaner.dedupe.buffer.size": "5"}, nil, "1048576"},
		{ThisBroker, map[string]string{"log.retention.ms": "abc"}, nil, "whole number"},
		{ThisBroker, map[string]string{"principal.builder.class": "x"}, nil, "no classes"},
	} {
		err := l.ValidateBroker(c.scope, c.set)
		require.ErrorContains(t, err, c.text)
		if c.want != nil {
			assert.ErrorIs(t, err, c.want)
		}
	}
	assert.NoError(t, l.ValidateBroker(AllBrokers, map[string]string{"my.own.key": "1"}))
	assert.NoError(t, l.ValidateBroker(ThisBroker, map[string]string{"listener.name.a.ssl.key.password": "x"}))
	assert.NoError(t, l.ValidateBroker(AllBrokers, map[string]string{"listener.name.a.max.connections": "5", "min.insync.replicas": "2"}))
}

func TestListenersMayHaveTheirOwnLimits(t *testing.T) {
	const two = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\nlisteners=A://localhost:1,B://localhost:2\n"
	l := live(t, two+"max.connections=7\nlistener.name.a.max.connections=5\n")
	assert.Equal(t, map[string]ListenerLimits{"A": {MaxConnections: 5}}, l.Values().Listeners)
	told := 0
	l.OnChange(func(v *Values) {
		told++
		assert.Equal(t, map[string]ListenerLimits{"A": {MaxConnections: 5}, "B": {MaxConnections: 6, ConnectionRate: 9}}, v.Listeners)
	}, "max.connections")
	cluster := map[string]string{"listener.name.b.max.connections": "6", "listener.name.b.max.connection.creation.rate": "9"}
	require.NoError(t, l.Apply(cluster, nil))
	require.NoError(t, l.Apply(cluster, nil))
	assert.Equal(t, 1, told)
	_, err := load(t, two+"listener.name.a.max.connections=x")
	assert.ErrorContains(t, err, "whole number")
}

func TestTheSessionTimeoutFitsALease(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 9 * time.Second, "1": 2 * time.Second, "2001": 3 * time.Second, "5000": 5 * time.Second} {
		if text != "" {
			text = "broker.session.timeout.ms=" + text
		}
		s, err := load(t, text)
		require.NoError(t, err)
		assert.Equal(t, want, s.SessionTimeout(), text)
	}
}

func TestTopicChangesThatAreRefused(t *testing.T) {
	l := live(t, "")
	assert.ErrorIs(t, l.ValidateTopic(map[string]string{"message.format.version": "2.8"}), ErrUnknown)
	assert.ErrorContains(t, l.ValidateTopic(map[string]string{"retention.msec": "1"}), "retention.ms")
	assert.ErrorContains(t, l.ValidateTopic(map[string]string{"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}), "at most")
	assert.NoError(t, l.ValidateTopic(map[string]string{"internal.segment.bytes": "100"}))
	assert.ErrorIs(t, l.ValidateGroup(map[string]string{"x": "1"}), ErrUnknown)
	assert.ErrorContains(t, l.ValidateGroup(map[string]string{"consumer.session.timeout.ms": "1"}), "greater than or equal to")
	assert.ErrorIs(t, ValidateClientMetrics(map[string]string{"x": "1"}), ErrUnknown)
	assert.Error(t, ValidateClientMetrics(map[string]string{"match": "client_id=["}))
	assert.NoError(t, ValidateClientMetrics(map[string]string{"match": "client_id=a.*, client_source_port=1"}))
}

func TestReadersSeeWholeSnapshotsWhileSettingsChange(t *testing.T) {
	l := live(t, "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				v := l.Values()
				assert.Contains(t, []int{1048588, 5, 6}, v.MessageMaxBytes)
				l.Topic(map[string]string{"retention.ms": "5"})
			}
		})
	}
	for i := range 50 {
		assert.NoError(t, l.Apply(map[string]string{"message.max.bytes": []string{"5", "6"}[i%2]}, nil))
	}
	wg.Wait()
}

func TestLongTimesDoNotOverflow(t *testing.T) {
	assert.Equal(t, time.Duration(1<<63-1)/time.Millisecond*time.Millisecond, millis(1<<63-1))
	assert.Negative(t, millis(-1<<63))
}

func TestNumbersAreWrittenAsKafkaDoes(t *testing.T) {
	for in, want := range map[string]string{
		"0.5": "0.5", "1": "1.0", "1e-1": "0.1", "1e10": "1.0E10", "1.5e-7": "1.5E-7", "1e999": "Infinity", "-0": "-0.0",
	} {
		v, complaint := convertReal(in)
		require.Empty(t, complaint, in)
		assert.Equal(t, want, v.text, in)
	}
	for _, bad := range []string{"", "NaN", "1_0", "inf", "x"} {
		_, complaint := convertReal(bad)
		assert.NotEmpty(t, complaint, bad)
	}
}
