package controller

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childDir is the environment variable that makes the test binary a broker in that directory, for tests that stop or kill one.
const childDir = "MAINSTEM_CONTROLLER_TEST_CHILD"

// runChild registers with an embedded etcd and then prints each change of Fenced until it is killed. Before the first line it has made a topic.
func runChild(dir string) {
	ctx := context.Background()
	c, err := Open(ctx, Options{Dir: dir, NodeID: 1, LeaseTTL: 2 * time.Second})
	if err == nil {
		err = c.Register(ctx, broker())
	}
	if err == nil {
		err = c.CreateTopics(ctx, []NewTopic{{Name: "t", Assignments: onNode1(200)}})[0]
	}
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	was, looked := c.Fenced(), time.Now()
	fmt.Println(c.ClusterID()) // The test may stop this process right after.
	for range time.Tick(time.Millisecond) {
		now := time.Now()
		is := c.Fenced()
		if now.Sub(looked) > 3*time.Second {
			fmt.Println("stood still, fenced:", is)
		}
		if looked = now; is != was {
			was = is
			fmt.Println("fenced:", is, "err:", c.Err())
		}
	}
}

func startChild(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func TestStoppedProcessIsFencedWhenItGoesOnAndRegistersAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, lines := startChild(t, dir)
	require.True(t, lines.Scan())
	id := lines.Text()
	require.Len(t, id, 22)

	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	<-time.After(4 * time.Second) // Twice the lease.
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	scanTo := func(line string) { // A busy machine may have fenced it before, too.
		for lines.Scan() && lines.Text() != line {
			t.Log(lines.Text())
			require.NotEqual(t, "stood still, fenced: false", lines.Text())
		}
		require.Equal(t, line, lines.Text())
	}
	scanTo("stood still, fenced: true")
	scanTo("fenced: false err: <nil>")

	// Killed, the next one takes the registration over at once.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	began := time.Now()
	c := register(t, Options{Dir: dir, NodeID: 1, WantClusterID: id, HasData: true})
	require.Less(t, time.Since(began), 1500*time.Millisecond)
	require.Len(t, c.Image().Topic("t").Partitions, 200)
	require.False(t, c.Fenced())
}
