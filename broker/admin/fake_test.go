package admin

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/controller"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
)

// store is a metadata store in memory: it writes the same keys and values as
// the controller does and reads its image back from them.
type store struct {
	t    testing.TB
	keys meta.Keys

	mu      sync.Mutex
	image   *meta.Image
	values  map[string][]byte
	down    error         // What every change answers.
	hold    chan struct{} // Changes wait until it is closed.
	changes int
}

func newStore(t testing.TB, brokers ...meta.Broker) *store {
	s := &store{t: t, image: meta.Empty(), values: map[string][]byte{}}
	changes := []meta.Change{s.put(s.keys.Cluster(), meta.EncodeCluster("AAAAAAAAAAAAAAAAAAAAAQ"))}
	for _, b := range brokers {
		changes = append(changes, s.put(s.keys.Broker(b.ID), meta.EncodeBroker(&b)))
		if !b.Fenced {
			changes = append(changes, s.put(s.keys.Live(b.ID), meta.EncodeLive(meta.Live{})))
		}
	}
	s.write(changes)
	return s
}

func (s *store) put(key string, value []byte) meta.Change {
	return meta.Change{Key: key, Value: value}
}

// write makes a new image.
func (s *store) write(changes []meta.Change) {
	rev := s.image.Revision() + 1
	for i := range changes {
		changes[i].ModRevision = rev
	}
	image, _, err := meta.Apply(s.image, rev, changes)
	require.NoError(s.t, err)
	s.image = image
}

func (s *store) Image() *meta.Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.image
}

func (s *store) wait(ctx context.Context) error {
	s.mu.Lock()
	hold, down := s.hold, s.down
	s.changes++
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return down
}

func (s *store) CreateTopics(ctx context.Context, topics []controller.NewTopic) []error {
	errs := make([]error, len(topics))
	err := s.wait(ctx)
	for i := range topics {
		if errs[i] = err; err == nil {
			errs[i] = s.create(&topics[i])
		}
	}
	return errs
}

func (s *store) create(t *controller.NewTopic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image.Colliding(t.Name) != nil {
		return kerr.TopicAlreadyExists
	}
	if (t.ID == meta.TopicID{}) {
		t.ID = newTopicID()
	}
	var parts []meta.Partition
	for _, replicas := range t.Assignments {
		parts = append(parts, s.image.NewPartition(replicas, nil))
	}
	s.write(append(s.chunks(t.ID, parts),
		s.put(s.keys.Topic(t.Name), meta.EncodeTopic(meta.TopicRecord{Name: t.Name, ID: t.ID, Internal: t.Internal, Partitions: len(parts)})),
		s.put(s.keys.TopicConfigs(t.ID), meta.EncodeConfigs(t.Configs))))
	return nil
}

func (s *store) chunks(id meta.TopicID, parts []meta.Partition) []meta.Change {
	var changes []meta.Change
	for i := 0; i*meta.ChunkPartitions < len(parts); i++ {
		from := i * meta.ChunkPartitions
		changes = append(changes, s.put(s.keys.Chunk(id, i), meta.EncodeChunk(parts[from:min(len(parts), from+meta.ChunkPartitions)])))
	}
	return changes
}

func (s *store) DeleteTopics(ctx context.Context, ids []meta.TopicID) []error {
	errs := make([]error, len(ids))
	err := s.wait(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		topic := s.image.TopicByID(id)
		switch {
		case err != nil:
			errs[i] = err
		case topic == nil:
			errs[i] = kerr.UnknownTopicID
		default:
			changes := []meta.Change{
				{Key: s.keys.Topic(topic.Name), Deleted: true},
				s.put(s.keys.Deleted(id), meta.EncodeTombstone(meta.Tombstone{ID: id, Name: topic.Name})),
			}
			for c := 0; c*meta.ChunkPartitions < len(topic.Partitions); c++ {
				changes = append(changes, meta.Change{Key: s.keys.Chunk(id, c), Deleted: true})
			}
			s.write(changes)
		}
	}
	return errs
}

func (s *store) CreatePartitions(ctx context.Context, id meta.TopicID, from int, assignments [][]int32) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := s.image.TopicByID(id)
	require.Len(s.t, topic.Partitions, from)
	parts := append([]meta.Partition(nil), topic.Partitions...)
	for _, replicas := range assignments {
		parts = append(parts, s.image.NewPartition(replicas, nil))
	}
	s.write(append(s.chunks(id, parts), s.put(s.keys.Topic(topic.Name),
		meta.EncodeTopic(meta.TopicRecord{Name: topic.Name, ID: id, Internal: topic.Internal, Partitions: len(parts)}))))
	return nil
}

// reassign makes a partition look as if it were being moved.
func (s *store) reassign(name string, i int, adding, removing []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := s.image.Topic(name)
	parts := append([]meta.Partition(nil), topic.Partitions...)
	parts[i].Adding, parts[i].Removing = adding, removing
	s.write(s.chunks(topic.ID, parts))
}

func (s *store) AlterConfigs(ctx context.Context, r meta.Resource, change func(map[string]string) (map[string]string, error)) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key, current := s.keys.Configs(r), s.image.Configs(r)
	if r.Type == meta.ResourceTopic {
		topic := s.image.Topic(r.Name)
		if topic == nil {
			return kerr.UnknownTopicOrPartition
		}
		key, current = s.keys.TopicConfigs(topic.ID), topic.Configs
	}
	next, err := change(maps.Clone(current))
	if err != nil {
		return err
	}
	s.write([]meta.Change{s.put(key, meta.EncodeConfigs(next))})
	return nil
}

func (s *store) AlterQuotas(ctx context.Context, quotas []controller.QuotaChange) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []meta.Change
	for _, q := range quotas {
		changes = append(changes, s.put(s.keys.Quotas(q.Entity), meta.EncodeQuotas(q.Apply(s.image.Quotas(q.Entity)))))
	}
	s.write(changes)
	return nil
}

func (s *store) ChangePartitions(ctx context.Context, refs []controller.PartitionRef, change controller.PartitionChange) []error {
	errs := make([]error, len(refs))
	err := s.wait(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, ref := range refs {
		topic := s.image.TopicByID(ref.Topic)
		parts := append([]meta.Partition(nil), topic.Partitions...)
		p := &parts[ref.Partition]
		if errs[n] = err; err == nil {
			*p, errs[n] = change(n, s.image, *p)
		}
		if errs[n] == nil {
			s.write(s.chunks(ref.Topic, parts))
		}
	}
	return errs
}

func (s *store) UpdateFeatures(ctx context.Context, change func(*meta.Image) (map[string]int16, error)) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	levels, err := change(s.image)
	if err != nil {
		return err
	}
	var changes []meta.Change
	for name, level := range levels {
		changes = append(changes, s.put(s.keys.Feature(name), meta.EncodeNumber(int64(level))))
	}
	s.write(changes)
	return nil
}

func (s *store) UnregisterBroker(ctx context.Context, id int32) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.image.Broker(id) == nil {
		return kerr.BrokerIDNotRegistered
	}
	s.write([]meta.Change{{Key: s.keys.Broker(id), Deleted: true}})
	return nil
}

// broker is a registration with two listeners.
func broker(id int32, rack string) meta.Broker {
	return meta.Broker{ID: id, Rack: rack, Listeners: []meta.Endpoint{
		{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 28192 + id - 1, Protocol: "PLAINTEXT"},
		{Name: "EXTERNAL", Host: "public.example", Port: 9000 + id, Protocol: "PLAINTEXT"},
	}}
}

// world is the handlers over a store.
type world struct {
	t     testing.TB
	store *store
	live  *config.Live
	level zap.AtomicLevel
	// quotas are those of the metadata, as the broker has them.
	quotas *quota.Manager
	*Handlers
	apis map[int16]protocol.API
	conn *protocol.ConnInfo
}

func newWorld(t testing.TB, properties string, brokers ...meta.Broker) *world {
	t.Helper()
	if len(brokers) == 0 {
		brokers = []meta.Broker{broker(1, "rack1")}
	}
	file, err := config.ParseFile("server.properties", []byte(properties))
	require.NoError(t, err)
	static, err := config.Load(config.Options{Sources: []config.Source{file}})
	require.NoError(t, err)
	w := &world{
		t: t, store: newStore(t, brokers...), live: config.NewLive(static), level: zap.NewAtomicLevelAt(zapcore.WarnLevel),
		apis: map[int16]protocol.API{}, conn: &protocol.ConnInfo{Listener: "PLAINTEXT"},
	}
	window := quota.Window{Samples: 11, Length: time.Second}
	w.quotas = quota.New(quota.Options{Clients: window, Mutations: window})
	w.Handlers = New(Options{
		Quotas:     w.quotas,
		Controller: w.store, Live: w.live, NodeID: 1, LogLevel: w.level, LogDir: "/data",
		Space: func() (free, total uint64) { return 40, 100 },
		Size: func(id meta.TopicID, i int32) (bytes, lag int64, here bool) {
			topic := w.store.Image().TopicByID(id)
			return 100 + int64(i), 0, topic.Partitions[i].Replicas[0] == 1
		},
	})
	t.Cleanup(w.Close)
	for _, api := range w.APIs() {
		w.apis[api.Key] = api
	}
	return w
}

// ask serves one request at a version, or at the version that it carries.
func (w *world) ask(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	api, ok := w.apis[req.Key()]
	require.True(w.t, ok)
	require.GreaterOrEqual(w.t, req.GetVersion(), api.Min)
	require.LessOrEqual(w.t, req.GetVersion(), api.Max)
	reply, err := api.Do(context.Background(), req, w.conn)
	require.NoError(w.t, err)
	w.apply()
	// As the client sees it: some fields are not in every version.
	reply.Msg.SetVersion(req.GetVersion())
	seen := req.ResponseKind()
	require.NoError(w.t, seen.ReadFrom(reply.Msg.AppendTo(nil)))
	return seen
}

// apply makes the configuration follow the metadata, as the broker does.
func (w *world) apply() {
	image := w.opts.Controller.Image()
	w.quotas.Apply(image)
	require.NoError(w.t, w.live.Apply(
		image.Configs(meta.Resource{Type: meta.ResourceBroker}),
		image.Configs(meta.Resource{Type: meta.ResourceBroker, Name: "1"})))
}

// create makes topics of one replica.
func (w *world) create(partitions int32, names ...string) {
	w.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	for _, name := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
		req.Topics = append(req.Topics, t)
	}
	for _, t := range w.ask(req).(*kmsg.CreateTopicsResponse).Topics {
		require.Zero(w.t, t.ErrorCode, t.Topic)
	}
}
