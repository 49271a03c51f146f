package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mainstem/mainstem/controller/meta"
)

// NewTopic is a topic to create.
type NewTopic struct {
	Name        string
	ID          meta.TopicID // zero: one is chosen
	Assignments [][]int32    // replicas of each partition, the first is the leader
	Configs     map[string]string
	Internal    bool
}

// newTopic is a topic on its way into etcd.
type newTopic struct {
	*NewTopic
	index int
	key   string
	puts  []clientv3.Op
	bytes int
}

// CreateTopics creates topics, each of them whole or not at all; when it returns, the image shows those that succeeded and the
// subscribers have taken them in. One error (or nil) a topic. The chosen ids are put into topics.
func (c *Client) CreateTopics(ctx context.Context, topics []NewTopic) []error {
	errs := make([]error, len(topics))
	var group []*newTopic
	var ops, size int
	var rev int64
	names := map[string]bool{}
	flush := func() {
		rev = max(rev, c.createGroup(ctx, group, errs))
		group, ops, size = nil, 0, 0
		clear(names)
	}
	image := c.Image()
	for i := range topics {
		t, err := c.planTopic(image, &topics[i], i)
		if err != nil {
			errs[i] = err
			continue
		}
		if names[t.key] || ops+len(t.puts) > opsPerTxn || size+t.bytes > bytesPerTxn {
			flush()
		}
		group, ops, size = append(group, t), ops+len(t.puts), size+t.bytes
		names[t.key] = true
	}
	flush()
	c.settle(ctx, rev, errs)
	return errs
}

// settle waits until what was written is in the image. It marks what succeeded as timed out if it does not get there.
func (c *Client) settle(ctx context.Context, rev int64, errs []error) {
	if rev == 0 {
		return
	}
	if err := c.WaitRevision(ctx, rev); err != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = refuse(kerr.RequestTimedOut, "written, but not yet seen here: %v", err)
			}
		}
	}
}

// planTopic makes the writes of one topic.
func (c *Client) planTopic(image *meta.Image, t *NewTopic, index int) (*newTopic, error) {
	if !meta.LegalTopicName(t.Name) {
		return nil, refuse(kerr.InvalidTopicException, "The topic name '%s' is illegal: it has 1 to %d of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'.",
			t.Name, meta.MaxTopicName)
	}
	if len(t.Assignments) == 0 {
		return nil, refuse(kerr.InvalidPartitions, "Topic '%s' has no partitions.", t.Name)
	}
	if t.ID == (meta.TopicID{}) {
		t.ID = newID()
	}
	parts, err := newPartitions(image, t.Assignments)
	if err != nil {
		return nil, err
	}
	rec := meta.TopicRecord{Name: t.Name, ID: t.ID, Internal: t.Internal, Partitions: len(parts)}
	out := &newTopic{NewTopic: t, index: index, key: c.keys.Topic(t.Name)}
	out.put(out.key, meta.EncodeTopic(rec))
	for chunk := 0; chunk*meta.ChunkPartitions < len(parts); chunk++ {
		from := chunk * meta.ChunkPartitions
		out.put(c.keys.Chunk(t.ID, chunk), meta.EncodeChunk(parts[from:min(from+meta.ChunkPartitions, len(parts))]))
	}
	if len(t.Configs) > 0 {
		out.put(c.keys.TopicConfigs(t.ID), meta.EncodeConfigs(t.Configs))
	}
	if len(out.puts) > opsPerTxn || out.bytes > bytesPerTxn {
		return nil, refuse(kerr.PolicyViolation, "Topic '%s' is too big to be created in one step: %d partitions, %d bytes of metadata; create it with fewer and add more.",
			t.Name, len(parts), out.bytes)
	}
	return out, nil
}

func (t *newTopic) put(key string, value []byte) {
	t.puts = append(t.puts, clientv3.OpPut(key, string(value)))
	t.bytes += len(key) + len(value) + 16
}

// newPartitions are the first states of partitions: in sync are the replicas that are alive now, or all if none is.
func newPartitions(image *meta.Image, assignments [][]int32) ([]meta.Partition, error) {
	parts := make([]meta.Partition, len(assignments))
	for i, replicas := range assignments {
		if len(replicas) == 0 {
			return nil, refuse(kerr.InvalidReplicaAssignment, "Partition %d has no replicas.", i)
		}
		if i > 0 && len(replicas) == 1 && len(assignments[i-1]) == 1 && replicas[0] == assignments[i-1][0] {
			parts[i] = parts[i-1]
			continue
		}
		var isr []int32
		for _, r := range replicas {
			if b := image.Broker(r); b != nil && !b.Fenced {
				isr = append(isr, r)
			}
		}
		parts[i] = image.NewPartition(replicas, isr)
	}
	return parts, nil
}

// createGroup creates topics in one transaction. Those that exist are told so and the others are tried again.
func (c *Client) createGroup(ctx context.Context, group []*newTopic, errs []error) (rev int64) {
	if len(group) == 0 {
		return 0
	}
	err := c.commit(ctx, func(ctx context.Context) error {
		if len(group) == 0 {
			return nil
		}
		var cmps []clientv3.Cmp
		var puts, gets []clientv3.Op
		for _, t := range group {
			cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(t.key), "=", 0))
			puts = append(puts, t.puts...)
			gets = append(gets, clientv3.OpGet(t.key))
		}
		resp, err := c.txn(ctx, cmps, puts, gets...)
		if err != nil {
			return err
		}
		if resp.Succeeded {
			rev = max(rev, resp.Header.GetRevision())
			return nil
		}
		left, seen, err := c.sortOut(group, rangesOf(resp), errs)
		group, rev = left, max(rev, seen)
		if err != nil {
			return err
		}
		return errAgain
	})
	for _, t := range group {
		errs[t.index] = err
	}
	return rev
}

// sortOut tells topics that exist from those that are still to be created. One that exists with our id was created by an
// attempt whose answer was lost.
func (c *Client) sortOut(group []*newTopic, seen []found, errs []error) (left []*newTopic, rev int64, err error) {
	for i, t := range group {
		if seen[i].value == nil {
			left = append(left, t)
			continue
		}
		rec, err := meta.DecodeTopic(seen[i].value)
		if rec, err = decoded(t.key, rec, err); err != nil {
			return group, rev, err
		}
		rev = max(rev, seen[i].mod)
		switch {
		case rec.ID == t.ID:
			errs[t.index] = nil
		case rec.Name == t.Name:
			errs[t.index] = refuse(kerr.TopicAlreadyExists, "Topic '%s' already exists.", t.Name)
		default:
			errs[t.index] = refuse(kerr.InvalidTopicException, "Topic '%s' collides with existing topic: %s", t.Name, rec.Name)
		}
	}
	return left, rev, nil
}

// CreatePartitions adds partitions to a topic that has exactly from of them.
func (c *Client) CreatePartitions(ctx context.Context, id meta.TopicID, from int, assignments [][]int32) error {
	if len(assignments) == 0 {
		return refuse(kerr.InvalidPartitions, "No partitions to add.")
	}
	t, err := c.topicByID(ctx, id)
	if err != nil {
		return err
	}
	parts, err := newPartitions(c.Image(), assignments)
	if err != nil {
		return err
	}
	var rev int64
	unsure := false
	err = c.commit(ctx, func(ctx context.Context) (err error) {
		rev, err = c.tryPartitions(ctx, t, from, parts, unsure)
		unsure = unsure || err != nil && !errors.Is(err, errAgain)
		return err
	})
	if err != nil {
		return err
	}
	errs := []error{nil}
	c.settle(ctx, rev, errs)
	return errs[0]
}

// tryPartitions adds partitions if nothing came between. unsure: an attempt before this one may have been carried out.
func (c *Client) tryPartitions(ctx context.Context, t *meta.Topic, from int, parts []meta.Partition, unsure bool) (int64, error) {
	key, first := c.keys.Topic(t.Name), from/meta.ChunkPartitions
	seen, err := c.read(ctx, key, c.keys.Chunk(t.ID, first))
	if err != nil {
		return 0, err
	}
	rec, err := c.sameTopic(key, seen[0], t.ID)
	if err != nil {
		return 0, err
	}
	chunk := []meta.Partition{}
	if seen[1].value != nil {
		if chunk, err = meta.DecodeChunk(seen[1].value); err != nil {
			return decoded(c.keys.Chunk(t.ID, first), int64(0), err)
		}
	}
	before := chunk[:min(from%meta.ChunkPartitions, len(chunk))]
	all := append(before[:len(before):len(before)], parts...)
	if unsure && rec.Partitions == from+len(parts) {
		whole := all[:min(len(all), meta.ChunkPartitions)]
		if bytes.Equal(meta.EncodeChunk(whole), seen[1].value) {
			return seen[0].mod, nil
		}
	}
	if rec.Partitions != from {
		return 0, &verdict{refuse(kerr.InvalidPartitions, "Topic '%s' currently has %d partitions, not %d.", t.Name, rec.Partitions, from)}
	}
	rec.Partitions += len(parts)
	w := &newTopic{}
	w.put(key, meta.EncodeTopic(rec))
	for i := 0; i*meta.ChunkPartitions < len(all); i++ {
		low := i * meta.ChunkPartitions
		w.put(c.keys.Chunk(t.ID, first+i), meta.EncodeChunk(all[low:min(low+meta.ChunkPartitions, len(all))]))
	}
	if len(w.puts) > opsPerTxn || w.bytes > bytesPerTxn {
		return 0, &verdict{refuse(kerr.PolicyViolation, "%d partitions are too many to be added in one step.", len(parts))}
	}
	resp, err := c.txn(ctx, []clientv3.Cmp{unchanged(key, seen[0]), unchanged(c.keys.Chunk(t.ID, first), seen[1])}, w.puts)
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return 0, errAgain
	}
	return resp.Header.GetRevision(), nil
}

// sameTopic reads a topic's record and checks that it is still the same topic.
func (c *Client) sameTopic(key string, f found, id meta.TopicID) (meta.TopicRecord, error) {
	if f.value == nil {
		return meta.TopicRecord{}, &verdict{unknownTopic(id)}
	}
	rec, err := meta.DecodeTopic(f.value)
	if rec, err = decoded(key, rec, err); err != nil {
		return rec, err
	}
	if rec.ID != id {
		return rec, &verdict{unknownTopic(id)}
	}
	return rec, nil
}

func unknownTopic(id meta.TopicID) error {
	return refuse(kerr.UnknownTopicID, "There is no topic with the id %s.", meta.FormatID(id))
}

// topicByID finds a topic; when the image does not know it, the image may be behind.
func (c *Client) topicByID(ctx context.Context, id meta.TopicID) (*meta.Topic, error) {
	if t := c.Image().TopicByID(id); t != nil {
		return t, nil
	}
	if err := c.catchUp(ctx); err != nil {
		return nil, err
	}
	if t := c.Image().TopicByID(id); t != nil {
		return t, nil
	}
	return nil, unknownTopic(id)
}

// catchUp waits until the image shows everything that was written before.
func (c *Client) catchUp(ctx context.Context) error {
	var rev int64
	err := c.commit(ctx, func(ctx context.Context) error {
		resp, err := c.etcd.Get(ctx, c.keys.Cluster(), clientv3.WithCountOnly())
		if err == nil {
			rev = resp.Header.GetRevision()
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.WaitRevision(ctx, rev); err != nil {
		return refuse(kerr.RequestTimedOut, "%v", fmt.Errorf("catch up with etcd: %w", err))
	}
	return nil
}

// holdersOf are the brokers that may hold data of a topic. Without partitions this broker answers for it.
func (c *Client) holdersOf(t *meta.Topic) []int32 {
	set := map[int32]bool{}
	for i := range t.Partitions {
		for _, r := range t.Partitions[i].Replicas {
			set[r] = true
		}
	}
	if len(set) == 0 {
		set[c.opts.NodeID] = true
	}
	return slices.Sorted(maps.Keys(set))
}
