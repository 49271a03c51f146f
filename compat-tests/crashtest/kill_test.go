package crashtest

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// number reads an environment variable, so that `make crash` runs more.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, name)
	return n
}

// TestKillUnderLoad kills the broker with SIGKILL at random moments while
// idempotent producers write to many partitions, and reads everything back.
func TestKillUnderLoad(t *testing.T) {
	rounds := number(t, "MAINSTEM_CRASH_ROUNDS", 5)
	seed := uint64(number(t, "MAINSTEM_CRASH_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("MAINSTEM_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))

	// Small segments, so that rolls, seals and recycling fall into the crashes.
	node := harness.Start(t, "mainstem.commitlog.segment.bytes=4194304")
	topics := map[string]int32{"synced": 150, "asynchronous": 50}
	create(t, node.Address, "synced", topics["synced"], nil)
	async := "async"
	create(t, node.Address, "asynchronous", topics["asynchronous"], map[string]*string{"mainstem.durability": &async})

	h, r := newHistory(), newReadLog()
	l, err := startLoad(node.Address, topics, 4, seed, h)
	require.NoError(t, err)
	for round := range rounds {
		time.Sleep(time.Duration(50+rng.IntN(750)) * time.Millisecond)
		node.Kill()
		require.NoError(t, node.Start(), "round %d", round)
		if round%10 == 9 {
			t.Logf("round %d: %d records acknowledged", round+1, h.count)
		}
	}
	require.NoError(t, l.end())
	node.Kill()
	require.NoError(t, node.Start())

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	require.NoError(t, readOn(ctx, node.Address, topics, r))
	require.NoError(t, h.verify(r))
	require.Greater(t, h.count, rounds*10, "the producers must have written through the crashes")
	t.Logf("%d rounds, %d records acknowledged, all there once", rounds, h.count)
}

func create(t *testing.T, address, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	require.NoError(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreateTopic(context.Background(), partitions, 1, configs, topic)
	require.NoError(t, err)
}
