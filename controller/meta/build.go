package meta

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Change is one key that was written or deleted. The prefix is taken off the key.
type Change struct {
	Key         string
	Value       []byte // not kept
	Deleted     bool
	ModRevision int64
}

// Apply makes the image that follows base by changes, which are in the order of their revisions and whole revisions, and what
// differs. base stays as it is. The error names the key that cannot be read; a *TooNewError is in it if that is why.
func Apply(base *Image, revision int64, changes []Change) (*Image, Delta, error) {
	b := newBuilder(base, revision)
	for i := range changes {
		if err := b.add(&changes[i]); err != nil {
			return nil, Delta{}, fmt.Errorf("read key %q: %w", changes[i].Key, err)
		}
	}
	return b.finish()
}

// builder collects changes by what they are about, so that it does not matter in which order keys of one revision come.
type builder struct {
	base, img *Image

	topics    map[string]*TopicRecord // by folded name; nil = deleted
	chunks    map[chunkRef][]Partition
	topicConf map[TopicID]map[string]string
	brokers   map[int32]*Broker // nil = deleted
	live      map[int32]*Live
	openings  map[int32]int32
	configs   map[Resource]map[string]string
	quotas    map[QuotaEntity]map[string]float64
	deleted   map[TopicID]Tombstone // tombstones that appeared, though they may be gone again

	touched map[TopicID]*edited
}

type chunkRef struct {
	id TopicID
	n  int
}

func newBuilder(base *Image, revision int64) *builder {
	img := *base
	img.revision = max(revision, base.revision)
	return &builder{
		base: base, img: &img,
		topics: map[string]*TopicRecord{}, chunks: map[chunkRef][]Partition{},
		topicConf: map[TopicID]map[string]string{}, brokers: map[int32]*Broker{}, live: map[int32]*Live{},
		openings: map[int32]int32{}, configs: map[Resource]map[string]string{},
		quotas:  map[QuotaEntity]map[string]float64{},
		deleted: map[TopicID]Tombstone{}, touched: map[TopicID]*edited{},
	}
}

// add decodes one change.
func (b *builder) add(c *Change) error {
	k := parseKey(c.Key)
	switch k.kind {
	case kindCluster:
		return b.addCluster(c)
	case kindTopic:
		return addValue(b.topics, k.name, c, func(v []byte) (*TopicRecord, error) {
			t, err := DecodeTopic(v)
			return &t, err
		})
	case kindChunk:
		return addValue(b.chunks, chunkRef{k.id, k.chunk}, c, DecodeChunk)
	case kindTopicConfigs:
		return addValue(b.topicConf, k.id, c, DecodeConfigs)
	case kindConfigs:
		return addValue(b.configs, k.resource, c, DecodeConfigs)
	case kindQuotas:
		return addValue(b.quotas, k.entity, c, DecodeQuotas)
	case kindBroker:
		return addValue(b.brokers, k.node, c, func(v []byte) (*Broker, error) {
			out, err := DecodeBroker(v)
			out.ID, out.Epoch = k.node, c.ModRevision
			return out, err
		})
	case kindLive:
		return addValue(b.live, k.node, c, func(v []byte) (*Live, error) {
			l, err := DecodeLive(v)
			return &l, err
		})
	case kindOpenings:
		return addValue(b.openings, k.node, c, func(v []byte) (int32, error) {
			n, err := DecodeNumber("a broker's openings", v, math.MaxInt32)
			return int32(n), err
		})
	case kindDeleted:
		return b.addTombstone(k.id, c)
	case kindFeature:
		return b.addFeature(k.name, c)
	default: // Producer ids are not in the image.
		return nil
	}
}

// addValue keeps the last value of a key, the zero value for a deleted one.
func addValue[K comparable, V any](m map[K]V, key K, c *Change, decode func([]byte) (V, error)) error {
	var v V
	if !c.Deleted {
		var err error
		if v, err = decode(c.Value); err != nil {
			return err
		}
	}
	m[key] = v
	return nil
}

func (b *builder) addCluster(c *Change) (err error) {
	b.img.clusterID = ""
	if !c.Deleted {
		b.img.clusterID, err = DecodeCluster(c.Value)
	}
	return err
}

func (b *builder) addTombstone(id TopicID, c *Change) error {
	if b.img.tombstones == b.base.tombstones {
		b.img.tombstones = b.base.tombstones.Clone()
	}
	if c.Deleted {
		b.img.tombstones.Delete(Tombstone{ID: id})
		return nil
	}
	t, err := DecodeTombstone(id, c.Value)
	if err != nil {
		return err
	}
	b.img.tombstones.ReplaceOrInsert(t)
	if !b.base.Deleted(id) {
		b.deleted[id] = t
	}
	return nil
}

func (b *builder) addFeature(name string, c *Change) error {
	features := maps.Clone(b.img.features)
	if features == nil {
		features = map[string]int16{}
	}
	delete(features, name)
	if !c.Deleted {
		level, err := DecodeNumber("a feature level", c.Value, math.MaxInt16)
		if err != nil {
			return err
		}
		features[name] = int16(level)
	}
	b.img.features = features
	return nil
}

// finish puts everything together: brokers first, since epochs of partitions depend on them.
func (b *builder) finish() (*Image, Delta, error) {
	var d Delta
	b.finishBrokers(&d)
	if err := b.finishTopics(); err != nil {
		return nil, Delta{}, err
	}
	b.finishConfigs(&d)
	b.finishQuotas(&d)
	d.features(b.base, b.img)
	for id, e := range b.touched {
		_, deleted := b.deleted[id]
		d.topic(e.was, e.is, b.img, deleted)
	}
	for id, t := range b.deleted {
		if b.base.TopicByID(id) == nil {
			d.TopicsDeleted = append(d.TopicsDeleted, &Topic{Name: t.Name, ID: id})
		}
	}
	d.sort()
	return b.img, d, nil
}

func (d *Delta) sort() {
	for _, l := range [][]*Topic{d.TopicsCreated, d.TopicsChanged, d.TopicsDeleted, d.TopicsMissing} {
		slices.SortFunc(l, func(x, y *Topic) int {
			if x.Name != y.Name {
				if x.Name < y.Name {
					return -1
				}
				return 1
			}
			return slices.Compare(x.ID[:], y.ID[:])
		})
	}
	slices.SortFunc(d.ConfigsChanged, compareResources)
}

func (b *builder) finishBrokers(d *Delta) {
	if len(b.openings) > 0 {
		b.img.openings = patched(b.base.openings, b.openings, func(n int32) (int32, bool) { return n, n > 0 })
	}
	if len(b.live) > 0 {
		b.img.live = patched(b.base.live, b.live, func(l *Live) (v Live, ok bool) {
			if l != nil {
				v = *l
			}
			return v, l != nil
		})
	}
	nodes := map[int32]bool{}
	for id := range b.brokers {
		nodes[id] = true
	}
	for id := range b.live {
		nodes[id] = true
	}
	if len(nodes) == 0 {
		return
	}
	var brokers []*Broker
	for _, was := range b.base.brokers {
		if !nodes[was.ID] {
			brokers = append(brokers, was)
		}
	}
	for id := range nodes {
		if is := b.broker(id); is != nil {
			brokers = append(brokers, is)
		}
	}
	slices.SortFunc(brokers, func(x, y *Broker) int { return int(x.ID) - int(y.ID) })
	b.img.brokers = brokers
	d.brokers(b.base, b.img, nodes)
}

// broker is the registration as it is now: fenced unless the lease is held by the incarnation that registered.
func (b *builder) broker(id int32) *Broker {
	is, changed := b.brokers[id]
	if !changed {
		is = b.base.Broker(id)
	}
	if is == nil {
		return nil
	}
	out := *is
	live, ok := b.img.live[id]
	out.Fenced = !ok || live.Incarnation != out.Incarnation
	return &out
}

// patched is a copy of m with the changes applied; keep says what is left of a change.
func patched[K comparable, V, C any](m map[K]V, changes map[K]C, keep func(C) (V, bool)) map[K]V {
	out := maps.Clone(m)
	if out == nil {
		out = make(map[K]V, len(changes))
	}
	for k, c := range changes {
		if v, ok := keep(c); ok {
			out[k] = v
		} else {
			delete(out, k)
		}
	}
	return out
}

func (b *builder) finishConfigs(d *Delta) {
	if len(b.configs) == 0 {
		return
	}
	b.img.configs = b.base.configs.Clone()
	resources := map[Resource]bool{}
	for r, c := range b.configs {
		resources[r] = true
		if len(c) == 0 {
			b.img.configs.Delete(configSet{resource: r})
		} else {
			b.img.configs.ReplaceOrInsert(configSet{resource: r, configs: c})
		}
	}
	d.configs(b.base, b.img, resources)
}
