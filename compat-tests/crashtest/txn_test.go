package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestKillInTransactions kills the broker with SIGKILL at random moments while
// transactional producers commit and abort, and while a group reads, transforms and
// writes exactly once. Afterwards read_committed readers must see each committed
// record once and no aborted one, each record that was fed must have come out once,
// and no transaction may stay open.
func TestKillInTransactions(t *testing.T) {
	rounds := number(t, "MAINSTEM_CRASH_ROUNDS", 4)
	seed := uint64(number(t, "MAINSTEM_CRASH_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("MAINSTEM_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))

	node := harness.Start(t, "mainstem.commitlog.segment.bytes=4194304", "group.initial.rebalance.delay.ms=50",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
		"group.consumer.assignment.interval.ms=50", "group.consumer.min.heartbeat.interval.ms=100", "group.consumer.heartbeat.interval.ms=300",
		"group.consumer.min.session.timeout.ms=1000", "group.min.session.timeout.ms=1000",
		fmt.Sprint("group.consumer.session.timeout.ms=", session.Milliseconds()),
		"offsets.topic.num.partitions=4", "transaction.state.log.num.partitions=4")
	for _, topic := range []string{directTopic, sourceTopic, transformers()[0].to, transformers()[1].to} {
		create(t, node.Address, topic, txnPartitions, nil)
	}
	h := newTxnHistory()
	ctx, stop := context.WithCancel(t.Context())
	l := &txnLoad{address: node.Address, history: h, stop: stop}
	// Clients of before version 2 of transactions keep their epoch.
	for i, versions := range []*kversion.Versions{kversion.Stable(), kversion.V3_7_0(), kversion.V2_7_0()} {
		l.wg.Go(func() {
			l.produce(ctx, fmt.Sprintf("producer-%d", i), versions, rand.New(rand.NewPCG(seed, uint64(10+i))))
		})
	}
	starve := l.startTransforming(ctx, seed)
	live, closed := &reader{seen: map[string]int{}}, make(chan struct{})
	watching, unwatch := context.WithCancel(t.Context())
	defer unwatch()
	go func() {
		defer close(closed)
		live.read(watching, node.Address, directTopic)
	}()
	for round := range rounds {
		// Now and then there is time for the members whose clients were replaced.
		longest := 1500
		if round%3 == 2 {
			longest = 2 * int(session.Milliseconds())
		}
		time.Sleep(time.Duration(300+rng.IntN(longest)) * time.Millisecond)
		node.Kill()
		require.NoError(t, node.Start())
	}
	time.Sleep(time.Second)
	starve()
	through := l.transformed.Load()

	awaitTransformed(t, node.Address, h)
	stop()
	l.wg.Wait()
	node.Kill()
	require.NoError(t, node.Start())

	reading, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seen, err := countKeys(reading, node.Address, directTopic)
	require.NoError(t, err)
	require.NoError(t, h.verify(seen))
	require.Eventually(t, func() bool {
		got, _ := live.state()
		return len(got) >= len(seen)
	}, time.Minute, 20*time.Millisecond, "the reader through the crashes gets to the end")
	unwatch()
	<-closed
	got, err := live.state()
	require.NoError(t, err)
	require.Equal(t, seen, got, "the reader through the crashes has seen the same")
	verifyTransformed(reading, t, node.Address, h)
	require.Greater(t, h.count(committed), rounds*5)
	require.Greater(t, len(h.fed), rounds*20)
	require.Positive(t, through, "the groups must have gone on between the crashes")
	t.Logf("%d rounds: %d transactions committed, %d aborted, %d of unknown fate; %d records transformed by each group, %d transactions of theirs between the crashes",
		rounds, h.count(committed), h.count(aborted), h.count(unknown), len(h.fed), through)
}

// startTransforming starts the groups that transform, and who feeds them. What it
// returns ends the feeding.
func (l *txnLoad) startTransforming(ctx context.Context, seed uint64) (starve func()) {
	feeding, stop := context.WithCancel(ctx)
	feeder := make(chan struct{})
	go func() {
		defer close(feeder)
		l.feed(feeding, rand.New(rand.NewPCG(seed, 20)))
	}()
	for i := range 2 {
		for g, group := range transformers() {
			l.wg.Go(func() {
				l.transform(ctx, fmt.Sprintf("%s-%d", group.name, i), group, rand.New(rand.NewPCG(seed, uint64(30+10*g+i))))
			})
		}
	}
	return func() {
		stop()
		<-feeder
	}
}

// verifyTransformed requires that each group has written each record once.
func verifyTransformed(ctx context.Context, t *testing.T, address string, h *txnHistory) {
	t.Helper()
	for _, group := range transformers() {
		results, err := countKeys(ctx, address, group.to)
		require.NoError(t, err)
		for key, n := range results {
			require.Equal(t, 1, n, "record %s came out of %s %d times", key, group.name, n)
		}
		for key := range h.fed {
			require.Equal(t, 1, results[key], "record %s was acknowledged and did not come out of %s", key, group.name)
		}
	}
}

// awaitTransformed waits until all that was fed has come out.
func awaitTransformed(t *testing.T, address string, h *txnHistory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		missing := 0
		for _, group := range transformers() {
			results, err := countKeys(ctx, address, group.to)
			require.NoError(t, err)
			for key := range h.fed {
				if results[key] == 0 {
					missing++
				}
			}
		}
		if missing == 0 {
			return
		}
		t.Logf("%d of %d records have not come out yet", missing, len(h.fed)*len(transformers()))
		time.Sleep(time.Second)
	}
}
