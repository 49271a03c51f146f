package controller

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestEmbeddedStartsWorksAndStops(t *testing.T) {
	log, logs := logged()
	o := Options{Dir: t.TempDir(), NodeID: 1, Logger: log}
	began := time.Now()
	c := register(t, o)
	t.Log("open and register:", time.Since(began))
	require.Len(t, c.ClusterID(), 22)
	create(t, c, 3, "a")
	began = time.Now()
	require.NoError(t, c.Close(t.Context()))
	t.Log("close:", time.Since(began))

	o.WantClusterID, o.HasData = c.ClusterID(), true
	began = time.Now()
	again := register(t, o)
	t.Log("reopen:", time.Since(began))
	require.Equal(t, c.ClusterID(), again.ClusterID())
	require.NoError(t, again.RaiseEpochs(t.Context(), 1))
	topic := again.Image().Topic("a")
	require.Len(t, topic.Partitions, 3)
	require.EqualValues(t, 1, topic.Partitions[2].LeaderEpoch)
	for _, l := range logs.All() {
		require.Empty(t, l.LoggerName, "etcd's own lines: %s", l.Message)
		require.Equal(t, zap.InfoLevel, l.Level, l.Message)
	}
	require.Empty(t, listeners(t), "no TCP port")
}

// listeners are the TCP ports that this process listens on.
func listeners(t *testing.T) (out []string) {
	t.Helper()
	inodes := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			inodes[strings.Trim(to, "socket:[]")] = true
		}
	}
	for _, f := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && inodes[f[9]] {
				out = append(out, f[1])
			}
		}
	}
	return out
}

func TestEmbeddedEtcdIsSmallOnDisk(t *testing.T) {
	o := Options{Dir: t.TempDir(), NodeID: 1}
	register(t, o)
	var total int64
	require.NoError(t, filepath.WalkDir(o.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	}))
	require.Less(t, total, int64(32<<20+reserveBytes))
}

func TestEmbeddedEtcdThatCannotGoOnEndsTheClientNotTheProcess(t *testing.T) {
	c := register(t, Options{Dir: t.TempDir(), NodeID: 1})
	full := errors.New("no space left on device")
	go c.embedded.logger(zap.NewNop()).Fatal("failed to save entries", zap.Error(full))
	<-c.Done()
	require.ErrorIs(t, c.Err(), full)
	require.True(t, c.Fenced())
	began := time.Now()
	closeNow(c)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestEmbeddedEtcdWithDamagedFilesSaysSo(t *testing.T) {
	o := Options{Dir: t.TempDir(), NodeID: 1}
	closeNow(register(t, o))
	logs, err := filepath.Glob(filepath.Join(etcdDir(o.Dir), "member", "wal", "*.wal"))
	require.NoError(t, err)
	for _, f := range logs {
		require.NoError(t, os.WriteFile(f, []byte(strings.Repeat("garbage", 1000)), 0o600))
	}
	_, lines := startChild(t, o.Dir) // What etcd leaves behind in memory goes with the process.
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "failed: open metadata: start embedded etcd in "+etcdDir(o.Dir))
	require.Contains(t, lines.Text(), "backup")
}

func TestEmbeddedEtcdWithALongLogStartsAgainAndAgain(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), NodeID: 1}
	c := register(t, o)
	for range 2500 {
		_, _, err := c.AllocateProducerIDs(t.Context())
		require.NoError(t, err)
	}
	for n := range 6 {
		kill(c)
		c = register(t, o)
		first, _, err := c.AllocateProducerIDs(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, (2500+n)*1000, first)
	}
}
