package controller

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestClusterIDIsMadeOnce(t *testing.T) {
	o := external(t)
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			c, err := Open(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = c.ClusterID()
			closeNow(c)
		})
	}
	wg.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.Regexp(t, regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{21}$`), ids[0])
	raw, ok := meta.ParseID(ids[0])
	require.True(t, ok)
	require.EqualValues(t, 4, raw[6]>>4, "UUID version")
}

// refused opens and wants an IdentityError that says all of parts.
func refused(t *testing.T, o Options, parts ...string) *IdentityError {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err == nil {
		closeNow(c)
	}
	var identity *IdentityError
	require.ErrorAs(t, err, &identity)
	for _, p := range append(parts, o.Dir) {
		require.ErrorContains(t, err, p)
	}
	return identity
}

func TestEtcdOfAnotherClusterIsRefused(t *testing.T) {
	o := external(t)
	id := open(t, o).ClusterID()
	o.WantClusterID = "MkU3OEVBNTcwNTJENDM2Qg"
	e := refused(t, o, id, o.WantClusterID, "prefix "+o.Prefix)
	require.Equal(t, id, e.Found)
	o.WantClusterID, o.HasData = "", true
	refused(t, o, "does not say of which cluster")
}

func TestWipedEtcdIsRefusedWhileTheLogHoldsData(t *testing.T) {
	o := external(t)
	o.WantClusterID = "MkU3OEVBNTcwNTJENDM2Qg"
	refused(t, o, "has no cluster under the prefix", "bring etcd back from a backup")
	o.WantClusterID, o.HasData = "", true
	refused(t, o, "holds data")
	resp, err := raw(t).Get(t.Context(), meta.Keys{Prefix: o.Prefix}.Cluster())
	require.NoError(t, err)
	require.Empty(t, resp.Kvs, "nothing was made")
}

func TestOtherPrefixIsRefusedAndNamed(t *testing.T) {
	o := external(t)
	o.WantClusterID = open(t, o).ClusterID()
	o.Prefix = "/wrong" + o.Prefix
	refused(t, o, "under the prefix "+o.Prefix, "this etcd is not empty")
}

func TestEmbeddedEtcdWithoutItsLogIsRefused(t *testing.T) {
	o := Options{Dir: t.TempDir(), NodeID: 1}
	c := register(t, o)
	o.WantClusterID, o.HasData = c.ClusterID(), true
	closeNow(c)
	files, err := filepath.Glob(filepath.Join(walDir(o.Dir), "*.wal"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	refused(t, o, walDir(o.Dir)+" is gone", "from a backup")
}

func TestWipedEmbeddedEtcdIsRefusedAndNotMadeAnew(t *testing.T) {
	o := Options{Dir: t.TempDir(), NodeID: 1}
	c := register(t, o)
	o.WantClusterID, o.HasData = c.ClusterID(), true
	closeNow(c)
	require.NoError(t, os.RemoveAll(etcdDir(o.Dir)))
	for range 2 {
		refused(t, o, "is gone", "from a backup")
		require.NoDirExists(t, etcdDir(o.Dir))
	}
}

func TestEmbeddedEtcdOfAnotherDirectoryIsRefused(t *testing.T) {
	o := Options{Dir: t.TempDir(), NodeID: 1}
	closeNow(register(t, o))
	o.WantClusterID = "MkU3OEVBNTcwNTJENDM2Qg"
	refused(t, o, "belongs to cluster")
}

func TestCopyOfADataDirectoryIsRefusedWhileTheFirstLives(t *testing.T) {
	t.Parallel()
	o := external(t)
	o.LeaseTTL = 2 * time.Second
	first := register(t, o)
	copied := t.TempDir()
	require.NoError(t, exec.Command("cp", "-a", o.Dir+"/.", copied).Run())
	o.Dir, o.WantClusterID, o.HasData = copied, first.ClusterID(), true
	second := open(t, o)
	var duplicate *DuplicateNodeError
	require.ErrorAs(t, second.Register(t.Context(), broker()), &duplicate)
}
