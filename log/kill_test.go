package log_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

const killPartitions = 10_000

// openKill opens the store of TestOpenAfterKill.
func openKill(dir string) (*log.Store, error) {
	return log.Open(log.Options{FS: vfs.OS(), Dir: dir, ClusterID: "kill", NodeID: 1})
}

// TestFillUntilKilled is the process that TestOpenAfterKill kills.
func TestFillUntilKilled(t *testing.T) {
	dir := os.Getenv("MAINSTEM_KILL_DIR")
	if dir == "" {
		t.Skip("run by TestOpenAfterKill")
	}
	mb, err := strconv.ParseInt(os.Getenv("MAINSTEM_KILL_MB"), 10, 64)
	require.NoError(t, err)
	s, err := openKill(dir)
	require.NoError(t, err)
	ps := storetest.Create(t, s, 1, "filled", killPartitions, log.Async)
	payload := make([]byte, 48<<10)
	for i := range payload {
		payload[i] = byte(i * i)
	}
	records := storetest.Batch(t, batch.Spec{}, 1_700_000_000_000, string(payload))
	const segment = 128 << 20
	full := func(n int64) bool { return n >= mb<<20 && n%segment > segment*9/10 } // The open segment is nearly full.
	acked := make([]int64, killPartitions)
	for n, i := int64(0), 0; !full(n); i++ {
		p := ps[i%killPartitions]
		a, err := p.Append(log.Append{Records: records, LeaderEpoch: 1})
		require.NoError(t, err)
		if i%50 == 49 {
			require.NoError(t, s.Commit(a.Ticket))
		}
		acked[i%killPartitions]++
		n += int64(len(records)) + 80
	}
	a, err := ps[0].Append(log.Append{Records: records, LeaderEpoch: 1})
	require.NoError(t, err)
	require.NoError(t, s.Commit(a.Ticket))
	fmt.Println("filled", acked[0]+1, acked[killPartitions-1])
	select {} // Until it is killed.
}

// TestOpenAfterKill opens a store after kill -9 of the process that filled it
// with MAINSTEM_KILL_MB megabytes over 10,000 partitions.
func TestOpenAfterKill(t *testing.T) {
	mb := os.Getenv("MAINSTEM_KILL_MB")
	if mb == "" {
		mb = "200"
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestFillUntilKilled$", "-test.timeout", "30m")
	cmd.Env = append(os.Environ(), "MAINSTEM_KILL_DIR="+dir, "MAINSTEM_KILL_MB="+mb)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // It was killed.
	require.NoError(t, err)
	var first, last int64
	_, err = fmt.Sscanf(line, "filled %d %d", &first, &last)
	require.NoError(t, err, "%q", line)

	begin := time.Now()
	s, err := openKill(dir)
	require.NoError(t, err)
	took := time.Since(begin)
	st := s.Stats()
	t.Logf("opened %d segments, %d partitions, %d entries in memory in %v", st.Segments, st.Partitions, st.EntriesInMemory, took)
	require.False(t, s.CleanStart())
	require.Equal(t, killPartitions, st.Partitions)
	require.GreaterOrEqual(t, s.Partition(storetest.ID(1, 0)).End(), first)
	require.GreaterOrEqual(t, s.Partition(storetest.ID(1, killPartitions-1)).End(), last)
	require.Less(t, took, 20*time.Second, "the goal is 2 s on an idle machine")
	begin = time.Now()
	for i := range int32(20) {
		b, err := s.Partition(storetest.ID(1, i)).Read(0, 1, 1<<20, true)
		require.NoError(t, err)
		require.Positive(t, b.Size())
		b.Release()
	}
	t.Logf("20 first cold reads in %v", time.Since(begin))
	require.NoError(t, s.Close())
}
