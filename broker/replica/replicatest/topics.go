package replicatest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller/meta"
)

// Topic is a topic to be made.
type Topic struct {
	Name       string
	ID         meta.TopicID // made up if zero
	Partitions int          // 1 if zero
	Replicas   []int32      // of each partition; NodeID alone if nil
	ISR        []int32      // all Replicas if nil
	Leader     int32        // the first of ISR if zero
	Configs    map[string]string
}

// Create makes topics in one change and returns the id of the last.
func (n *Node) Create(topics ...Topic) meta.TopicID {
	n.TB.Helper()
	changes, id := n.creation(topics...)
	n.Apply(changes...)
	return id
}

// TryCreate is Create for what the store may refuse.
func (n *Node) TryCreate(topics ...Topic) (meta.TopicID, error) {
	n.TB.Helper()
	changes, id := n.creation(topics...)
	return id, n.TryApply(changes...)
}

func (n *Node) creation(topics ...Topic) (changes []meta.Change, id meta.TopicID) {
	n.TB.Helper()
	for _, t := range topics {
		if t.ID == (meta.TopicID{}) {
			n.nextID++
			t.ID = meta.TopicID{0: 0xaa, 14: n.nextID >> 4, 15: n.nextID}
		}
		t.Partitions = max(t.Partitions, 1)
		if t.Replicas == nil {
			t.Replicas = []int32{NodeID}
		}
		parts := make([]meta.Partition, t.Partitions)
		for i := range parts {
			parts[i] = n.Image.NewPartition(t.Replicas, t.ISR)
			if t.Leader != 0 {
				parts[i].Leader = t.Leader
			}
		}
		changes = append(changes, meta.Change{
			Key:   meta.Keys{}.Topic(t.Name),
			Value: meta.EncodeTopic(meta.TopicRecord{Name: t.Name, ID: t.ID, Partitions: t.Partitions}),
		})
		changes = append(changes, chunks(t.ID, parts)...)
		if t.Configs != nil {
			changes = append(changes, meta.Change{Key: meta.Keys{}.TopicConfigs(t.ID), Value: meta.EncodeConfigs(t.Configs)})
		}
		id = t.ID
	}
	return changes, id
}

func chunks(id meta.TopicID, parts []meta.Partition) []meta.Change {
	var out []meta.Change
	n := 0
	for c := range slices.Chunk(parts, meta.ChunkPartitions) {
		out = append(out, meta.Change{Key: meta.Keys{}.Chunk(id, n), Value: meta.EncodeChunk(c)})
		n++
	}
	return out
}

// Configure replaces a topic's own settings.
func (n *Node) Configure(name string, configs map[string]string) {
	n.TB.Helper()
	t := n.Image.Topic(name)
	require.NotNil(n.TB, t)
	n.Apply(meta.Change{Key: meta.Keys{}.TopicConfigs(t.ID), Value: meta.EncodeConfigs(configs)})
}

// Elect changes the state of all partitions of a topic.
func (n *Node) Elect(name string, change func(p *meta.Partition)) {
	n.TB.Helper()
	t := n.Image.Topic(name)
	require.NotNil(n.TB, t)
	parts := slices.Clone(t.Partitions)
	for i := range parts {
		change(&parts[i])
	}
	n.Apply(chunks(t.ID, parts)...)
}

// Grow adds partitions to a topic.
func (n *Node) Grow(name string, to int) {
	n.TB.Helper()
	t := n.Image.Topic(name)
	require.NotNil(n.TB, t)
	parts := slices.Clone(t.Partitions)
	for len(parts) < to {
		parts = append(parts, n.Image.NewPartition([]int32{NodeID}, nil))
	}
	changes := []meta.Change{{
		Key:   meta.Keys{}.Topic(name),
		Value: meta.EncodeTopic(meta.TopicRecord{Name: name, ID: t.ID, Partitions: to}),
	}}
	n.Apply(append(changes, chunks(t.ID, parts)...)...)
}

// Delete deletes topics as the controller does, with a tombstone.
func (n *Node) Delete(names ...string) {
	n.TB.Helper()
	n.Apply(n.deletion(names...)...)
}

// DeleteWhileAway deletes topics without the set being told.
func (n *Node) DeleteWhileAway(names ...string) {
	n.TB.Helper()
	n.change(n.deletion(names...)...)
}

func (n *Node) deletion(names ...string) (changes []meta.Change) {
	for _, name := range names {
		t := n.Image.Topic(name)
		require.NotNil(n.TB, t)
		changes = append(changes, n.vanishing(t)...)
		changes = append(changes, meta.Change{
			Key:   meta.Keys{}.Deleted(t.ID),
			Value: meta.EncodeTombstone(meta.Tombstone{ID: t.ID, Name: name, Holders: []int32{NodeID}}),
		})
	}
	return changes
}

// Lose takes a topic out of the metadata without its having been deleted.
func (n *Node) Lose(name string) {
	n.TB.Helper()
	t := n.Image.Topic(name)
	require.NotNil(n.TB, t)
	n.Apply(n.vanishing(t)...)
}

func (n *Node) vanishing(t *meta.Topic) []meta.Change {
	changes := []meta.Change{
		{Key: meta.Keys{}.Topic(t.Name), Deleted: true},
		{Key: meta.Keys{}.TopicConfigs(t.ID), Deleted: true},
	}
	for c := 0; c*meta.ChunkPartitions < len(t.Partitions); c++ {
		changes = append(changes, meta.Change{Key: meta.Keys{}.Chunk(t.ID, c), Deleted: true})
	}
	return changes
}

// Broker registers another broker, or this one, in the metadata.
func (n *Node) Broker(b meta.Broker) {
	n.TB.Helper()
	n.Apply(
		meta.Change{Key: meta.Keys{}.Broker(b.ID), Value: meta.EncodeBroker(&b)},
		meta.Change{Key: meta.Keys{}.Live(b.ID), Value: meta.EncodeLive(meta.Live{Incarnation: b.Incarnation})},
	)
}

// Raise raises the epochs of all partitions that the broker leads.
func (n *Node) Raise(node, by int32) {
	n.TB.Helper()
	n.Apply(n.opening(node, by))
}

func (n *Node) opening(node, by int32) meta.Change {
	return meta.Change{Key: meta.Keys{}.Openings(node), Value: meta.EncodeNumber(int64(n.Image.Openings(node) + by))}
}

// Partition returns a partition that is here.
func (n *Node) Partition(topic string, i int32) *replica.Partition {
	n.TB.Helper()
	p, err := replica.Find(n.Set.Topic(topic), i)
	require.NoError(n.TB, err)
	return p
}
