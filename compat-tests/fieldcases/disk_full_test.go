package fieldcases

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// smallDisk mounts a filesystem of 300 MB, or skips the test where that is not
// allowed. In memory it fills up as a disk does.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a small filesystem can be mounted by root only")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=300m", "mainstem-test", dir).CombinedOutput(); err != nil {
		t.Skipf("no small filesystem can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}

// free is the room on a filesystem.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &s))
	return int64(s.Bavail) * s.Bsize
}

// fill produces until the broker refuses, and returns how many records it took.
func fill(t *testing.T, c *frames.Conn, topic string, batch []byte) (taken int64) {
	t.Helper()
	for range 2000 {
		p := c.Append(topic, 0, batch)
		if p.ErrorCode != 0 {
			assert.EqualValues(t, 56, p.ErrorCode, "an error that clients retry")
			return taken
		}
		require.Equal(t, taken, p.BaseOffset)
		taken++
	}
	t.Fatal("the disk does not fill up")
	return 0
}

// TestFullDiskHealsByItself is O-ST-4: while the disk is full, records are
// refused before they have an offset, reads and deletions go on; when there is
// room again, so do writes, without a restart.
func TestFullDiskHealsByItself(t *testing.T) {
	disk := smallDisk(t)
	node := harness.New(t, "mainstem.commitlog.segment.bytes=8388608", "log.retention.check.interval.ms=300")
	node.Dir = filepath.Join(disk, "data")
	require.NoError(t, node.Start())
	c := frames.Dial(t, node.Address)
	c.Create(1, "kept", "filler")
	small := good("kept")
	for range 10 {
		c.MustAppend("kept", 0, small)
	}
	taken := fill(t, c, "filler", good(strings.Repeat("x", 1_000_000)))
	require.Greater(t, taken, int64(150), "most of the disk is used")
	assert.True(t, node.Ready(), "a full disk does not end a broker")
	assert.Len(t, c.ReadAll("kept", 0, 0), 10)
	assert.Equal(t, taken, c.End("filler", 0), "a refused record has no offset")

	// A start must work on the full disk, too; nothing else may help it.
	stuff(t, disk)
	node.Kill()
	require.NoError(t, node.Start(), "%d bytes free", free(t, disk))
	c = frames.Dial(t, node.Address)
	kept := int64(len(c.ReadAll("kept", 0, 0)))
	require.EqualValues(t, 10, kept)
	require.Equal(t, taken, c.End("filler", 0), "all that was acknowledged is there")

	deleteTopic(t, c, "filler")
	require.NoError(t, os.Remove(filepath.Join(disk, "stuff")))
	ctx, cancel := context.WithTimeout(context.Background(), frames.Patience)
	defer cancel()
	for c.Append("kept", 0, small).ErrorCode != 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("still refused %v after there is room, %d bytes free", frames.Patience, free(t, disk))
		case <-time.After(50 * time.Millisecond):
		}
	}
	assert.EqualValues(t, kept+1, c.End("kept", 0))
	require.Eventually(t, func() bool { return free(t, disk) > 150<<20 }, frames.Patience, 50*time.Millisecond,
		"the deleted topic's room is given back")
	c.Create(1, "another")
	large := good(strings.Repeat("y", 1_000_000))
	for i := range 20 {
		require.EqualValues(t, i, c.MustAppend("another", 0, large))
	}
	require.NoError(t, node.Stop())
}

// stuff writes a file until no byte is free.
func stuff(t *testing.T, disk string) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "stuff"))
	require.NoError(t, err)
	defer f.Close()
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			block = block[:len(block)/2]
		}
	}
	require.Zero(t, free(t, disk))
}
