package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// commits is the highest offset that each group was acknowledged, by partition.
type commits struct {
	mu    sync.Mutex
	acked map[string]map[int32]int64
	count int
}

func (c *commits) add(group string, offsets map[string]map[int32]kgo.EpochOffset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acked[group] == nil {
		c.acked[group] = map[int32]int64{}
	}
	for _, partitions := range offsets {
		for p, o := range partitions {
			c.acked[group][p] = max(c.acked[group][p], o.Offset)
			c.count++
		}
	}
}

// total is how many offsets were acknowledged.
func (c *commits) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// snapshot copies what was acknowledged of a group so far.
func (c *commits) snapshot(group string) map[int32]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[int32]int64, len(c.acked[group]))
	for p, o := range c.acked[group] {
		out[p] = o
	}
	return out
}

// check fetches a group's offsets: none is below what was acknowledged before.
func (c *commits) check(ctx context.Context, adm *kadm.Client, group string) error {
	before := c.snapshot(group)
	got, err := adm.FetchOffsets(ctx, group)
	for err != nil { // The client may find more than one connection cut by the kill.
		select {
		case <-ctx.Done():
			return fmt.Errorf("fetch offsets of %s: %w", group, err)
		case <-time.After(50 * time.Millisecond):
		}
		got, err = adm.FetchOffsets(ctx, group)
	}
	for p, acked := range before {
		if o, ok := got.Lookup("grouped", p); !ok || o.At < acked {
			return fmt.Errorf("group %s partition %d: %d was acknowledged, now it is %d", group, p, acked, o.At)
		}
	}
	return nil
}

// member reads in a group and commits what it has read, until ctx ends. It leaves
// in good order or vanishes, as a machine does that loses its power.
func member(ctx context.Context, address, group string, balancer kgo.GroupBalancer, vanish bool, c *commits) error {
	var way harness.Line
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics("grouped"), kgo.Balancers(balancer),
		kgo.Dialer(way.Dial), kgo.DisableAutoCommit(), kgo.SessionTimeout(session), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(), kgo.WithContext(context.WithoutCancel(ctx)))
	if err != nil {
		return err
	}
	defer func() {
		if vanish {
			way.Cut()
		}
		cl.AllowRebalance()
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = cl.LeaveGroupContext(leaving) // The broker may be down, or the line is cut.
		cl.Close()
	}()
	for ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := cl.PollRecords(poll, 50)
		cancel()
		if fetches.NumRecords() > 0 {
			head := cl.UncommittedOffsets()
			try, cancel := context.WithTimeout(ctx, 2*time.Second)
			if err := cl.CommitUncommittedOffsets(try); err == nil {
				c.add(group, head)
			}
			cancel()
		}
		cl.AllowRebalance()
	}
	return nil
}

// brokerAssigns is what franz-go looks for in a context to have the broker assign
// partitions (KIP-848).
//
//nolint:revive // The client compares with a plain string.
const brokerAssigns = "opt_in_kafka_next_gen_balancer_beta"

// migrating is a group whose members come by either protocol: it goes from one kind
// of group to the other and back.
const migrating = "migrating"

// session is after how long a member that has vanished is out of its group.
const session = 2 * time.Second

// TestKillInMidRebalance kills the broker with SIGKILL while members of groups
// come and go and commit. No committed offset goes back.
func TestKillInMidRebalance(t *testing.T) {
	rounds := number(t, "MAINSTEM_CRASH_ROUNDS", 3)
	seed := uint64(number(t, "MAINSTEM_CRASH_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("MAINSTEM_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	node := harness.Start(t, "group.initial.rebalance.delay.ms=50", "group.consumer.assignment.interval.ms=50",
		"group.consumer.min.heartbeat.interval.ms=100", "group.consumer.heartbeat.interval.ms=300",
		"group.consumer.min.session.timeout.ms=1000", "group.min.session.timeout.ms=1000",
		fmt.Sprint("group.consumer.session.timeout.ms=", session.Milliseconds()))
	create(t, node.Address, "grouped", 8, nil)

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { produceOn(ctx, node.Address) })

	c := &commits{acked: map[string]map[int32]int64{}}
	groups := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "sticky": kgo.StickyBalancer(), "cooperative": kgo.CooperativeStickyBalancer(),
		"broker-uniform": kgo.StickyBalancer(), "broker-range": kgo.RangeBalancer(),
		migrating: kgo.RangeBalancer(),
	}
	for group, balancer := range groups {
		for i := range 3 {
			lives := rand.New(rand.NewPCG(seed, uint64(i)))
			running.Go(func() {
				ctx := ctx
				if strings.HasPrefix(group, "broker-") {
					ctx = context.WithValue(ctx, brokerAssigns, true)
				}
				for ctx.Err() == nil {
					ctx := ctx
					if group == migrating && lives.IntN(2) == 0 {
						ctx = context.WithValue(ctx, brokerAssigns, true)
					}
					life, end := context.WithTimeout(ctx, time.Duration(1000+lives.IntN(4000))*time.Millisecond)
					if err := member(life, node.Address, group, balancer, lives.IntN(2) == 0, c); err != nil {
						t.Errorf("member of %s: %v", group, err)
					}
					end()
				}
			})
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address))
	require.NoError(t, err)
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for round := range rounds {
		time.Sleep(time.Duration(500+rng.IntN(2500)) * time.Millisecond)
		node.Kill()
		require.NoError(t, node.Start(), "round %d", round)
		for group := range groups {
			within, cancel := context.WithTimeout(ctx, 20*time.Second)
			require.NoError(t, c.check(within, adm, group), "round %d", round)
			cancel()
		}
	}
	awaitProgress(t, c, groups)
	t.Logf("%d rounds, %d commits acknowledged", rounds, c.total())
}

// awaitProgress waits until each group has committed something new.
func awaitProgress(t *testing.T, c *commits, groups map[string]kgo.GroupBalancer) {
	t.Helper()
	for group := range groups {
		before := c.snapshot(group)
		require.Eventually(t, func() bool {
			for p, o := range c.snapshot(group) {
				if o > before[p] {
					return true
				}
			}
			return false
		}, time.Minute, 50*time.Millisecond, "group %s must go on after the crashes", group)
	}
}

// produceOn writes records until ctx ends.
func produceOn(ctx context.Context, address string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic("grouped"))
	if err != nil {
		return
	}
	defer cl.Close()
	for i := 0; ctx.Err() == nil; i++ {
		cl.Produce(ctx, kgo.StringRecord(fmt.Sprint(i)), nil)
		time.Sleep(time.Millisecond)
	}
}
