package badinput

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestWipedMetadata refuses to take an empty etcd for the truth: the log's data
// would belong to no topic.
func TestWipedMetadata(t *testing.T) {
	t.Parallel()
	node := stopped(t)
	saved := filepath.Join(t.TempDir(), "etcd")
	etcd := filepath.Join(node.Dir, "etcd")
	require.NoError(t, os.Rename(etcd, saved))
	refused(t, serve(t, node.Dir), exitIdentity, node.Dir, "etcd")
	refused(t, serve(t, node.Dir), exitIdentity, node.Dir, "etcd") // A second try is not fooled by what the first left.
	require.NoError(t, os.RemoveAll(etcd))
	require.NoError(t, os.Rename(saved, etcd))
	require.NoError(t, node.Start(), "nothing was changed")
	read(t, node, "kept", 10)
}

// TestWrongNodeID refuses a directory of another node, naming both.
func TestWrongNodeID(t *testing.T) {
	t.Parallel()
	node := stopped(t)
	refused(t, serve(t, node.Dir, "node.id=2"), exitIdentity, "node", "1", "2")
	require.NoError(t, node.Start())
	read(t, node, "kept", 10)
}

// TestDirectoryOfAnotherCluster mixes the log of one with the etcd of another.
func TestDirectoryOfAnotherCluster(t *testing.T) {
	t.Parallel()
	one, other := stopped(t), stopped(t)
	mixed := copyTree(t, one.Dir)
	require.NoError(t, os.RemoveAll(filepath.Join(mixed, "etcd")))
	require.NoError(t, os.CopyFS(filepath.Join(mixed, "etcd"), os.DirFS(filepath.Join(other.Dir, "etcd"))))
	refused(t, serve(t, mixed), exitIdentity, mixed, "cluster")
}

// TestSharedMetadata is about an etcd of the user's: another prefix, a directory
// that was copied to a second node, and an etcd that is not there.
func TestSharedMetadata(t *testing.T) {
	t.Parallel()
	etcd := harness.StartEtcd(t)
	node := harness.Start(t, "etcd.endpoints="+etcd.Endpoint, "broker.session.timeout.ms=2000")
	write(t, node, "kept", 10)
	second := fresh(t)
	refused(t, serve(t, second, "etcd.endpoints="+etcd.Endpoint), exitIdentity, "node id 1", "in use", node.Address)
	require.NoError(t, node.Stop())

	refused(t, serve(t, node.Dir, "etcd.endpoints="+etcd.Endpoint, "etcd.prefix=/elsewhere"), exitIdentity, node.Dir, "/elsewhere")
	refused(t, serve(t, node.Dir), exitIdentity, node.Dir) // The embedded etcd instead, which is empty.
	require.NoError(t, os.RemoveAll(filepath.Join(node.Dir, "etcd")))

	copied := copyTree(t, node.Dir)
	refused(t, serve(t, copied, "etcd.endpoints="+etcd.Endpoint, "node.id=2"), exitIdentity, "node", "1", "2")
	require.NoError(t, node.Start())
	refused(t, serve(t, copied, "etcd.endpoints="+etcd.Endpoint), exitIdentity, "node id 1", "in use")
	read(t, node, "kept", 10)
}
