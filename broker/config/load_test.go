package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shipped is Kafka's own server.properties without its comments.
const shipped = `process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
`

func TestKafkasOwnFilesLoad(t *testing.T) {
	for name, text := range map[string]string{"shipped": shipped, "peer": asked} {
		s, err := load(t, text)
		require.NoError(t, err, name)
		require.Len(t, s.Listeners(), 1, name)
		assert.Equal(t, "PLAINTEXT", s.Listeners()[0].Name)
		notices := strings.Join(s.Notices(), "\n")
		assert.Contains(t, notices, "CONTROLLER://")
		assert.Contains(t, notices, "KRaft")
	}
}

func TestDefaultsWithoutAnySource(t *testing.T) {
	s, err := Load(Options{})
	require.NoError(t, err)
	assert.Equal(t, []Listener{{
		Name: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9092, AdvertisedHost: "127.0.0.1", AdvertisedPort: 9092,
	}}, s.Listeners())
	assert.Equal(t, int32(1), s.NodeID())
	assert.Equal(t, 1, s.Int("node.id"))
	assert.Equal(t, "1", *byName(NewLive(s).DescribeBroker())["node.id"].Value)
	assert.Equal(t, "mainstem-data", s.LogDir())
	assert.Equal(t, "PLAINTEXT", s.InterBrokerListener())
	assert.Empty(t, s.Notices())
	assert.Equal(t, Etcd{Prefix: "/mainstem"}, s.Etcd())
	assert.Equal(t, 5*time.Minute, s.Millis("log.retention.check.interval.ms"))
	assert.False(t, s.IsSet("num.partitions"))
	assert.Panics(t, func() { s.Int("no.such") })
}

func TestStrongerSourceWins(t *testing.T) {
	file, err := ParseFile("f", []byte("num.partitions = 2\nnum.io.threads=5\nqueued.max.requests=7\nmessage.max.bytes=${x}1\n"))
	require.NoError(t, err)
	_, err = Load(Options{Sources: []Source{file}})
	require.ErrorContains(t, err, `f: invalid value "${x}1" for message.max.bytes`, "nothing is expanded")
	delete(file.entries, "message.max.bytes")

	env := ParseEnv([]string{"KAFKA_NUM_PARTITIONS=3", "KAFKA_NUM_IO_THREADS=6", "HOME=/", "KAFKA_HEAP_OPTS=-Xmx1g", "KAFKA_NUM_PARTITION=9"})
	over, err := ParseOverrides([]string{"num.partitions=4"})
	require.NoError(t, err)
	s, err := Load(Options{Sources: []Source{file, env, over}})
	require.NoError(t, err)
	assert.Equal(t, 4, s.Int("num.partitions"))
	assert.Equal(t, 6, s.Int("num.io.threads"))
	assert.Equal(t, 7, s.Int("queued.max.requests"))
	assert.True(t, s.IsSet("num.partitions"))
	notices := strings.Join(s.Notices(), "\n")
	assert.Contains(t, notices, "KAFKA_HEAP_OPTS")
	assert.Contains(t, notices, "KAFKA_NUM_PARTITION (did you mean KAFKA_NUM_PARTITIONS?)")
	assert.NotContains(t, notices, "HOME")

	_, err = Load(Options{Sources: []Source{ParseEnv([]string{"KAFKA_NUM_PARTITIONS=x"})}})
	assert.ErrorContains(t, err, `KAFKA_NUM_PARTITIONS: invalid value "x" for num.partitions`)
}

func TestEnvironmentNamesAreKafkas(t *testing.T) {
	for name, key := range map[string]string{
		"LOG_RETENTION_MS":           "log.retention.ms",
		"LISTENER_NAME_A__B_SSL":     "listener.name.a_b.ssl",
		"SOME_KEY___WITH_DASH":       "some.key-with.dash",
		"MAINSTEM_COMMITLOG_SEGMENT": "mainstem.commitlog.segment",
	} {
		assert.Equal(t, key, envKey(name))
		assert.Equal(t, "KAFKA_"+name, envName(key))
	}
}

func TestUnknownKeysAreRefusedWithTheNearest(t *testing.T) {
	for text, want := range map[string]string{
		"num.partition=3":         "did you mean num.partitions?",
		"log.retension.ms=3":      "did you mean log.retention.ms?",
		"advertised.listener=x":   "did you mean advertised.listeners?",
		"mainstem.durabilty=sync": "did you mean mainstem.durability?",
		"retention.ms=1":          "for all topics of the broker it is log.retention.ms",
		"completely.else.where=1": "remove it",
	} {
		_, err := load(t, text)
		var unknown *UnknownKeyError
		require.ErrorAs(t, err, &unknown, text)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "server.properties")

		file, err := ParseFile("f", []byte(text))
		require.NoError(t, err)
		s, err := Load(Options{Sources: []Source{file}, Lenient: true})
		require.NoError(t, err, "lenient ignores it")
		assert.Len(t, s.Notices(), 1)
		assert.NotContains(t, s.Notices()[0], "--lenient")
	}
	_, err := ParseOverrides([]string{"num.partitions"})
	assert.ErrorContains(t, err, "key=value")
}

func TestWrongSettingsEndInALineEach(t *testing.T) {
	for text, want := range map[string]string{
		"num.partitions=0":                          "server.properties: invalid value \"0\" for num.partitions: must be at least 1",
		"num.partitions=1e3":                        "whole number",
		"auto.create.topics.enable=yes":             "true or false",
		"authorizer.class.name=x.Y":                 "no access control",
		"create.topic.policy.class.name=x.Y":        "loads no classes",
		"principal.builder.class=x.Y":               "loads no classes",
		"client.quota.callback.class=x.Y":           "loads no classes",
		"metric.reporters=x.Y":                      "/metrics",
		"replica.selector.class=x.Y":                "RackAwareReplicaSelector",
		"remote.log.storage.system.enable=true":     "not supported",
		"transaction.two.phase.commit.enable=true":  "not supported",
		"security.inter.broker.protocol=SSL":        "only PLAINTEXT",
		"listeners=SSL://:9093":                     "only PLAINTEXT is served so far",
		"listeners=EXTERNAL://h:9093":               "add EXTERNAL:PLAINTEXT",
		"listeners=PLAINTEXT://h":                   "NAME://host:port",
		"listeners=PLAINTEXT://h:70000":             "port from 0 to 65535",
		"listeners=":                                "no listener for clients",
		"listeners=CONTROLLER://h:1":                "no listener for clients",
		"listeners=PLAINTEXT://a:1,PLAINTEXT://a:2": "stands twice",
		"listeners=PLAINTEXT://a:1,X://a:1\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,X:PLAINTEXT": "same port 1",
		"advertised.listeners=PLAINTEXT://0.0.0.0:9092":                                                     "cannot connect to",
		"advertised.listeners=PLAINTEXT://[::]:9092":                                                        "cannot connect to",
		"advertised.listeners=OTHER://h:9092":                                                               "not in listeners",
		"listener.security.protocol.map=A:B":                                                                "NAME:PROTOCOL",
		"listener.security.protocol.map=A:SSL,a:SSL":                                                        "stands twice",
		"inter.broker.listener.name=NOPE":                                                                   "one of the names in listeners",
		"inter.broker.listener.name=PLAINTEXT\nsecurity.inter.broker.protocol=PLAINTEXT":                    "keep the first",
		"node.id=1\nbroker.id=2":                                                                            "differ",
		"node.id=-1":                                                                                        "at least 0",
		"process.roles=controller":                                                                          "controller only",
		"log.dirs=/a,/b":                                                                                    "names 2 directories",
		"log.dirs=":                                                                                         "",
		"log.retention.ms=0":                                                                                "at least 1",
		"max.connections.per.ip=0":                                                                          "overrides",
		"max.connections.per.ip.overrides=a b:1":                                                            "no address",
		"queued.max.request.bytes=5":                                                                        "socket.request.max.bytes",
		"log.cleaner.threads=200":                                                                           "log.cleaner.threads=200",
		"group.consumer.session.timeout.ms=70000":                                                           "group.consumer.max.session.timeout.ms",
		"group.min.session.timeout.ms=9999999":                                                              "group.max.session.timeout.ms",
		"log.local.retention.ms=604800001":                                                                  "log.retention.ms=604800000",
		"mainstem.durability=maybe":                                                                         "fsync, async",
		"mainstem.http.listener=nope":                                                                       "host:port",
		"etcd.endpoints=nope":                                                                               "host:port",
		"etcd.endpoints=http://a:1,https://b:2":                                                             "mixed",
		"etcd.prefix=x":                                                                                     "start with /",
		"etcd.tls.cert=x":                                                                                   "go together",
		"etcd.password=secret":                                                                              "etcd.user is missing",
		"replica.fetch.wait.max.ms=31000":                                                                   "replica.lag.time.max.ms",
		"connection.failed.authentication.delay.ms=600000":                                                  "connections.max.idle.ms",
	} {
		_, err := load(t, text)
		if want == "" {
			assert.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "secret", "no secret in a message")
	}
}

func TestEveryComplaintIsGivenAtOnce(t *testing.T) {
	_, err := load(t, "num.partitions=0\nnum.io.thread=3\nmessage.max.bytes=x")
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), 3)
}

func TestLenientTakesTheFirstOfManyDirectories(t *testing.T) {
	file, err := ParseFile("f", []byte("log.dirs=/a,/b"))
	require.NoError(t, err)
	s, err := Load(Options{Sources: []Source{file}, Lenient: true})
	require.NoError(t, err)
	assert.Equal(t, "/a", s.LogDir())
	assert.Contains(t, s.Notices()[0], "only /a")
}

func TestUnsafeSettingsAreRefusedEvenWhenLenient(t *testing.T) {
	for _, text := range []string{"authorizer.class.name=x", "listeners=SSL://:1", "principal.builder.class=x"} {
		file, err := ParseFile("f", []byte(text))
		require.NoError(t, err)
		_, err = Load(Options{Sources: []Source{file}, Lenient: true, Hostname: "h"})
		assert.Error(t, err, text)
	}
}

func TestAdvertisedAddresses(t *testing.T) {
	const two = "listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT\nlisteners=in://0.0.0.0:1,OUT://10.0.0.1:2\n"
	for text, want := range map[string][]string{
		two: {"IN myhost 1", "OUT 10.0.0.1 2"},
		two + "advertised.listeners=OUT://example:5":                  {"IN myhost 1", "OUT example 5"},
		two + "advertised.listeners=out://example:0,IN://[fe80::1]:7": {"IN fe80::1 7", "OUT example 2"},
	} {
		s, err := load(t, text)
		require.NoError(t, err, text)
		var got []string
		for _, l := range s.Listeners() {
			got = append(got, l.Name+" "+l.AdvertisedHost+" "+formatWhole(int64(l.AdvertisedPort)))
		}
		assert.Equal(t, want, got, text)
		assert.Equal(t, "IN", s.InterBrokerListener())
	}
	file, err := ParseFile("f", []byte("listeners=PLAINTEXT://0.0.0.0:9092"))
	require.NoError(t, err)
	_, err = Load(Options{Sources: []Source{file}})
	assert.ErrorContains(t, err, "set advertised.listeners=PLAINTEXT://HOST:9092", "without a host name there is nothing to tell clients")
}

func TestAnIPv4AndAnIPv6ListenerShareAPort(t *testing.T) {
	_, err := load(t, "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\nlisteners=A://127.0.0.1:1,B://[::1]:1")
	assert.NoError(t, err)
}

func TestBrokerIDIsNodeID(t *testing.T) {
	for _, text := range []string{"node.id=7", "broker.id=7", "node.id=7\nbroker.id=7"} {
		s, err := load(t, text)
		require.NoError(t, err)
		assert.Equal(t, int32(7), s.NodeID())
		assert.Equal(t, 7, s.Int("broker.id"))
	}
}

func TestOldKafkaSettingsAreIgnoredAloud(t *testing.T) {
	s, err := load(t, "zookeeper.connect=x\ninter.broker.protocol.version=3.9\nlistener.name.internal.ssl.key.password=x\n")
	require.NoError(t, err)
	assert.Len(t, s.Notices(), 2)
}

func TestEtcdSettings(t *testing.T) {
	s, err := load(t, "etcd.endpoints=a:1, b:2\netcd.tls.ca=/ca\netcd.user=u\netcd.password= p \n")
	require.NoError(t, err)
	e := s.Etcd()
	assert.Equal(t, []string{"a:1", "b:2"}, e.Endpoints)
	assert.True(t, e.TLS)
	assert.Equal(t, "u", e.User)
	s, err = load(t, "etcd.endpoints=https://a:1")
	require.NoError(t, err)
	assert.True(t, s.Etcd().TLS)
}
