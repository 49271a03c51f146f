package replicatest

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/metrics"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/vfs"
)

// NodeID is the id of the broker under test.
const NodeID = 1

// Options are for what a test wants otherwise. The zero value is fine.
type Options struct {
	FS        vfs.FS   // vfs.OS if nil
	Dir       string   // a temporary directory if empty
	Overrides []string // "key=value" settings of the broker
	Events    replica.Events
	// Log changes the options of the store.
	Log func(*log.Options)
}

// Node is one broker's partitions.
type Node struct {
	TB      testing.TB
	Options Options
	Store   *log.Store
	Live    *config.Live
	Metrics *metrics.Metrics
	Set     *replica.Set
	Image   *meta.Image
	// Fenced is what the broker's lease is said to be.
	Fenced atomic.Bool

	revision int64
	nextID   byte
}

// Open opens a node, which is closed at the end of the test.
func Open(tb testing.TB, o Options) *Node {
	tb.Helper()
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	n := &Node{TB: tb, Options: o, Image: meta.Empty()}
	n.start()
	tb.Cleanup(func() {
		if n.Store != nil {
			require.NoError(tb, n.Store.Close())
		}
	})
	return n
}

func (n *Node) start() {
	n.TB.Helper()
	require.NoError(n.TB, n.open())
}

func (n *Node) tryStart() bool {
	n.TB.Helper()
	if n.open() == nil {
		return true
	}
	n.Store = nil
	return false
}

func (n *Node) open() error {
	n.TB.Helper()
	overrides, err := config.ParseOverrides(n.Options.Overrides)
	require.NoError(n.TB, err)
	static, err := config.Load(config.Options{Sources: []config.Source{overrides}})
	require.NoError(n.TB, err)
	n.Live = config.NewLive(static)
	n.Metrics = metrics.New(metrics.Options{})
	o := log.Options{
		FS: n.Options.FS, Dir: n.Options.Dir, ClusterID: "cluster", NodeID: NodeID,
		SegmentBytes: 8 << 20, RingBytes: 4 << 20, Events: log.Events{Advanced: replica.Advanced},
	}
	if n.Options.Log != nil {
		n.Options.Log(&o)
	}
	if n.Store, err = log.Open(o); err != nil {
		return err
	}
	n.Set = replica.NewSet(replica.Options{
		Store: n.Store, NodeID: NodeID, Live: n.Live, Metrics: n.Metrics, Fenced: n.Fenced.Load, Events: n.Options.Events,
	})
	return nil
}

// Restart closes the store and opens it again, raises the leader epochs as a
// broker does, and applies the whole metadata.
func (n *Node) Restart() {
	n.TB.Helper()
	require.NoError(n.TB, n.Store.Close())
	n.Reopen()
}

// Reopen is Restart for a store that is closed or lost.
func (n *Node) Reopen() {
	n.TB.Helper()
	n.start()
	n.RaiseEpochs()
	require.NoError(n.TB, n.Set.Apply(n.Image, meta.Diff(meta.Empty(), n.Image)))
}

// TryReopen is Reopen after a crash that may have taken what the store needs.
func (n *Node) TryReopen() bool {
	n.TB.Helper()
	if !n.tryStart() {
		return false
	}
	n.RaiseEpochs()
	return n.Set.Apply(n.Image, meta.Diff(meta.Empty(), n.Image)) == nil
}

// ReopenAsIs is Reopen without the leader epochs being raised.
func (n *Node) ReopenAsIs() {
	n.TB.Helper()
	n.start()
	require.NoError(n.TB, n.Set.Apply(n.Image, meta.Diff(meta.Empty(), n.Image)))
}

// RaiseEpochs raises the leader epochs in the image as the controller would.
func (n *Node) RaiseEpochs() {
	n.TB.Helper()
	n.change(n.opening(NodeID, replica.EpochLag(n.Store, n.Image, NodeID)))
}

// Apply changes the metadata.
func (n *Node) Apply(changes ...meta.Change) {
	n.TB.Helper()
	require.NoError(n.TB, n.TryApply(changes...))
}

// TryApply is Apply for changes that the store may refuse.
func (n *Node) TryApply(changes ...meta.Change) error {
	n.TB.Helper()
	d := n.change(changes...)
	return n.Set.Apply(n.Image, d)
}

// change moves the image without telling the set.
func (n *Node) change(changes ...meta.Change) meta.Delta {
	n.TB.Helper()
	n.revision++
	for i := range changes {
		changes[i].ModRevision = n.revision
	}
	img, d, err := meta.Apply(n.Image, n.revision, changes)
	require.NoError(n.TB, err)
	n.Image = img
	return d
}
