package controller

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestProducerIDsAreNeverHandedOutTwice(t *testing.T) {
	o := external(t)
	clients := []*Client{open(t, o), open(t, o), open(t, o)}
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			first, n, err := clients[i%3].AllocateProducerIDs(context.Background())
			mu.Lock()
			defer mu.Unlock()
			if err != nil || n != 1000 || first%1000 != 0 || seen[first] {
				t.Errorf("first %d, n %d, seen %v: %v", first, n, seen[first], err)
			}
			seen[first] = true
		})
	}
	wg.Wait()
	first, _, err := open(t, o).AllocateProducerIDs(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 30_000, first)
}

func TestProducerIDsEnd(t *testing.T) {
	c := open(t, external(t))
	_, err := raw(t).Put(t.Context(), c.keys.ProducerIDs(), string(meta.EncodeNumber(math.MaxInt64-5)))
	require.NoError(t, err)
	_, _, err = c.AllocateProducerIDs(t.Context())
	require.ErrorContains(t, err, "none left")
}

func TestEpochsOfManyPartitionsAreRaisedByOneWrite(t *testing.T) {
	c := open(t, external(t))
	require.ErrorIs(t, c.RaiseEpochs(t.Context(), 1), ErrNotRegistered)
	require.NoError(t, c.Register(t.Context(), broker()))
	create(t, c, 5000, "a", "b")
	before := c.Image().Revision()
	require.NoError(t, c.RaiseEpochs(t.Context(), 0))
	require.NoError(t, c.RaiseEpochs(t.Context(), 4))
	require.Equal(t, before+2, c.Image().Revision())
	for topic := range c.Image().Topics() {
		for _, p := range topic.Partitions {
			require.EqualValues(t, 5, p.LeaderEpoch)
		}
	}
	create(t, c, 1, "c")
	require.EqualValues(t, 0, c.Image().Topic("c").Partitions[0].LeaderEpoch)
}
