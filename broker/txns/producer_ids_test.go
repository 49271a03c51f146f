package txns

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProducerIDsAreNeverHandedOutTwice(t *testing.T) {
	var mu sync.Mutex
	block := int64(0)
	ids := newProducerIDs(func(context.Context) (int64, int, error) {
		mu.Lock()
		defer mu.Unlock()
		first := block
		block += 7
		return first, 7, nil
	})
	seen := make(map[int64]bool)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				id, err := ids.next(context.Background())
				mu.Lock()
				if err != nil || seen[id] {
					t.Errorf("id %d, seen %v, error %v", id, seen[id], err)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, seen, 800)
	require.EqualValues(t, 115*7, block, "a block is used up before the next is taken")
}

func TestProducerIDsGoOnAfterAFailedAllocation(t *testing.T) {
	fail := errors.New("no etcd")
	err := fail
	n := 2
	ids := newProducerIDs(func(context.Context) (int64, int, error) { return 40, n, err })
	_, got := ids.next(context.Background())
	require.ErrorIs(t, got, fail)
	err, n = nil, 0
	_, got = ids.next(context.Background())
	require.ErrorIs(t, got, errEmptyBlock)
	n = 2
	id, got := ids.next(context.Background())
	require.NoError(t, got)
	require.EqualValues(t, 40, id)
}

func TestProducerIDWaitEndsWithTheClient(t *testing.T) {
	held := make(chan struct{})
	ids := newProducerIDs(func(ctx context.Context) (int64, int, error) {
		close(held)
		<-ctx.Done()
		return 0, 0, ctx.Err()
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := ids.next(ctx)
		done <- err
	}()
	<-held
	gone, leave := context.WithCancel(context.Background())
	leave()
	_, err := ids.next(gone)
	require.ErrorIs(t, err, context.Canceled)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
