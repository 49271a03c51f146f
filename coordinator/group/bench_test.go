package group

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// crowd is a shard with stable groups of ten members each.
func crowd(b *testing.B, groups int) (s *coordinator.Shard[*Machine], stop func()) {
	opts := &Options{
		Settings: func() Settings {
			return Settings{MaxSize: 100, MaxSessionTimeout: time.Hour, OffsetRetentionCheck: time.Hour}
		},
		Topics: noTopics{},
	}
	serving := make(chan struct{})
	r := coordinator.New(coordinator.Options[*Machine]{
		New:    func(int32) *Machine { return New(opts) },
		Events: coordinator.Events{Loaded: func(int32, int, time.Duration) { close(serving) }},
	})
	var log journaltest.Log
	j, _ := log.Lead()
	protocol := "range"
	for g := range groups {
		v := kmsg.NewGroupMetadataValue()
		v.Version, v.ProtocolType, v.Generation, v.Protocol = groupValueVersion, consumerType, 1, &protocol
		for i := range 10 {
			m := kmsg.NewGroupMetadataValueMember()
			m.MemberID, m.ClientID, m.ClientHost = memberName(g, i), "client", "/127.0.0.1"
			m.SessionTimeoutMillis, m.RebalanceTimeoutMillis = 3_000_000, 300_000
			m.Subscription, m.Assignment = subscription([]string{"some-topic"}), make([]byte, 30)
			v.Members = append(v.Members, m)
		}
		_, err := j.Append([]coordinator.Record{{Key: groupKey(fmt.Sprint("group-", g)), Value: v.AppendTo(nil)}}, nil, 0)
		require.NoError(b, err)
	}
	j, epoch := log.Lead()
	r.Lead(0, epoch, j)
	<-serving
	return r.Shard(0), r.Close
}

type noTopics struct{}

func (noTopics) Deleted(string, TopicID) bool { return false }

func memberName(group, i int) string { return fmt.Sprintf("client-%032d-%03d", group, i) }

// BenchmarkHeartbeat is the cost of a heartbeat among 100,000 members of 10,000
// groups in one shard, and what a member takes in memory.
func BenchmarkHeartbeat(b *testing.B) {
	const groups = 10_000
	s, stop := crowd(b, groups)
	defer stop()
	requests := make([]*kmsg.HeartbeatRequest, groups*10)
	for i := range requests {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = fmt.Sprint("group-", i/10), memberName(i/10, i%10), 1
		requests[i] = req
	}
	beat := func(req *kmsg.HeartbeatRequest) *coordinator.Promise[int16] {
		return coordinator.Ask(s, func(m *Machine, t *coordinator.Turn, p *coordinator.Promise[int16]) { m.Heartbeat(t, req, p) })
	}
	for {
		if code, err := beat(requests[0]).Wait(b.Context(), nil); err == nil {
			require.Zero(b, code)
			break // Loaded was called a little before the first turn.
		}
	}
	b.ReportAllocs()
	const window = 100
	waiting := make([]*coordinator.Promise[int16], 0, window)
	for i := 0; b.Loop(); i++ {
		if waiting = append(waiting, beat(requests[i%len(requests)])); len(waiting) < window {
			continue
		}
		for _, p := range waiting {
			if code, err := p.Wait(b.Context(), nil); code != 0 || err != nil {
				b.Fatal(code, err)
			}
		}
		waiting = waiting[:0]
	}
}

// BenchmarkMember (a few rounds are enough) is what a member of a classic group takes in memory.
func BenchmarkMember(b *testing.B) {
	const groups = 10_000
	var before, after runtime.MemStats
	for b.Loop() {
		m := testMachine()
		runtime.GC()
		runtime.ReadMemStats(&before)
		for g := range groups {
			fill(m, fmt.Sprint("group-", g), g)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(groups*10), "B/member")
		runtime.KeepAlive(m)
	}
}

// fill adds a stable group of ten.
func fill(m *Machine, id string, n int) {
	g := m.newClassic(id)
	protocol := "range"
	g.kindOfMembers, g.protocol, g.st = consumerType, &protocol, stateStable
	for i := range 10 {
		r := kmsg.NewGroupMetadataValueMember()
		r.MemberID, r.ClientID, r.ClientHost = memberName(n, i), "client", "/127.0.0.1"
		r.Subscription, r.Assignment = subscription([]string{"some-topic"}), make([]byte, 30)
		g.add(g.replayMember(&r))
	}
	g.readTopics()
	m.groups[id] = g
}
