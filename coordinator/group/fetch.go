package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// Fetch asks for a group's offsets.
type Fetch struct {
	Group       string
	MemberID    *string
	MemberEpoch int32
	// All asks for everything that is committed; else Topics says of what.
	All    bool
	Topics []FetchTopic
	// Stable hides offsets that an open transaction may replace.
	Stable bool
}

// FetchTopic names partitions of a topic. ID is that of the topic that has the
// name now, if there is one.
type FetchTopic struct {
	Name       string
	ID         TopicID
	Partitions []int32
}

// Fetched is a group's answer to a Fetch.
type Fetched struct {
	Code   int16
	Topics []FetchedTopic
}

// FetchedTopic is what was committed for a topic.
type FetchedTopic struct {
	Name string
	// ID is the topic's as far as it is known.
	ID         TopicID
	Partitions []FetchedOffset
}

// FetchedOffset is what was committed for a partition: -1 if nothing was.
type FetchedOffset struct {
	Partition int32
	Offset    int64
	Epoch     int32
	Metadata  string
	Code      int16
}

// FetchOffsets serves one group of an OffsetFetch.
func (m *Machine) FetchOffsets(t *coordinator.Turn, f Fetch, p *coordinator.Promise[Fetched]) {
	if g, ok := m.groups[f.Group]; ok {
		if err := g.checkFetch(f.MemberID, f.MemberEpoch); err != nil {
			p.Keep(Fetched{Code: codeOf(err)})
			return
		}
	}
	o := m.offsets[f.Group]
	var answer Fetched
	if f.All {
		answer.Topics = o.fetchAll(f.Stable)
	} else {
		answer.Topics = o.fetch(f.Topics, f.Stable)
	}
	coordinator.Deliver(t, p, answer)
}

// fetch is what was committed for some partitions.
func (o *offsets) fetch(topics []FetchTopic, stable bool) []FetchedTopic {
	out := make([]FetchedTopic, len(topics))
	for i := range topics {
		ask := &topics[i]
		out[i] = FetchedTopic{Name: ask.Name, ID: ask.ID, Partitions: make([]FetchedOffset, len(ask.Partitions))}
		for j, partition := range ask.Partitions {
			c, ok := o.get(ask.Name, partition)
			out[i].Partitions[j] = c.fetched(partition, ok && c.isOf(ask.ID), stable && o.isPending(ask.Name, partition))
		}
	}
	return out
}

// fetchAll is everything that was committed, in order.
func (o *offsets) fetchAll(stable bool) []FetchedTopic {
	if o == nil {
		return nil
	}
	out := make([]FetchedTopic, 0, len(o.topics))
	for _, name := range slices.Sorted(maps.Keys(o.topics)) {
		topic := FetchedTopic{Name: name}
		parts := o.topics[name]
		for _, partition := range slices.Sorted(maps.Keys(parts)) {
			c := parts[partition]
			topic.ID = c.topicID
			topic.Partitions = append(topic.Partitions, c.fetched(partition, true, stable && o.isPending(name, partition)))
		}
		out = append(out, topic)
	}
	return out
}

func (c *committed) fetched(partition int32, found, pending bool) FetchedOffset {
	switch {
	case pending:
		return FetchedOffset{Partition: partition, Offset: -1, Epoch: -1, Code: kerr.UnstableOffsetCommit.Code}
	case !found:
		return FetchedOffset{Partition: partition, Offset: -1, Epoch: -1}
	}
	return FetchedOffset{Partition: partition, Offset: c.offset, Epoch: c.epoch, Metadata: c.metadata}
}
