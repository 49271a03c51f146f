package controller

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/controller/meta"
)

// smallDisk mounts a filesystem of 64 MB, or skips the test where that is not allowed.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a small filesystem can be mounted by root only")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "mainstem-test", dir).CombinedOutput(); err != nil {
		t.Skipf("no small filesystem can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	return dir
}

// fillUp takes all room of a disk, and returns what gives it back.
func fillUp(t *testing.T, disk string) (giveBack func()) {
	t.Helper()
	path := filepath.Join(disk, "stuff")
	f, err := os.Create(path)
	require.NoError(t, err)
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

// fillHoles writes a file anew, without holes. etcd maps its database and touches all of it, which on a tmpfs, unlike on a disk, turns
// holes into pages; they would take what the reserve gave up.
func fillHoles(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func TestEmbeddedEtcdStartsOnAFullDisk(t *testing.T) {
	dir := smallDisk(t)
	o := Options{Dir: dir, NodeID: 1}
	require.NoError(t, register(t, o).Close(t.Context()))
	require.FileExists(t, reserveFile(dir))
	fillHoles(t, filepath.Join(dir, "etcd", "member", "snap", "db"))
	giveBack := fillUp(t, dir)
	free, err := freeBytes(dir)
	require.NoError(t, err)
	require.Zero(t, free)

	c := register(t, o)
	for i := range 10 { // More than any page that happens to be free holds.
		r := meta.Resource{Type: meta.ResourceGroup, Name: fmt.Sprint(i)}
		require.NoError(t, c.AlterConfigs(t.Context(), r, set("big", strings.Repeat("x", 100_000))))
	}
	require.NoError(t, c.Close(t.Context()))
	require.NoFileExists(t, reserveFile(dir), "its room is in use")

	giveBack()
	require.NoError(t, register(t, o).Close(t.Context()))
	require.FileExists(t, reserveFile(dir), "there is room again")
}
