package crashtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestAcknowledgedAfterSync watches the binary's system calls: every answer comes
// after an fdatasync that began after the write of the record's bytes.
func TestAcknowledgedAfterSync(t *testing.T) {
	violations, acks := traced(t)
	require.Empty(t, violations)
	t.Logf("%d acknowledged records, each after its sync", acks)
}

// TestAcknowledgedAfterSyncNotices runs the same with the sync call stubbed out
// in the kernel's place: the check above must fail then.
func TestAcknowledgedAfterSyncNotices(t *testing.T) {
	violations, acks := traced(t, "--inject=fdatasync:retval=0")
	require.Len(t, violations, acks, "without a sync every acknowledgement is a lie")
}

// traced produces records one by one under strace and judges each.
func traced(t *testing.T, strace ...string) (violations []string, acks int) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: apt-get install strace")
	}
	if out, err := exec.Command("strace", "-f", "-e", "trace=none", "true").CombinedOutput(); err != nil {
		t.Skipf("processes cannot be traced here: %s", out)
	}
	file := filepath.Join(t.TempDir(), "trace")
	node := harness.New(t)
	node.Prefix = append([]string{"strace", "-f", "-ttt", "-T", "-xx", "-s", "2000",
		"-e", "trace=pwrite64,pwritev,pwritev2,fdatasync", "-o", file}, strace...)
	require.NoError(t, node.Start())
	create(t, node.Address, "traced", 8, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	defer cl.Close()
	acked := map[string]time.Time{}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for i := range 200 {
		mark := fmt.Sprintf("MARK-%06d", i)
		r := &kgo.Record{Topic: "traced", Partition: int32(i % 8), Value: []byte(mark)}
		require.NoError(t, cl.ProduceSync(ctx, r).FirstErr())
		acked[mark] = time.Now()
	}
	node.Kill()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	return judge(string(raw), acked), len(acked)
}
