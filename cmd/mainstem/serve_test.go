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
	dir           string
	out, err      *syncBuffer
	signals       chan os.Signal
	ended         chan struct{}
	code          int // Valid once ended is closed.
}

var (
	welcomed  = regexp.MustCompile(`ready for Kafka clients on (\S+)\n`)
	metricsAt = regexp.MustCompile(`http://(\S+)/metrics`)
)

// serve starts a broker on ports of the system's choice. It is stopped at the
// end of the test, if it still runs.
func serve(t *testing.T, dir string, more ...string) *serving {
	t.Helper()
	s := &serving{dir: dir, out: newSyncBuffer(), err: newSyncBuffer(), signals: make(chan os.Signal, 4), ended: make(chan struct{})}
	c := &console{
		in: strings.NewReader(""), out: s.out, err: s.err, program: "mainstem",
		getenv:  func(string) string { return "" },
		signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
	}
	args := append([]string{
		"serve",
		"--override", "listeners=PLAINTEXT://127.0.0.1:0",
		"--override", "mainstem.http.listener=127.0.0.1:0",
		"--override", "log.dirs=" + dir,
	}, more...)
	go func() {
		defer close(s.ended)
		s.code = run(context.Background(), args, c)
	}()
	t.Cleanup(func() { s.stop(t) })
	for welcomed.FindString(s.out.String()) == "" || !strings.Contains(s.out.String(), "Ctrl-C") {
		select {
		case <-s.ended:
			require.FailNow(t, "the broker ended", "code %d\n%s", s.code, s.err)
		case <-s.out.changed:
		case <-time.After(time.Minute):
			require.FailNow(t, "the broker is not ready after a minute", "%s", s.err)
		}
	}
	s.address = welcomed.FindStringSubmatch(s.out.String())[1]
	s.http = metricsAt.FindStringSubmatch(s.out.String())[1]
	return s
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
	s := serve(t, t.TempDir())
	other := t.TempDir()
	o := cli(t, "", nil, "serve", "--override", "log.dirs="+s.dir, "--override", "listeners=PLAINTEXT://127.0.0.1:0")
	requireFailure(t, o, exitLocked, s.dir, "log.dirs=DIR")
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
