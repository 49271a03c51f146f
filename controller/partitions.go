package controller

import (
	"context"
	"errors"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// PartitionRef names a partition.
type PartitionRef struct {
	Topic     meta.TopicID
	Partition int32
}

// PartitionChange makes the next state of the partition refs[n] of the present
// one. It is given the newest image, may be called more than once, and must not
// touch what it is given. The same state again means that nothing is written.
type PartitionChange func(n int, image *meta.Image, p meta.Partition) (meta.Partition, error)

// ChangePartitions changes leaders and replicas of partitions; one error (or nil) each, of change as it is. A partition that
// is named twice is changed twice, in their order. When it returns, the image shows the new states and the subscribers have
// taken them in. Partitions are changed chunk by chunk, so some may be changed when there is an error.
func (c *Client) ChangePartitions(ctx context.Context, refs []PartitionRef, change PartitionChange) []error {
	e := &partitionEdit{c: c, refs: refs, change: change, errs: make([]error, len(refs)), tried: map[int]meta.Partition{}}
	for i := range refs {
		e.pending = append(e.pending, i)
	}
	var rev int64
	for len(e.pending) > 0 {
		err := c.commit(ctx, func(ctx context.Context) error { return e.try(ctx, &rev) })
		if errors.Is(err, errStale) {
			err = c.catchUp(ctx)
		}
		if err != nil {
			for _, n := range e.pending {
				e.errs[n] = err
			}
			break
		}
	}
	c.settle(ctx, rev, e.errs)
	return e.errs
}

// errStale says that the image does not show what etcd holds by now.
var errStale = errors.New("the image is behind")

// partitionEdit are changes of partitions on their way.
type partitionEdit struct {
	c       *Client
	refs    []PartitionRef
	change  PartitionChange
	errs    []error
	pending []int                  // into refs: neither done nor refused
	tried   map[int]meta.Partition // by place in refs: what the last attempt has tried to write
	unsure  bool                   // that attempt, or one before it, may have been carried out
}

// A transaction has three conditions for each chunk and three for each node, which must not be more than opsPerTxn.
const chunksPerTxn, nodesPerTxn = 28, 14

// partitionWrite is what goes into one transaction.
type partitionWrite struct {
	image  *meta.Image
	chunks []*chunkEdit
	nodes  map[int32]bool // whose openings the epochs depend on; true: that must be alive, too
	later  []int          // into refs: what did not go in
}

// chunkEdit is the new content of one chunk.
type chunkEdit struct {
	topic *meta.Topic
	chunk int
	parts []meta.Partition
	refs  []int // what has changed it
}

// try plans what is pending on the image and writes as much of it as one transaction takes.
func (e *partitionEdit) try(ctx context.Context, rev *int64) error {
	w := e.plan()
	if len(w.chunks) == 0 {
		e.pending = nil
		return nil
	}
	cmps := e.conditions(w)
	var puts []clientv3.Op
	clear(e.tried)
	for _, edit := range w.chunks {
		puts = append(puts, clientv3.OpPut(e.c.keys.Chunk(edit.topic.ID, edit.chunk), string(meta.EncodeChunk(edit.parts))))
		for _, n := range edit.refs {
			e.tried[n] = edit.parts[int(e.refs[n].Partition)%meta.ChunkPartitions]
		}
	}
	resp, err := e.c.txn(ctx, cmps, puts)
	if err != nil {
		e.unsure = true
		return err
	}
	if !resp.Succeeded {
		return &verdict{errStale} // Planned again when the image shows what came between.
	}
	*rev, e.pending, e.unsure = resp.Header.GetRevision(), w.later, false
	return nil
}

// plan applies the pending changes to copies of their chunks.
func (e *partitionEdit) plan() *partitionWrite {
	type place struct {
		id    meta.TopicID
		chunk int
	}
	w := &partitionWrite{image: e.c.Image(), nodes: map[int32]bool{}}
	open := map[place]*chunkEdit{}
	for _, n := range e.pending {
		ref := e.refs[n]
		topic := w.image.TopicByID(ref.Topic)
		if topic == nil || ref.Partition < 0 || int(ref.Partition) >= len(topic.Partitions) {
			e.errs[n] = unknownTopic(ref.Topic)
			continue
		}
		at := place{ref.Topic, int(ref.Partition) / meta.ChunkPartitions}
		edit := open[at]
		if edit == nil {
			from := at.chunk * meta.ChunkPartitions
			edit = &chunkEdit{topic: topic, chunk: at.chunk}
			edit.parts = slices.Clone(topic.Partitions[from:min(from+meta.ChunkPartitions, len(topic.Partitions))])
			open[at] = edit
		}
		e.apply(n, w, edit)
	}
	return w
}

// apply makes one change in a chunk, or leaves it for later.
func (e *partitionEdit) apply(n int, w *partitionWrite, edit *chunkEdit) {
	p := &edit.parts[int(e.refs[n].Partition)%meta.ChunkPartitions]
	if done, ok := e.tried[n]; ok && e.unsure && p.Same(&done) {
		e.errs[n] = nil // By an attempt whose answer was lost.
		return
	}
	next, err := e.change(n, w.image, *p)
	e.errs[n] = err
	if err != nil || next.Same(p) {
		return
	}
	first := len(edit.refs) == 0
	if first && len(w.chunks) == chunksPerTxn || len(w.nodes) > nodesPerTxn-2 {
		w.later = append(w.later, n)
		return
	}
	for _, id := range []int32{p.Leader, next.Leader} {
		if id >= 0 {
			w.nodes[id] = w.nodes[id] || id == next.Leader && id != p.Leader
		}
	}
	*p = next
	edit.refs = append(edit.refs, n)
	if first {
		w.chunks = append(w.chunks, edit)
	}
}

// conditions say that everything that the new states depend on is still as the image shows it.
func (e *partitionEdit) conditions(w *partitionWrite) []clientv3.Cmp {
	since := w.image.Revision() + 1
	var cmps []clientv3.Cmp
	for _, edit := range w.chunks {
		t := edit.topic
		record := meta.TopicRecord{Name: t.Name, ID: t.ID, Internal: t.Internal, Partitions: len(t.Partitions)}
		chunk := e.c.keys.Chunk(t.ID, edit.chunk)
		cmps = append(cmps,
			clientv3.Compare(clientv3.Value(e.c.keys.Topic(t.Name)), "=", string(meta.EncodeTopic(record))),
			clientv3.Compare(clientv3.CreateRevision(chunk), ">", 0),
			clientv3.Compare(clientv3.ModRevision(chunk), "<", since))
	}
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(e.c.keys.Openings(id)), "<", since))
		if live := e.c.keys.Live(id); w.nodes[id] {
			cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(live), ">", 0), clientv3.Compare(clientv3.ModRevision(live), "<", since))
		}
	}
	return cmps
}
