package controller

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mainstem/mainstem/controller/meta"
)

// shared is one etcd for all tests that can live with a prefix of their own. It is reached by a unix socket, as an external one.
type shared struct {
	server   *embed.Etcd
	endpoint string
	dir      string
}

var etcd = sync.OnceValues(startShared)

func startShared() (*shared, error) {
	tune() // Before the first server, as always.
	dir, err := os.MkdirTemp("", "mainstem-etcd")
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Logger, cfg.LogLevel, cfg.LogOutputs = filepath.Join(dir, "data"), "zap", "error", []string{os.DevNull}
	cfg.TickMs, cfg.ElectionMs, cfg.UnsafeNoFsync = 10, 50, true
	client, peer := url.URL{Scheme: "unix", Host: "", Path: filepath.Join(dir, "c")}, url.URL{Scheme: "unix", Path: filepath.Join(dir, "p")}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	<-e.Server.ReadyNotify()
	return &shared{server: e, endpoint: client.String(), dir: dir}, nil
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		runChild(dir)
		return
	}
	code := m.Run()
	if s, err := etcd(); err == nil {
		s.server.Close()
		_ = os.RemoveAll(s.dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// external are options for a broker on the shared etcd, under the test's own prefix.
func external(t *testing.T) Options {
	t.Helper()
	s, err := etcd()
	require.NoError(t, err)
	return Options{
		Dir: t.TempDir(), Endpoints: []string{s.endpoint}, Prefix: "/" + t.Name() + "/", NodeID: 1,
	}
}

// raw is a client of the shared etcd for what no broker does.
func raw(t *testing.T) *clientv3.Client {
	t.Helper()
	s, err := etcd()
	require.NoError(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a client that is closed at the end of the test.
func open(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { closeNow(c) })
	return c
}

func closeNow(c *Client) { _ = c.Close(context.Background()) }

// register opens and registers a broker.
func register(t *testing.T, o Options) *Client {
	t.Helper()
	c := open(t, o)
	require.NoError(t, c.Register(t.Context(), broker()))
	return c
}

func broker() meta.Broker {
	return meta.Broker{Listeners: []meta.Endpoint{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092, Protocol: "PLAINTEXT"}}}
}

// kill ends a client as kill -9 would: the lease stays.
func kill(c *Client) { c.closing.Do(c.release) }

// eventually waits without sleeping in the test itself.
func eventually(t *testing.T, what func() bool, msg string) {
	t.Helper()
	require.Eventually(t, what, 15*time.Second, 5*time.Millisecond, msg)
}

// create creates topics with one replica on node 1 and wants success.
func create(t *testing.T, c *Client, partitions int, names ...string) []NewTopic {
	t.Helper()
	topics := make([]NewTopic, len(names))
	for i, n := range names {
		topics[i] = NewTopic{Name: n, Assignments: onNode1(partitions)}
	}
	for i, err := range c.CreateTopics(t.Context(), topics) {
		require.NoError(t, err, names[i])
	}
	return topics
}

func onNode1(partitions int) [][]int32 {
	out := make([][]int32, partitions)
	for i := range out {
		out[i] = []int32{1}
	}
	return out
}

// logged is a logger and what it has been told.
func logged() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	return zap.New(core), logs
}

func hasLine(logs *observer.ObservedLogs, part string) bool {
	for _, e := range logs.All() {
		if strings.Contains(e.Message, part) {
			return true
		}
	}
	return false
}
