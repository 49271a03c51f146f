package fieldcases

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// participant is a consumer in a group that knows which partitions it has.
type participant struct {
	mu   sync.Mutex
	has  map[int32]bool
	exit func(vanish bool)
}

func (p *participant) gain(partitions []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range partitions {
		p.has[n] = true
	}
}

func (p *participant) lose(partitions []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range partitions {
		delete(p.has, n)
	}
}

func (p *participant) partitions() []int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.has))
}

// session is when a member that has vanished is out.
const session = 2 * time.Second

// franz joins by franz-go, with the balancers or, without any, by KIP-848.
func franz(balancers ...kgo.GroupBalancer) func(t *testing.T, address string) *participant {
	return func(t *testing.T, address string) *participant {
		t.Helper()
		p := &participant{has: map[int32]bool{}}
		var way harness.Line
		lost := func(_ context.Context, _ *kgo.Client, m map[string][]int32) { p.lose(m["t"]) }
		opts := []kgo.Opt{kgo.SeedBrokers(address), kgo.Dialer(way.Dial), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"),
			kgo.SessionTimeout(session), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { p.gain(m["t"]) })}
		if len(balancers) > 0 {
			opts = append(opts, kgo.Balancers(balancers...))
		} else {
			opts = append(opts, kgo.ServerSideBalancer())
		}
		cl, err := kgo.NewClient(opts...)
		require.NoError(t, err)
		polling, stop := context.WithCancel(context.Background())
		go func() {
			for polling.Err() == nil {
				cl.PollFetches(polling)
			}
		}()
		p.exit = func(vanish bool) {
			stop()
			if vanish {
				way.Cut()
			}
			leaving, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = cl.LeaveGroupContext(leaving) // It cannot where the line is cut.
			cl.Close()
		}
		return p
	}
}

// saramaMember joins by Sarama.
func saramaMember(strategy sarama.BalanceStrategy) func(t *testing.T, address string) *participant {
	return func(t *testing.T, address string) *participant {
		t.Helper()
		p := &participant{has: map[int32]bool{}}
		var way harness.Line
		c := sarama.NewConfig()
		c.Version = sarama.V2_8_0_0
		c.Consumer.Group.Session.Timeout, c.Consumer.Group.Heartbeat.Interval = session, 100*time.Millisecond
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
		c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, dialer{&way}
		g, err := sarama.NewConsumerGroup([]string{address}, "g", c)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				_ = g.Consume(ctx, []string{"t"}, p) // Once a generation; errors end it, and it begins anew.
			}
		}()
		p.exit = func(vanish bool) {
			if vanish {
				way.Cut()
			}
			stop()
			_ = g.Close()
			<-done
		}
		return p
	}
}

// dialer is a line as Sarama wants it.
type dialer struct{ *harness.Line }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.Line.Dial(context.Background(), network, address)
}

// Setup is called by Sarama when a generation begins.
func (p *participant) Setup(s sarama.ConsumerGroupSession) error {
	p.gain(s.Claims()["t"])
	return nil
}

// Cleanup is called by Sarama when a generation ends.
func (p *participant) Cleanup(s sarama.ConsumerGroupSession) error {
	p.lose(s.Claims()["t"])
	return nil
}

// ConsumeClaim reads a partition while the generation lasts.
func (p *participant) ConsumeClaim(_ sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for range c.Messages() {
	}
	return nil
}

// TestMembersShareAllPartitions is O-GR-4: A, B and C join one after the other, B
// leaves and C vanishes. Each time those that are left come to have all partitions,
// each partition once, and none that lives is told that it is unknown.
func TestMembersShareAllPartitions(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]func(t *testing.T, address string) *participant{
		"franz-go/range":              franz(kgo.RangeBalancer()),
		"franz-go/roundrobin":         franz(kgo.RoundRobinBalancer()),
		"franz-go/sticky":             franz(kgo.StickyBalancer()),
		"franz-go/cooperative-sticky": franz(kgo.CooperativeStickyBalancer()),
		"franz-go/consumer":           franz(),
		"sarama/range":                saramaMember(sarama.NewBalanceStrategyRange()),
		"sarama/roundrobin":           saramaMember(sarama.NewBalanceStrategyRoundRobin()),
		"sarama/sticky":               saramaMember(sarama.NewBalanceStrategySticky()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := harness.Start(t, "group.initial.rebalance.delay.ms=50", "group.min.session.timeout.ms=100",
				"group.consumer.min.session.timeout.ms=1000", "group.consumer.session.timeout.ms=2000", "group.consumer.assignment.interval.ms=0",
				"group.consumer.min.heartbeat.interval.ms=50", "group.consumer.heartbeat.interval.ms=100")
			frames.Dial(t, node.Address).Create(3, "t")
			settled := func(step string, members ...*participant) {
				t.Helper()
				require.Eventually(t, func() bool { return shared(members) }, frames.Patience, 20*time.Millisecond, step)
			}
			a := join(t, node.Address)
			settled("A is alone", a)
			b := join(t, node.Address)
			settled("B joins", a, b)
			c := join(t, node.Address)
			settled("C joins", a, b, c)
			b.exit(false)
			settled("B leaves", a, c)
			assert.Zero(t, unknownMembers(t, node), "no member was told that it is unknown")
			c.exit(true)
			settled("C vanishes", a)
			assert.Zero(t, unknownMembers(t, node), "no member was told that it is unknown")
			a.exit(false)
		})
	}
}

// shared tells whether the members have the three partitions, each of them one, and
// as many as each other.
func shared(members []*participant) bool {
	var all []int32
	for _, m := range members {
		has := m.partitions()
		if len(has) < 3/len(members) {
			return false
		}
		all = append(all, has...)
	}
	slices.Sort(all)
	return slices.Equal(all, []int32{0, 1, 2})
}

// unknownMembers counts the answers UNKNOWN_MEMBER_ID (25) to members of groups.
func unknownMembers(t *testing.T, node *harness.Node) (n float64) {
	t.Helper()
	for _, request := range []string{"Heartbeat", "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat"} {
		n += node.Metric(t, "kafka_network_requestmetrics_errors_total", `"`+request+`"`, `"UNKNOWN_MEMBER_ID"`)
	}
	return n
}
