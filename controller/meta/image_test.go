package meta

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// twin is the dumb way to keep metadata: all keys with their values, and an image made from scratch each time.
type twin struct {
	kvs map[string]Change
	rev int64
}

func (w *twin) apply(changes []Change) {
	for _, c := range changes {
		w.rev = max(w.rev, c.ModRevision)
		if c.Deleted {
			delete(w.kvs, c.Key)
		} else {
			w.kvs[c.Key] = c
		}
	}
}

func (w *twin) image(t *testing.T) *Image {
	img, _, err := Apply(Empty(), w.rev, slices.Collect(maps.Values(w.kvs)))
	require.NoError(t, err)
	return img
}

// dump writes down everything that an image shows.
func dump(i *Image) string {
	var b strings.Builder
	fmt.Fprintln(&b, i.Revision(), i.ClusterID(), i.TopicCount(), i.PartitionCount(), i.Features())
	n := 0
	for t := range i.Topics() {
		fmt.Fprintln(&b, *t, i.TopicByID(t.ID) == t, i.Colliding(t.Name) == t, i.Configs(Resource{ResourceTopic, t.Name}))
		n += len(t.Partitions)
	}
	for _, r := range i.Brokers() {
		fmt.Fprintln(&b, *r, i.Broker(r.ID) == r, i.Openings(r.ID))
	}
	for _, typ := range []ResourceType{ResourceBroker, ResourceGroup, ResourceClientMetrics} {
		for r := range i.Resources(typ) {
			fmt.Fprintln(&b, r, i.Configs(r))
		}
	}
	for e, q := range i.EachQuota() {
		fmt.Fprintln(&b, e, q, maps.Equal(i.Quotas(e), q))
	}
	for s := range i.Tombstones() {
		fmt.Fprintln(&b, s)
	}
	fmt.Fprintln(&b, n)
	return b.String()
}

// world makes random transactions as brokers would, and some that they would not.
type world struct {
	rng    *rand.Rand
	rev    int64
	keys   Keys
	topics []TopicRecord
	nextID byte
}

func (w *world) put(key string, value []byte) Change {
	return Change{Key: key, Value: value, ModRevision: w.rev}
}

func (w *world) del(key string) Change { return Change{Key: key, Deleted: true, ModRevision: w.rev} }

func (w *world) partitions(n int) []Partition {
	parts := make([]Partition, n)
	for i := range parts {
		parts[i] = Partition{
			Replicas: []int32{w.rng.Int32N(3), 5}, Leader: w.rng.Int32N(4) - 1, base: w.rng.Int32N(9) - 4, PartitionEpoch: w.rng.Int32N(9),
		}
		parts[i].ISR = parts[i].Replicas[:1+w.rng.IntN(2)]
	}
	return parts
}

func (w *world) chunks(t TopicRecord) (out []Change) {
	for n := 0; n*ChunkPartitions < t.Partitions; n++ {
		out = append(out, w.put(w.keys.Chunk(t.ID, n), EncodeChunk(w.partitions(min(ChunkPartitions, t.Partitions-n*ChunkPartitions)))))
	}
	return out
}

// txn is the changes of one revision, in any order.
func (w *world) txn() (out []Change) {
	w.rev++
	node := w.rng.Int32N(3)
	switch op := w.rng.IntN(15); {
	case op < 3:
		w.nextID++
		t := TopicRecord{ID: TopicID{w.nextID, 1}, Name: []string{"a", "a.b", "a_c", "b.c_d", "z"}[w.rng.IntN(5)], Partitions: 1 + w.rng.IntN(150)}
		if slices.ContainsFunc(w.topics, func(o TopicRecord) bool { return Fold(o.Name) == Fold(t.Name) }) {
			return nil
		}
		w.topics = append(w.topics, t)
		out = append(w.chunks(t), w.put(w.keys.Topic(t.Name), EncodeTopic(t)))
		if w.rng.IntN(2) == 0 {
			out = append(out, w.put(w.keys.TopicConfigs(t.ID), EncodeConfigs(map[string]string{"k": t.Name})))
		}
	case op < 5 && len(w.topics) > 0:
		n := w.rng.IntN(len(w.topics))
		t := w.topics[n]
		w.topics = slices.Delete(w.topics, n, n+1)
		out = append(out, w.del(w.keys.Topic(t.Name)), w.del(w.keys.TopicConfigs(t.ID)))
		for c := range w.chunks(t) {
			out = append(out, w.del(w.keys.Chunk(t.ID, c)))
		}
		if w.rng.IntN(3) > 0 {
			out = append(out, w.put(w.keys.Deleted(t.ID), EncodeTombstone(Tombstone{Name: t.Name, Holders: []int32{1}})))
		}
	case op < 7 && len(w.topics) > 0:
		t := &w.topics[w.rng.IntN(len(w.topics))]
		t.Partitions += w.rng.IntN(100)
		out = append(w.chunks(*t), w.put(w.keys.Topic(t.Name), EncodeTopic(*t)))
	case op < 8 && len(w.topics) > 0:
		t := w.topics[w.rng.IntN(len(w.topics))]
		n := w.rng.IntN((t.Partitions + ChunkPartitions - 1) / ChunkPartitions)
		out = append(out, w.put(w.keys.Chunk(t.ID, n), EncodeChunk(w.partitions(min(ChunkPartitions, t.Partitions-n*ChunkPartitions)))))
	case op < 9:
		out = append(out, w.put(w.keys.Openings(node), EncodeNumber(int64(w.rng.Int32N(5)))))
	case op < 11:
		b := &Broker{Incarnation: [16]byte{w.nextID}, Rack: "r"}
		out = append(out, w.put(w.keys.Broker(node), EncodeBroker(b)), w.put(w.keys.Live(node), EncodeLive(Live{Incarnation: b.Incarnation})))
	case op < 12:
		out = append(out, w.del([]string{w.keys.Live(node), w.keys.Broker(node), w.keys.Openings(node)}[w.rng.IntN(3)]))
	case op < 13:
		r := Resource{[]ResourceType{4, 16, 32}[w.rng.IntN(3)], []string{"", "1", "g"}[w.rng.IntN(3)]}
		out = append(out, w.put(w.keys.Configs(r), EncodeConfigs(map[string]string{"x": fmt.Sprint(w.rev % 3)})))
		if w.rng.IntN(3) == 0 {
			out = []Change{w.del(w.keys.Configs(r))}
		}
	case op < 14:
		e := quotaEntities()[w.rng.IntN(len(quotaEntities()))]
		out = append(out, w.put(w.keys.Quotas(e), EncodeQuotas(map[string]float64{"x": float64(w.rev % 3)})))
		if w.rng.IntN(3) == 0 {
			out = []Change{w.del(w.keys.Quotas(e))}
		}
	default:
		out = append(out, w.put(w.keys.Cluster(), EncodeCluster("c")), w.put(w.keys.Feature("f"), EncodeNumber(int64(w.rng.Int32N(9)))),
			w.put("1/later/thing", []byte{9}), w.put(w.keys.ProducerIDs(), EncodeNumber(1000)))
		if w.nextID > 0 {
			out = append(out, w.del(w.keys.Deleted(TopicID{byte(w.rng.IntN(int(w.nextID))), 1})))
		}
	}
	w.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// view is what a subscriber knows that goes by deltas only.
type view struct {
	topics  map[TopicID]*Topic
	brokers map[int32]Broker
	configs map[Resource]string
	quotas  map[QuotaEntity]string
}

func (v *view) take(t *testing.T, img *Image, d Delta) {
	for _, c := range d.TopicsCreated {
		require.Nil(t, v.topics[c.ID])
		v.topics[c.ID] = c
	}
	for _, c := range d.TopicsChanged {
		require.NotNil(t, v.topics[c.ID])
		v.topics[c.ID] = c
	}
	for _, c := range slices.Concat(d.TopicsDeleted, d.TopicsMissing) {
		delete(v.topics, c.ID)
	}
	for _, id := range d.BrokersChanged {
		delete(v.brokers, id)
		if b := img.Broker(id); b != nil {
			v.brokers[id] = *b
		}
	}
	for _, r := range d.ConfigsChanged {
		delete(v.configs, r)
		if c := img.Configs(r); c != nil && r.Type != ResourceTopic {
			v.configs[r] = fmt.Sprint(c)
		}
	}
	for _, e := range d.QuotasChanged {
		delete(v.quotas, e)
		if q := img.Quotas(e); q != nil {
			v.quotas[e] = fmt.Sprint(q)
		}
	}
}

func (v *view) check(t *testing.T, img *Image) {
	require.Equal(t, img.TopicCount(), len(v.topics))
	for c := range img.Topics() {
		require.True(t, c == v.topics[c.ID], c.Name)
	}
	require.Len(t, v.brokers, len(img.Brokers()))
	for _, b := range img.Brokers() {
		require.Equal(t, *b, v.brokers[b.ID])
	}
	n := 0
	for _, typ := range []ResourceType{4, 16, 32} {
		for r := range img.Resources(typ) {
			require.Equal(t, fmt.Sprint(img.Configs(r)), v.configs[r])
			n++
		}
	}
	require.Len(t, v.configs, n)
	n = 0
	for e, q := range img.EachQuota() {
		require.Equal(t, fmt.Sprint(q), v.quotas[e])
		n++
	}
	require.Len(t, v.quotas, n)
}

func TestImageByDeltasEqualsImageFromScratch(t *testing.T) {
	for seed := range uint64(25) {
		w := &world{rng: rand.New(rand.NewPCG(seed, 1))}
		slow := twin{kvs: map[string]Change{}}
		img := Empty()
		v := view{topics: map[TopicID]*Topic{}, brokers: map[int32]Broker{}, configs: map[Resource]string{}, quotas: map[QuotaEntity]string{}}
		for n := range 60 {
			var changes []Change
			for range 1 + w.rng.IntN(3) {
				changes = append(changes, w.txn()...)
			}
			before, was, whole := img, "", n%6 == 5 // Writing everything down takes its time.
			if whole {
				was = dump(img)
			}
			next, delta, err := Apply(img, w.rev, changes)
			require.NoError(t, err, "seed %d", seed)
			slow.apply(changes)
			slow.rev = w.rev
			scratch := slow.image(t)
			unlike := Diff(scratch, next)
			require.True(t, unlike.IsEmpty(), "seed %d", seed)
			if whole {
				require.True(t, was == dump(before), "seed %d: an image changed", seed)
				require.True(t, dump(scratch) == dump(next), "seed %d", seed)
			}
			v.take(t, next, delta)
			v.check(t, next)
			compareDeltas(t, before, next, delta)
			img = next
		}
	}
}

// compareDeltas holds the delta that came with an image against one that is worked out from end to end.
func compareDeltas(t *testing.T, from, to *Image, d Delta) {
	full := Diff(from, to)
	names := func(l []*Topic) (out []TopicID) {
		for _, t := range l {
			out = append(out, t.ID)
		}
		slices.SortFunc(out, func(a, b TopicID) int { return slices.Compare(a[:], b[:]) })
		return out
	}
	require.Equal(t, names(full.TopicsCreated), names(d.TopicsCreated))
	require.Equal(t, names(full.TopicsChanged), names(d.TopicsChanged))
	gone := func(d Delta) []TopicID { return names(slices.Concat(d.TopicsDeleted, d.TopicsMissing)) }
	require.Subset(t, gone(d), gone(full)) // A tombstone that came and went between the two is in d only.
	require.Equal(t, full.BrokersChanged, d.BrokersChanged)
	require.ElementsMatch(t, full.ConfigsChanged, d.ConfigsChanged)
	require.Equal(t, full.QuotasChanged, d.QuotasChanged)
}

// step applies changes of one revision.
func step(t *testing.T, img *Image, changes ...Change) (*Image, Delta) {
	t.Helper()
	rev := img.Revision() + 1
	for i := range changes {
		changes[i].ModRevision = rev
	}
	next, d, err := Apply(img, rev, changes)
	require.NoError(t, err)
	return next, d
}

func topicChanges(name string, id TopicID, parts ...Partition) []Change {
	var k Keys
	return []Change{
		{Key: k.Topic(name), Value: EncodeTopic(TopicRecord{Name: name, ID: id, Partitions: len(parts)})},
		{Key: k.Chunk(id, 0), Value: EncodeChunk(parts)},
	}
}

func TestRecreatedTopicIsDeletedAndCreated(t *testing.T) {
	var k Keys
	img, d := step(t, Empty(), topicChanges("t", idA, Empty().NewPartition([]int32{1}, nil))...)
	require.Len(t, d.TopicsCreated, 1)
	changes := append(topicChanges("t", idB, Empty().NewPartition([]int32{1}, nil)),
		Change{Key: k.Chunk(idA, 0), Deleted: true},
		Change{Key: k.Deleted(idA), Value: EncodeTombstone(Tombstone{Name: "t", Holders: []int32{1}})})
	img, d = step(t, img, changes...)
	require.Equal(t, idB, d.TopicsCreated[0].ID)
	require.Equal(t, idA, d.TopicsDeleted[0].ID)
	require.Empty(t, d.TopicsMissing)
	require.True(t, img.Deleted(idA))
	require.Nil(t, img.TopicByID(idA))
	require.Equal(t, idB, img.Topic("t").ID)
}

func TestTopicWithoutTombstoneIsMissingNotDeleted(t *testing.T) {
	var k Keys
	img, _ := step(t, Empty(), topicChanges("t", idA, Empty().NewPartition([]int32{1}, nil))...)
	img, d := step(t, img, Change{Key: k.Topic("t"), Deleted: true}, Change{Key: k.Chunk(idA, 0), Deleted: true})
	require.Empty(t, d.TopicsDeleted)
	require.Equal(t, idA, d.TopicsMissing[0].ID)
	require.False(t, img.Deleted(idA))
}

func TestTombstoneThatCameAndWentStillDeletes(t *testing.T) {
	var k Keys
	img, _ := step(t, Empty(), topicChanges("t", idA, Empty().NewPartition([]int32{1}, nil))...)
	_, d := step(t, img, Change{Key: k.Topic("t"), Deleted: true},
		Change{Key: k.Deleted(idA), Value: EncodeTombstone(Tombstone{Name: "t", Holders: []int32{1}})},
		Change{Key: k.Deleted(idA), Deleted: true})
	require.Len(t, d.TopicsDeleted, 1)
	require.Empty(t, d.TopicsMissing)
}

func TestOpeningRaisesTheEpochsOfWhatTheBrokerLeads(t *testing.T) {
	var k Keys
	img, _ := step(t, Empty(), Change{Key: k.Openings(1), Value: EncodeNumber(4)})
	one, two := img.NewPartition([]int32{1, 2}, nil), img.NewPartition([]int32{2, 1}, nil)
	img, _ = step(t, img, topicChanges("t", idA, one, two)...)
	require.EqualValues(t, 0, img.Topic("t").Partitions[0].LeaderEpoch)
	next, d := step(t, img, Change{Key: k.Openings(1), Value: EncodeNumber(7)})
	require.EqualValues(t, 3, next.Topic("t").Partitions[0].LeaderEpoch)
	require.EqualValues(t, 0, next.Topic("t").Partitions[1].LeaderEpoch)
	require.EqualValues(t, 0, img.Topic("t").Partitions[0].LeaderEpoch)
	require.Len(t, d.TopicsChanged, 1)
}

func TestBrokerIsFencedWithoutItsOwnLease(t *testing.T) {
	var k Keys
	img, d := step(t, Empty(), Change{Key: k.Broker(1), Value: EncodeBroker(&Broker{Incarnation: idA})},
		Change{Key: k.Live(1), Value: EncodeLive(Live{Incarnation: idA})})
	require.Equal(t, []int32{1}, d.BrokersChanged)
	require.False(t, img.Broker(1).Fenced)
	require.EqualValues(t, 1, img.Broker(1).Epoch)
	other, _ := step(t, img, Change{Key: k.Live(1), Value: EncodeLive(Live{Incarnation: idB})})
	require.True(t, other.Broker(1).Fenced)
	gone, d := step(t, img, Change{Key: k.Live(1), Deleted: true})
	require.True(t, gone.Broker(1).Fenced)
	require.Equal(t, []int32{1}, d.BrokersChanged)
	require.EqualValues(t, 1, gone.Broker(1).Epoch)
}

func TestUnreadableValueNamesItsKey(t *testing.T) {
	var k Keys
	_, _, err := Apply(Empty(), 1, []Change{{Key: k.Broker(1), Value: []byte{7}}})
	var tooNew *TooNewError
	require.ErrorAs(t, err, &tooNew)
	require.ErrorContains(t, err, k.Broker(1))
	_, _, err = Apply(Empty(), 1, []Change{{Key: k.Topic("a"), Value: EncodeTopic(TopicRecord{Name: "b", ID: idA})}})
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestPartitionsWithoutTheirChunkHaveNoLeader(t *testing.T) {
	changes := topicChanges("t", idA, Empty().NewPartition([]int32{1}, nil))[:1]
	img, _ := step(t, Empty(), changes...)
	require.Equal(t, []Partition{{Leader: -1}}, img.Topic("t").Partitions)
}

func TestCollidingNames(t *testing.T) {
	img, _ := step(t, Empty(), topicChanges("a.b_c", idA, Empty().NewPartition([]int32{1}, nil))...)
	img, _ = step(t, img, topicChanges("x_y", idB, Empty().NewPartition([]int32{1}, nil))...)
	require.Equal(t, "a.b_c", img.Colliding("a_b.c").Name)
	require.Equal(t, "x_y", img.Colliding("x.y").Name)
	require.Nil(t, img.Colliding("a.b"))
	require.Nil(t, img.Topic("x.y"))
	var names []string
	for topic := range img.TopicsFrom("b") {
		names = append(names, topic.Name)
	}
	require.Equal(t, []string{"x_y"}, names)
}

// bigImage has n topics of one partition.
func bigImage(tb testing.TB, n int) *Image {
	var k Keys
	changes := make([]Change, 0, 2*n)
	for i := range n {
		id := TopicID{byte(i), byte(i >> 8), byte(i >> 16), 1}
		name := fmt.Sprintf("topic-%06d", i)
		changes = append(changes,
			Change{Key: k.Topic(name), Value: EncodeTopic(TopicRecord{Name: name, ID: id, Partitions: 1}), ModRevision: 1},
			Change{Key: k.Chunk(id, 0), Value: EncodeChunk([]Partition{Empty().NewPartition([]int32{1}, nil)}), ModRevision: 1})
	}
	img, _, err := Apply(Empty(), 1, changes)
	require.NoError(tb, err)
	return img
}

func TestOneChangeAmong100000TopicsIsCheap(t *testing.T) {
	img := bigImage(t, 100_000)
	require.Equal(t, 100_000, img.PartitionCount())
	allocs := testing.AllocsPerRun(20, func() {
		_, d := step(t, img, topicChanges("new", idB, img.NewPartition([]int32{1}, nil))...)
		require.Len(t, d.TopicsCreated, 1)
	})
	require.Less(t, allocs, 500.0)
}

func BenchmarkApplyOneTopicAmong100000(b *testing.B) {
	img := bigImage(b, 100_000)
	changes := topicChanges("new", idB, img.NewPartition([]int32{1}, nil))
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = Apply(img, 2, changes)
	}
}

func BenchmarkApplyChunkOfTopicWith100000Partitions(b *testing.B) {
	var k Keys
	changes := []Change{{Key: k.Topic("t"), Value: EncodeTopic(TopicRecord{Name: "t", ID: idA, Partitions: 100_000})}}
	parts := slices.Repeat([]Partition{Empty().NewPartition([]int32{1}, nil)}, ChunkPartitions)
	for n := range 100_000/ChunkPartitions + 1 {
		changes = append(changes, Change{Key: k.Chunk(idA, n), Value: EncodeChunk(parts)})
	}
	img, _, err := Apply(Empty(), 1, changes)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = Apply(img, 2, changes[5:6])
	}
}

func BenchmarkRaiseEpochsOf100000Topics(b *testing.B) {
	img := bigImage(b, 100_000)
	var k Keys
	for b.Loop() {
		_, _, _ = Apply(img, 2, []Change{{Key: k.Openings(1), Value: EncodeNumber(1)}})
	}
}
