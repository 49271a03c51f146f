package meta

import (
	"maps"
	"slices"
)

// Delta is what differs between an image and the one before it. A topic that was deleted and made again under its name is in
// two lists, under two ids.
type Delta struct {
	TopicsCreated  []*Topic
	TopicsChanged  []*Topic // partitions, epochs, replicas or configs
	TopicsDeleted  []*Topic // deleted for certain: their data may go; Partitions is nil when this image never showed it
	TopicsMissing  []*Topic // gone from etcd without a deletion: not served, data kept
	BrokersChanged []int32  // registered, fenced, unfenced or unregistered
	ConfigsChanged []Resource
	QuotasChanged  []QuotaEntity
	// FeaturesChanged are the features that were given another level.
	FeaturesChanged []string
}

// IsEmpty tells whether nothing changed.
func (d *Delta) IsEmpty() bool {
	return len(d.TopicsCreated)+len(d.TopicsChanged)+len(d.TopicsDeleted)+len(d.TopicsMissing)+
		len(d.BrokersChanged)+len(d.ConfigsChanged)+len(d.QuotasChanged)+len(d.FeaturesChanged) == 0
}

// Diff compares two images from end to end.
func Diff(from, to *Image) Delta {
	var d Delta
	for t := range to.Topics() {
		if was := from.TopicByID(t.ID); was == nil || was != t && !was.equal(t) {
			d.topic(was, t, to, false)
		}
	}
	for t := range from.Topics() {
		if to.TopicByID(t.ID) == nil {
			d.topic(t, nil, to, false)
		}
	}
	for t := range to.Tombstones() {
		if !from.Deleted(t.ID) && from.TopicByID(t.ID) == nil {
			d.TopicsDeleted = append(d.TopicsDeleted, &Topic{Name: t.Name, ID: t.ID})
		}
	}
	nodes := map[int32]bool{}
	for _, b := range slices.Concat(from.brokers, to.brokers) {
		nodes[b.ID] = true
	}
	d.brokers(from, to, nodes)
	resources := map[Resource]bool{}
	for _, i := range []*Image{from, to} {
		i.configs.Ascend(func(c configSet) bool { resources[c.resource] = true; return true })
	}
	d.configs(from, to, resources)
	d.quotas(from, to, allQuotas(from, to))
	d.features(from, to)
	return d
}

// topic puts one topic that differs, as it was and as it is, into its list. deleted: a tombstone was seen, though it may be gone again.
func (d *Delta) topic(was, is *Topic, to *Image, deleted bool) {
	switch {
	case was == nil && is == nil:
	case was == nil:
		d.TopicsCreated = append(d.TopicsCreated, is)
	case is == nil && (deleted || to.Deleted(was.ID)):
		d.TopicsDeleted = append(d.TopicsDeleted, was)
	case is == nil:
		d.TopicsMissing = append(d.TopicsMissing, was)
	default:
		d.TopicsChanged = append(d.TopicsChanged, is)
		if !maps.Equal(was.Configs, is.Configs) {
			d.ConfigsChanged = append(d.ConfigsChanged, Resource{Type: ResourceTopic, Name: is.Name})
		}
	}
}

func (d *Delta) brokers(from, to *Image, nodes map[int32]bool) {
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		was, is := from.Broker(id), to.Broker(id)
		if was == is || was != nil && is != nil && was.equal(is) {
			continue
		}
		d.BrokersChanged = append(d.BrokersChanged, id)
	}
}

func (d *Delta) configs(from, to *Image, resources map[Resource]bool) {
	for _, r := range slices.SortedFunc(maps.Keys(resources), compareResources) {
		if !maps.Equal(from.Configs(r), to.Configs(r)) {
			d.ConfigsChanged = append(d.ConfigsChanged, r)
		}
	}
}

func (d *Delta) features(from, to *Image) {
	names := maps.Clone(from.features)
	if names == nil {
		names = map[string]int16{}
	}
	maps.Copy(names, to.features)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if from.Level(name) != to.Level(name) {
			d.FeaturesChanged = append(d.FeaturesChanged, name)
		}
	}
}

func (t *Topic) equal(o *Topic) bool {
	return t.Name == o.Name && t.ID == o.ID && t.Internal == o.Internal && maps.Equal(t.Configs, o.Configs) &&
		equalPartitions(t.Partitions, o.Partitions)
}

func equalPartitions(a, b []Partition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].equal(&b[i]) {
			return false
		}
	}
	return true
}

func (p *Partition) equal(o *Partition) bool {
	return p.Leader == o.Leader && p.LeaderEpoch == o.LeaderEpoch && p.PartitionEpoch == o.PartitionEpoch && p.base == o.base &&
		slices.Equal(p.Replicas, o.Replicas) && slices.Equal(p.ISR, o.ISR) &&
		slices.Equal(p.Adding, o.Adding) && slices.Equal(p.Removing, o.Removing)
}

func (b *Broker) equal(o *Broker) bool {
	return b.ID == o.ID && b.Epoch == o.Epoch && b.Incarnation == o.Incarnation && b.Rack == o.Rack &&
		b.Fenced == o.Fenced && b.CleanlyStopped == o.CleanlyStopped && slices.Equal(b.Listeners, o.Listeners)
}
