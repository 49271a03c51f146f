package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/broker"
)

// syncBuffer is a buffer that a broker writes while the test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	// changed is signalled after each write.
	changed chan struct{}
}

func newSyncBuffer() *syncBuffer { return &syncBuffer{changed: make(chan struct{}, 1)} }

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serving is a broker that was started through the command line.
type serving struct {
	address, http string
	out, err      *syncBuffer
	signals       chan os.Signal
	ended         chan struct{}
	code          int // Valid once ended is closed.
}

// servingLine is what the log says once requests are served.
type servingLine struct {
	Msg       string   `json:"msg"`
	Listeners []string `json:"listeners"`
	HTTP      string   `json:"http"`
}

// serve starts a broker on ports of the system's choice. It is stopped at the
// end of the test, if it still runs.
func serve(t *testing.T, dir string, more ...string) *serving {
	t.Helper()
	return serveWith(t, nil, append([]string{
		"serve",
		"--override", "listeners=PLAINTEXT://127.0.0.1:0",
		"--override", "mainstem.http.listener=127.0.0.1:0",
		"--override", "log.dirs=" + dir,
	}, more...)...)
}

// anywhere are the arguments for a broker on free ports in a fresh directory.
func anywhere(t *testing.T) []string {
	t.Helper()
	return []string{
		"serve",
		"--override", "listeners=PLAINTEXT://127.0.0.1:0",
		"--override", "mainstem.http.listener=127.0.0.1:0",
		"--override", "log.dirs=" + t.TempDir(),
	}
}

// serveWith starts a broker with just these arguments and variables.
func serveWith(t *testing.T, env map[string]string, args ...string) *serving {
	t.Helper()
	s := &serving{out: newSyncBuffer(), err: newSyncBuffer(), signals: make(chan os.Signal, 4), ended: make(chan struct{})}
	c := &console{
		in: strings.NewReader(""), out: s.out, err: s.err, program: "mainstem",
		getenv:  func(name string) string { return env[name] },
		signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
	}
	for k, v := range env {
		c.environ = append(c.environ, k+"="+v)
	}
	go func() {
		defer close(s.ended)
		s.code = run(context.Background(), args, c)
	}()
	t.Cleanup(func() { s.stop(t) })
	for !s.isServing(t) {
		select {
		case <-s.ended:
			require.FailNow(t, "the broker ended", "code %d\n%s", s.code, s.err)
		case <-s.err.changed:
		case <-time.After(time.Minute):
			require.FailNow(t, "the broker is not ready after a minute", "%s", s.err)
		}
	}
	return s
}

// isServing looks for the line that tells the addresses.
func (s *serving) isServing(t *testing.T) bool {
	t.Helper()
	for line := range strings.Lines(s.err.String()) {
		if !strings.Contains(line, `"msg":"serving"`) || !strings.HasSuffix(line, "\n") {
			continue
		}
		var l servingLine
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		s.address, s.http = strings.TrimPrefix(l.Listeners[0], "PLAINTEXT://"), l.HTTP
		return true
	}
	return false
}

// stop asks for a stop and waits for it.
func (s *serving) stop(t *testing.T) {
	t.Helper()
	select {
	case s.signals <- syscall.SIGTERM:
	case <-s.ended:
	}
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		require.FailNow(t, "the broker does not stop", "%s", s.err)
	}
	require.Equal(t, exitOK, s.code, "%s", s.err)
}

// do runs a command against the broker and wants it to succeed.
func (s *serving) do(t *testing.T, input string, args ...string) string {
	t.Helper()
	o := cli(t, input, map[string]string{bootstrapEnv: s.address}, args...)
	require.Equal(t, exitOK, o.code, "%v: %s\n%s", args, o.err, s.err)
	return o.out
}

// get asks the HTTP side.
func (s *serving) get(t *testing.T, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.http+path, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

func TestTheFirstStepsOfTheWelcomeWork(t *testing.T) {
	s := serve(t, t.TempDir())
	for !strings.Contains(s.out.String(), "Ctrl-C stops the broker") {
		<-s.out.changed
	}
	require.Contains(t, s.out.String(), "ready for Kafka clients on "+s.address)
	require.Contains(t, s.out.String(), "mainstem topic create greetings -b "+s.address)
	s.do(t, "", "topic", "create", "greetings")
	s.do(t, "hello\nworld\n", "produce", "greetings")
	require.Equal(t, "hello\nworld\n", s.do(t, "", "consume", "greetings"))
	require.Contains(t, s.do(t, "", "topic", "list"), "greetings   1            1")
}

func TestRecordsComeBackAsTheyWent(t *testing.T) {
	s := serve(t, t.TempDir())
	s.do(t, "", "topic", "create", "a", "b", "--partitions", "3")
	s.do(t, "k1=v1\nk2=v2\nk3=\n", "produce", "a", "-K", "=", "--null", "", "-H", "trace=7")
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		s.do(t, strings.Repeat(codec+"\n", 100), "produce", "a", "-z", codec, "-p", "1")
	}
	dump := s.do(t, "", "consume", "a", "--json")
	require.Equal(t, 503, strings.Count(dump, "\n"))
	s.do(t, dump, "produce", "b", "--json", "--keep-partition")
	require.Equal(t, sorted(strings.ReplaceAll(dump, `"topic":"a"`, `"topic":"b"`)), sorted(s.do(t, "", "consume", "b", "--json")))

	require.Equal(t, "k2\tv2\n", s.do(t, "", "consume", "a", "--keys", "-n", "1", "-o", "0", "-p", fmt.Sprint(partitionOf(t, dump, "k2"))))
	require.Equal(t, "zstd\nzstd\n", s.do(t, "", "consume", "a", "-p", "1", "-o", "-2"))
	require.Empty(t, s.do(t, "", "consume", "a", "-o", "end"))
	require.Empty(t, s.do(t, "", "consume", "a", "-o", "@1h"))
	require.Equal(t, 503, strings.Count(s.do(t, "", "consume", "a", "-o", "@-1h"), "\n"))
}

func sorted(lines string) []string {
	out := strings.Split(strings.TrimSpace(lines), "\n")
	slices.Sort(out)
	return out
}

func partitionOf(t *testing.T, dump, key string) int32 {
	t.Helper()
	for _, line := range strings.Split(dump, "\n") {
		var r jsonRecord
		if line != "" && strings.Contains(line, `"key":"`+key+`"`) {
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			return *r.Partition
		}
	}
	require.FailNow(t, "no record has the key", key)
	return -1
}

func TestTopicsAreDescribedAlteredAndDeleted(t *testing.T) {
	s := serve(t, t.TempDir())
	s.do(t, "", "topic", "create", "t", "-c", "retention.ms=1000000", "-p", "2")
	s.do(t, "x\n", "produce", "t", "-p", "1")
	s.do(t, "", "topic", "alter", "t", "--set", "max.message.bytes=5000", "--unset", "retention.ms", "--partitions", "4")
	var d []describedTopic
	require.NoError(t, json.Unmarshal([]byte(s.do(t, "", "topic", "describe", "t", "--json")), &d))
	require.Len(t, d, 1)
	require.Len(t, d[0].Partitions, 4)
	require.EqualValues(t, 1, *d[0].Partitions[1].End)
	require.Positive(t, *d[0].Partitions[1].Bytes)
	require.Zero(t, *d[0].Partitions[0].Bytes)
	require.Len(t, d[0].Configs, 1)
	require.Equal(t, "max.message.bytes", d[0].Configs[0].Name)
	require.Contains(t, s.do(t, "", "topic", "describe", "t", "--configs"), "retention.ms")

	env := map[string]string{bootstrapEnv: s.address}
	requireOneLine(t, cli(t, "", env, "topic", "create", "t"), exitRefused, "TOPIC_ALREADY_EXISTS", "--if-not-exists")
	requireOneLine(t, cli(t, "", env, "topic", "alter", "t", "--set", "no.such=1"), exitRefused, "no.such")
	requireOneLine(t, cli(t, "", env, "topic", "create", "u", "-r", "3"), exitRefused, "mainstem cluster")
	requireOneLine(t, cli(t, "", env, "consume", "t", "-p", "9"), exitUsage, "no partition 9")
	requireOneLine(t, cli(t, "x\n", env, "produce", "t", "-p", "9"), exitUsage, "no partition 9")
	requireOneLine(t, cli(t, "", env, "consume", "t", "-o", "7"), exitUsage, "holds offsets")
	require.Equal(t, "t exists\n", s.do(t, "", "topic", "create", "t", "--if-not-exists"))
	require.Equal(t, "t deleted\n", s.do(t, "", "topic", "delete", "t"))
	requireOneLine(t, cli(t, "", env, "topic", "delete", "t"), exitRefused, "UNKNOWN_TOPIC_OR_PARTITION")
	require.Empty(t, s.do(t, "", "topic", "list"))
}

func TestTheClusterShowsItsBroker(t *testing.T) {
	s := serve(t, t.TempDir(), "--override", "node.id=7", "--override", "broker.rack=north")
	var info clusterInfo
	require.NoError(t, json.Unmarshal([]byte(s.do(t, "", "cluster", "--json")), &info))
	require.Len(t, info.Brokers, 1)
	require.EqualValues(t, 7, info.Brokers[0].ID)
	require.Equal(t, s.address, info.Brokers[0].Address)
	require.Equal(t, "north", *info.Brokers[0].Rack)
	require.Contains(t, s.do(t, "", "cluster"), info.Cluster)
}

func TestDataStayOverARestartAndCheckFindsNothing(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	s.do(t, "", "topic", "create", "t")
	s.do(t, "one\ntwo\n", "produce", "t")
	s.stop(t)
	o := cli(t, "", nil, "log", "check", dir, "--json")
	require.Zero(t, o.code, o.err)
	var report checkReport
	require.NoError(t, json.Unmarshal([]byte(o.out), &report))
	require.True(t, report.Clean)
	require.Empty(t, report.Problems)
	require.Positive(t, report.Batches)
	o = cli(t, "", nil, "log", "dump", broker.LogDir(dir), "--records", "--topic", "t")
	require.Zero(t, o.code, o.err)
	require.Contains(t, o.out, "two")

	s = serve(t, dir)
	require.Equal(t, "one\ntwo\n", s.do(t, "", "consume", "t"))
}

func TestASecondBrokerNeedsItsOwnPlaces(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	s := serve(t, dir)
	o := cli(t, "", nil, "serve", "--override", "log.dirs="+dir, "--override", "listeners=PLAINTEXT://127.0.0.1:0")
	requireFailure(t, o, exitLocked, dir, "log.dirs=DIR")
	o = cli(t, "", nil, "serve", "--override", "log.dirs="+other, "--override", "mainstem.http.listener=",
		"--override", "listeners=PLAINTEXT://"+s.address)
	requireFailure(t, o, exitAddress, s.address, "listeners=PLAINTEXT://HOST:PORT")
	o = cli(t, "", nil, "serve", "--override", "log.dirs="+other, "--override", "mainstem.http.listener="+s.http,
		"--override", "listeners=PLAINTEXT://127.0.0.1:0")
	requireFailure(t, o, exitAddress, s.http, "mainstem.http.listener")
}

// requireFailure is requireOneLine for serve, which logs before it fails.
func requireFailure(t *testing.T, o outcome, code int, words ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(o.err), "\n")
	o.err = lines[len(lines)-1] + "\n"
	requireOneLine(t, o, code, words...)
}

func TestAnUnusableDirectoryIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o := cli(t, "", nil, "serve", "--override", "log.dirs="+filepath.Join(file, "data"))
	requireFailure(t, o, exitDirectory, file, "log.dirs=DIR")
	o = cli(t, "", nil, "serve", "--override", "log.dirs=/proc/none")
	requireFailure(t, o, exitDirectory, "/proc/none", "log.dirs=DIR")
}

func TestHealthAndMetricsFollowTheBroker(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, path := range []string{"/live", "/ready"} {
		status, text := s.get(t, path)
		require.Equal(t, 200, status, text)
	}
	s.do(t, "", "topic", "create", "t")
	s.do(t, "one\ntwo\n", "produce", "t")
	s.do(t, "", "consume", "t")
	status, text := s.get(t, "/metrics")
	require.Equal(t, 200, status)
	for _, want := range []string{
		`kafka_server_brokertopicmetrics_messagesin_total{topic="t"} 2` + "\n",
		"kafka_server_brokertopicmetrics_messagesin_total 2\n",
		"kafka_server_replicamanager_partitioncount 1\n",
		"kafka_server_replicamanager_leadercount 1\n",
		"kafka_server_kafkaserver_brokerstate 3\n",
		"mainstem_log_poisoned 0\n",
		"mainstem_ready 1\n",
		`kafka_network_requestmetrics_requests_total{request="Produce",version="`,
		`kafka_log_log_logendoffset{partition="0",topic="t"} 2` + "\n",
	} {
		require.Contains(t, text, want)
	}
	for _, positive := range []string{"mainstem_log_sync_duration_seconds_count", "mainstem_log_bytes", "mainstem_disk_free_bytes", `kafka_server_brokertopicmetrics_bytesout_total{topic="t"}`} {
		require.Regexp(t, regexp.QuoteMeta(positive)+` [1-9]`, text)
	}
}

func TestStoppingIsNotReadyAtOnceAndRefusesConnections(t *testing.T) {
	s := serve(t, t.TempDir())
	conn, err := net.Dial("tcp", s.address)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	s.stop(t)
	_, err = net.Dial("tcp", s.address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "idle connections are closed")
}

func TestSystemdHearsOfStartAndStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	heard := func() string {
		buf := make([]byte, 100)
		n, err := l.Read(buf)
		require.NoError(t, err)
		return string(buf[:n])
	}
	s := serveWith(t, map[string]string{"NOTIFY_SOCKET": path}, anywhere(t)...)
	require.Contains(t, heard(), "READY=1")
	s.stop(t)
	require.Equal(t, "STOPPING=1", heard())
}

func TestTheEnvironmentConfiguresTheBrokerBelowOverrides(t *testing.T) {
	env := map[string]string{"KAFKA_NUM_PARTITIONS": "4", "KAFKA_NODE_ID": "5", "KAFKA_HEAP_OPTS": "-Xmx1g"}
	s := serveWith(t, env, append(anywhere(t), "--override", "node.id=6")...)
	require.Contains(t, s.err.String(), "KAFKA_HEAP_OPTS", "what is ignored is said")
	s.do(t, "", "topic", "create", "t")
	require.Contains(t, s.do(t, "", "topic", "list"), "t       4            1")
	require.Contains(t, s.do(t, "", "cluster"), "\n6        ")
}

func TestAShippedServerPropertiesStartsUnchanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.properties")
	require.NoError(t, os.WriteFile(file, []byte(`process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=`+filepath.Join(t.TempDir(), "kraft-combined-logs")+`
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
`), 0o600))
	s := serveWith(t, nil, "serve", file, "--override", "mainstem.http.listener=127.0.0.1:0")
	require.Empty(t, s.out.String(), "the greeting is for those who typed nothing")
	require.Equal(t, 1, strings.Count(s.do(t, "", "cluster"), "127.0.0.1:"))
}

var update = flag.Bool("update", false, "write what is generated into the README")

// TestTheReadmeListsTheServedAPIs compares the README's table with what a broker
// says; -update rewrites it.
func TestTheReadmeListsTheServedAPIs(t *testing.T) {
	const begin, end = "<!-- apis: made by go test ./cmd/mainstem -run Readme -update -->\n", "<!-- /apis -->\n"
	s := serve(t, t.TempDir())
	table := s.do(t, "", "apis")
	readme := filepath.Join(repositoryRoot(t), "README.md")
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "the README has no place for the table")
	old, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "the README's table has no end")
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(before+begin+table+end+after), 0o644))
		return
	}
	require.Equal(t, table, old, "run: go test ./cmd/mainstem -run Readme -update")
}
