package vfs_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

// lockEnv makes the test binary a process that takes a lock and holds it until its input ends.
const lockEnv = "VFS_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(lockEnv); name != "" {
		os.Exit(holdLock(name))
	}
	os.Exit(m.Run())
}

func holdLock(name string) int {
	if _, err := vfs.OS().Lock(name); err != nil {
		return 1
	}
	if _, err := os.Stdout.WriteString("locked\n"); err != nil {
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // It ends when the parent says so, or dies.
	return 0
}

func TestALockOfAnotherProcessIsNamedAndEndsWithIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), lockEnv+"="+name)
	_, err := holder.StdinPipe() // Wait closes it.
	require.NoError(t, err)
	stdout, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)

	_, err = vfs.OS().Lock(name)
	var locked *vfs.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, holder.Process.Pid, locked.PID)

	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	lock, err := vfs.OS().Lock(name)
	require.NoError(t, err, "kill -9 frees it")
	require.NoError(t, lock.Close())
}

func TestAllocateTakesTheSpace(t *testing.T) {
	f, err := vfs.OS().Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	const size = 3 << 20
	require.NoError(t, f.Allocate(0, size))
	info, err := os.Stat(f.Name())
	require.NoError(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	require.GreaterOrEqual(t, stat.Blocks*512, int64(size))
	require.NoError(t, f.Close())
}

func TestAnUnwritableDirectoryIsReported(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	_, err := vfs.OS().Create(filepath.Join(dir, "f"))
	require.ErrorIs(t, err, os.ErrPermission)
	_, err = vfs.OS().Lock(filepath.Join(dir, "lock"))
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorIs(t, vfs.OS().MkdirAll(filepath.Join(dir, "a", "b")), os.ErrPermission)
}
