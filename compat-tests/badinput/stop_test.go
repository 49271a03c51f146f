package badinput

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// parked is a fetch that waits for records longer than any stop may take.
func parked(topic string, offset int64) *kmsg.FetchRequest {
	req := frames.Fetch(topic, offset)
	req.MaxWaitMillis = 10 * 60 * 1000
	return req
}

// awaitParked returns when the broker has a fetch that waits.
func awaitParked(t *testing.T, node *harness.Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		return node.Metric(t, "kafka_server_delayedoperationpurgatory_purgatorysize", `"Fetch"`) > 0
	}, frames.Patience, 5*time.Millisecond)
}

// TestStopInOrder stops a broker with clients connected, one of them waiting for
// records and one sending: it ends with 0 in time, what it answered is there,
// and the next start looks through nothing.
func TestStopInOrder(t *testing.T) {
	t.Parallel()
	node := harness.Start(t)
	write(t, node, "kept", 10)
	waiting, idle := frames.Dial(t, node.Address), frames.Dial(t, node.Address)
	frames.Ask[*kmsg.MetadataResponse](idle, kmsg.NewPtrMetadataRequest())
	fetch := parked("kept", 10)
	id := waiting.Send(fetch)
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.DefaultProduceTopic("kept"), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var acked atomic.Int64
	produce := func() {
		n := acked.Load()
		for ; ctx.Err() == nil; n++ {
			// Values continue those of write, so that read finds them in order.
			if cl.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint("kept ", n))).FirstErr() == nil {
				acked.Store(n + 1)
			}
		}
	}
	acked.Store(10)
	go produce()
	require.Eventually(t, func() bool { return acked.Load() > 20 }, frames.Patience, time.Millisecond)
	// The waiting fetch has got its answer, so it waits anew at the end, which
	// the producer will not reach.
	frames.Receive[*kmsg.FetchResponse](waiting, fetch, id)
	empty := frames.Dial(t, node.Address)
	empty.Create(1, "empty")
	fetch = parked("empty", 0)
	id = waiting.Send(fetch)
	awaitParked(t, node)

	started := time.Now()
	require.NoError(t, node.Stop(), "exit code 0")
	took := time.Since(started)
	cancel()
	assert.Less(t, took, 10*time.Second)
	answer := frames.Receive[*kmsg.FetchResponse](waiting, fetch, id)
	assert.Empty(t, answer.Topics[0].Partitions[0].RecordBatches)
	require.NoError(t, waiting.Closed(frames.Patience))
	require.NoError(t, idle.Closed(frames.Patience))

	checked := harness.Run(t, "log", "check", node.Dir)
	assert.Zero(t, checked.Code, checked.Output)
	assert.Contains(t, checked.Output, "cleanly stopped")
	require.NoError(t, node.Start())
	opened := node.Lines(`"log opened"`)
	require.Len(t, opened, 2)
	assert.Contains(t, opened[1], `"after_clean_stop":true`, "nothing to look through")
	c := frames.Dial(t, node.Address)
	got := c.ReadAll("kept", 0, 0)
	require.GreaterOrEqual(t, int64(len(got)), acked.Load())
	for i := range acked.Load() {
		require.Equal(t, fmt.Sprint("kept ", i), got[i])
	}
}

// TestSecondSignalStopsAtOnce does not wait for the rest, and loses nothing.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	node := harness.Start(t)
	write(t, node, "kept", 10)
	waiting := frames.Dial(t, node.Address)
	waiting.Send(parked("kept", 10))
	awaitParked(t, node)
	require.NoError(t, node.Signal(syscall.SIGTERM))
	_ = node.Signal(syscall.SIGTERM) // It may be gone already.
	select {
	case <-node.Exited():
	case <-time.After(5 * time.Second):
		t.Fatal("it still runs 5 s after the second signal")
	}
	assert.Zero(t, node.ExitCode())
	require.NoError(t, node.Start())
	read(t, node, "kept", 10)
}

// TestServiceManagerIsTold is systemd's protocol: ready when requests are
// served, stopping when asked to.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "notify") // Short: a socket's path has a limit.
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	node := harness.New(t)
	node.Env = []string{"NOTIFY_SOCKET=" + path}
	require.NoError(t, node.Start())
	told := func() string {
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(frames.Patience)))
		b := make([]byte, 1000)
		n, err := socket.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	assert.Contains(t, strings.Split(told(), "\n"), "READY=1")
	write(t, node, "kept", 1)
	require.NoError(t, node.Stop())
	assert.Contains(t, strings.Split(told(), "\n"), "STOPPING=1")
}

// TestPauseLongerThanTheLease stops the process for longer than its lease in
// etcd lasts, as a frozen machine does. It goes on by itself: nothing that was
// acknowledged is lost, and clients see errors that they retry only.
// MAINSTEM_PAUSE is how long, such as 60s.
func TestPauseLongerThanTheLease(t *testing.T) {
	t.Parallel()
	pause := 15 * time.Second
	if s := os.Getenv("MAINSTEM_PAUSE"); s != "" {
		var err error
		pause, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	node := harness.Start(t)
	frames.Dial(t, node.Address).Create(4, "t")
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordDeliveryTimeout(5*time.Minute), kgo.MaxBufferedRecords(64))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	acks := newAcks()
	go acks.produce(ctx, cl, "t", 4)
	require.Eventually(t, func() bool { return acks.count() > 100 }, frames.Patience, time.Millisecond)

	require.NoError(t, node.Signal(syscall.SIGSTOP))
	select {
	case <-node.Exited():
		t.Fatal("it ended")
	case <-time.After(pause):
	}
	codes := newAcks() // What raw clients see, from the first moment on.
	require.NoError(t, node.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		p := frames.Dial(t, node.Address).Append("t", 0, frames.NewBatch(frames.Values("raw 0")...).Seal())
		if p.ErrorCode != 0 && !kerr.IsRetriable(kerr.ErrorForCode(p.ErrorCode)) {
			codes.fail(kerr.ErrorForCode(p.ErrorCode))
		}
		return p.ErrorCode == 0
	}, frames.Patience, 20*time.Millisecond, "it serves again by itself")
	after := acks.count()
	require.Eventually(t, func() bool { return acks.count() > after+100 }, frames.Patience, time.Millisecond, "and so it does for the producer")
	cancel()
	require.NoError(t, codes.failed())
	require.NoError(t, acks.failed())
	require.NoError(t, cl.Flush(context.Background()))
	acks.verify(t, node, "t", 4)
	assert.Empty(t, node.Lines(`"level":"fatal"`))
	require.NoError(t, node.Stop())
}
