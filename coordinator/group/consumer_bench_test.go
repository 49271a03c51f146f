package group

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/group/assign"
)

// counter is a journal that counts what it is given.
type counter struct{ batches, records atomic.Int64 }

func (c *counter) Load(coordinator.Replay, <-chan struct{}) error { return nil }
func (c *counter) Commit(int64) error                             { return nil }
func (c *counter) Confirm() error                                 { return nil }

func (c *counter) Append(records []coordinator.Record, _ *coordinator.Producer, _ int64) (int64, error) {
	c.records.Add(int64(len(records)))
	return c.batches.Add(1), nil
}

func (c *counter) AppendMarker(coordinator.Marker, int64) (int64, error) {
	return c.batches.Add(1), nil
}

// mass is a machine that serves, with a world of topics.
type mass struct {
	tb      testing.TB
	log     *counter
	world   *world
	runtime *coordinator.Runtime[*Machine]
}

func newMass(tb testing.TB) *mass {
	c := &mass{tb: tb, log: &counter{}, world: newWorld()}
	settings := scriptedConsumers()
	settings.MaxSize = 1 << 30
	o := &Options{
		Settings: func() Settings {
			return Settings{MaxSize: 1 << 30, OffsetRetentionCheck: time.Hour, OffsetRetention: time.Hour}
		},
		Consumer: func(string) *ConsumerSettings { return settings },
		Cluster:  c.world,
	}
	c.runtime = coordinator.New(coordinator.Options[*Machine]{New: func(int32) *Machine { return New(o) }})
	tb.Cleanup(c.runtime.Close)
	c.runtime.Lead(0, 1, c.log)
	for !c.runtime.Shard(0).Serving() {
		runtime.Gosched()
	}
	return c
}

func (c *mass) beat(req *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
	p := coordinator.Ask(c.runtime.Shard(0), func(m *Machine, t *coordinator.Turn, p *ConsumerHeartbeatPromise) {
		m.ConsumerHeartbeat(t, Client{ID: "c", Host: "/127.0.0.1", Version: 1}, req, p)
	})
	resp, err := p.Wait(c.tb.Context(), nil)
	require.NoError(c.tb, err)
	require.Zero(c.tb, resp.ErrorCode)
	return resp
}

func join(group, member string, topics ...string) *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.SubscribedTopicNames = group, member, topics
	req.RebalanceTimeoutMillis, req.Topics = 30000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return req
}

// held is a member as its client plays it: it gives back at once what it must.
type held struct {
	id    string
	epoch int32
	has   assign.Set
	acks  bool
}

// step is a heartbeat; it tells whether anything has changed.
func (h *held) step(c *mass) bool {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = "g", h.id, h.epoch
	if h.acks {
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for i := range h.has {
			t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
			t.TopicID, t.Partitions = h.has[i].Topic, h.has[i].Partitions
			req.Topics = append(req.Topics, t)
		}
	}
	resp := c.beat(req)
	changed := resp.MemberEpoch != h.epoch || resp.Assignment != nil
	h.epoch, h.acks = resp.MemberEpoch, resp.Assignment != nil
	if resp.Assignment != nil {
		h.has = responded(resp)
	}
	return changed
}

func responded(resp *kmsg.ConsumerGroupHeartbeatResponse) assign.Set {
	of := map[TopicID][]int32{}
	for _, t := range resp.Assignment.Topics {
		of[t.TopicID] = t.Partitions
	}
	return assign.NewSet(of)
}

// BenchmarkRebalanceOfAThousandMembers is one member that comes to 1,000, until all
// have got where they are to be: each heartbeats as often as it must.
func BenchmarkRebalanceOfAThousandMembers(b *testing.B) {
	c := newMass(b)
	c.world.put("t", Topic{ID: idOf("t"), Partitions: 4000})
	var members []*held
	come := func() {
		h := &held{id: fmt.Sprintf("m%06d", len(members))}
		resp := c.beat(join("g", h.id, "t"))
		h.epoch, h.has = resp.MemberEpoch, responded(resp)
		members = append(members, h)
	}
	settle := func() {
		for moved := true; moved; {
			moved = false
			for _, h := range members {
				moved = h.step(c) || moved
			}
		}
	}
	for range 1000 {
		come()
	}
	settle()
	before := c.log.records.Load()
	b.ResetTimer()
	for range b.N {
		come()
		settle()
	}
	b.ReportMetric(float64(c.log.records.Load()-before)/float64(b.N), "records/op")
}

// BenchmarkConsumerHeartbeat is the cost of a heartbeat that has nothing to say, in a
// process with 100,000 members in 10,000 groups.
func BenchmarkConsumerHeartbeat(b *testing.B) {
	const groups, size = 10_000, 10
	c := newMass(b)
	c.world.put("t", Topic{ID: idOf("t"), Partitions: size})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	reqs := make([]*kmsg.ConsumerGroupHeartbeatRequest, 0, groups*size)
	for i := range groups {
		id := fmt.Sprint("group", i)
		for j := range size {
			member := fmt.Sprintf("member-%d-%d", i, j)
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group, req.MemberID, req.MemberEpoch = id, member, c.beat(join(id, member, "t")).MemberEpoch
			reqs = append(reqs, req)
		}
	}
	// Each settles: it gives back what it must, and gets what it waits for.
	for range 3 {
		for _, req := range reqs {
			full := *req
			full.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			req.MemberEpoch = c.beat(&full).MemberEpoch
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	written := c.log.records.Load()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		c.beat(reqs[i%len(reqs)])
	}
	b.StopTimer()
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(reqs)), "B/member")
	require.Equal(b, written, c.log.records.Load(), "a heartbeat is not written")
}
