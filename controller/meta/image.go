package meta

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/google/btree"
)

// Image is the cluster's metadata at one revision. It is immutable and safe for concurrent use.
type Image struct {
	revision  int64
	clusterID string

	byName     *btree.BTreeG[*Topic]
	byID       *btree.BTreeG[*Topic]
	folded     *btree.BTreeG[foldedName] // of the topics whose folded name is not their name
	configs    *btree.BTreeG[configSet]  // all but topics'
	tombstones *btree.BTreeG[Tombstone]
	quotas     *btree.BTreeG[quotaSet]
	partitions int

	brokers  []*Broker // by id
	live     map[int32]Live
	openings map[int32]int32
	features map[string]int16
}

type foldedName struct{ folded, name string }

type configSet struct {
	resource Resource
	configs  map[string]string
}

// treeDegree suits pointers: nodes of up to 63 items are copied when one of them changes.
const treeDegree = 32

// Empty is the image of an etcd without any key.
func Empty() *Image {
	return &Image{
		byName:     btree.NewG(treeDegree, func(a, b *Topic) bool { return a.Name < b.Name }),
		byID:       btree.NewG(treeDegree, func(a, b *Topic) bool { return bytes.Compare(a.ID[:], b.ID[:]) < 0 }),
		folded:     btree.NewG(treeDegree, func(a, b foldedName) bool { return a.folded < b.folded }),
		configs:    btree.NewG(treeDegree, func(a, b configSet) bool { return compareResources(a.resource, b.resource) < 0 }),
		tombstones: btree.NewG(treeDegree, func(a, b Tombstone) bool { return bytes.Compare(a.ID[:], b.ID[:]) < 0 }),
		quotas:     newQuotaTree(),
	}
}

func compareResources(a, b Resource) int {
	if a.Type != b.Type {
		return int(a.Type) - int(b.Type)
	}
	return strings.Compare(a.Name, b.Name)
}

// Revision is the etcd revision that the image shows.
func (i *Image) Revision() int64 { return i.revision }

// ClusterID is 22 characters of URL-safe base64; "" in an empty image.
func (i *Image) ClusterID() string { return i.clusterID }

// Topic finds a topic by name, or returns nil.
func (i *Image) Topic(name string) *Topic {
	t, _ := i.byName.Get(&Topic{Name: name})
	return t
}

// TopicByID finds a topic by id, or returns nil.
func (i *Image) TopicByID(id TopicID) *Topic {
	t, _ := i.byID.Get(&Topic{ID: id})
	return t
}

// Colliding finds the topic that makes it impossible to create one with this name: the topic itself, or one whose name
// differs only by '.' and '_'. It returns nil when the name is free.
func (i *Image) Colliding(name string) *Topic { return i.byFolded(Fold(name)) }

func (i *Image) byFolded(folded string) *Topic {
	if t := i.Topic(folded); t != nil {
		return t
	}
	f, ok := i.folded.Get(foldedName{folded: folded})
	if !ok {
		return nil
	}
	return i.Topic(f.name)
}

// Topics goes through all topics by name.
func (i *Image) Topics() iter.Seq[*Topic] { return i.TopicsFrom("") }

// TopicsFrom goes through the topics whose names are not below start, by name.
func (i *Image) TopicsFrom(start string) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		i.byName.AscendGreaterOrEqual(&Topic{Name: start}, yield)
	}
}

// TopicCount is the number of topics.
func (i *Image) TopicCount() int { return i.byName.Len() }

// PartitionCount is the number of partitions of all topics.
func (i *Image) PartitionCount() int { return i.partitions }

// Brokers lists all registrations by id, fenced ones too; read only.
func (i *Image) Brokers() []*Broker { return i.brokers }

// Broker finds a registration, fenced or not, or returns nil.
func (i *Image) Broker(id int32) *Broker {
	n, ok := slices.BinarySearchFunc(i.brokers, id, func(b *Broker, id int32) int { return int(b.ID) - int(id) })
	if !ok {
		return nil
	}
	return i.brokers[n]
}

// Configs are the configs set on a resource; nil when there are none; read only.
func (i *Image) Configs(r Resource) map[string]string {
	if r.Type == ResourceTopic {
		if t := i.Topic(r.Name); t != nil {
			return t.Configs
		}
		return nil
	}
	c, _ := i.configs.Get(configSet{resource: r})
	return c.configs
}

// Resources goes through the resources of a type, not topics, that have configs, by name.
func (i *Image) Resources(t ResourceType) iter.Seq[Resource] {
	return func(yield func(Resource) bool) {
		i.configs.AscendGreaterOrEqual(configSet{resource: Resource{Type: t}}, func(c configSet) bool {
			return c.resource.Type == t && yield(c.resource)
		})
	}
}

// Deleted tells whether etcd says that the topic was deleted. A topic that is neither in the image nor deleted is
// missing: its data is kept.
func (i *Image) Deleted(id TopicID) bool { return i.tombstones.Has(Tombstone{ID: id}) }

// Tombstones goes through the deleted topics whose data some broker may still hold, by id.
func (i *Image) Tombstones() iter.Seq[Tombstone] {
	return func(yield func(Tombstone) bool) { i.tombstones.Ascend(yield) }
}

// Features are the feature levels that somebody has set; read only. Level knows the others too.
func (i *Image) Features() map[string]int16 { return i.features }

// Live is who holds a node id now.
func (i *Image) Live(id int32) (Live, bool) {
	l, ok := i.live[id]
	return l, ok
}

// Openings is how often the broker has raised the epochs of all that it leads.
func (i *Image) Openings(id int32) int32 { return i.openings[id] }

// resolve adds the openings of the leaders to the base epochs, in place.
func (i *Image) resolve(parts []Partition) {
	for n := range parts {
		parts[n].LeaderEpoch = i.epochOf(&parts[n])
	}
}

func (i *Image) epochOf(p *Partition) int32 {
	if p.Leader < 0 {
		return max(p.base, 0)
	}
	return max(p.base+i.openings[p.Leader], 0)
}
