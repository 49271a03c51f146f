package metrics

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucketsCoverAllDurationsInOrder(t *testing.T) {
	for i := range numBuckets - 1 {
		bound := upperBound(i)
		require.Equal(t, i, bucketOf(bound-time.Microsecond), "just below bucket %d's bound %v", i, bound)
		require.Equal(t, i+1, bucketOf(bound), "at bucket %d's bound %v", i, bound)
	}
	require.Equal(t, 0, bucketOf(0))
	require.Equal(t, numBuckets-1, bucketOf(time.Hour))
}

func TestNegativeDurationsCountAsZero(t *testing.T) {
	var h Histogram
	h.Observe(-time.Second)
	c := h.read()
	require.EqualValues(t, 1, c.buckets[0])
	require.Zero(t, c.sum)
}

func TestQuantilesAgreeWithASortedList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var h Histogram
		all := make([]time.Duration, 1+rng.IntN(2000))
		for i := range all {
			all[i] = time.Duration(rng.ExpFloat64() * float64(5*time.Millisecond))
			h.Observe(all[i])
		}
		slices.Sort(all)
		for _, q := range quantiles() {
			exact := all[min(int(q.part*float64(len(all))), len(all)-1)]
			got := h.read().quantile(q.part)
			require.GreaterOrEqual(t, got, min(exact, highest))
			require.LessOrEqual(t, float64(got), max(float64(lowest), float64(exact)*1.26), "q %v of %d", q.part, len(all))
		}
	}
}

func TestCumulativeCountsMatchTheirBounds(t *testing.T) {
	var h Histogram
	rng := rand.New(rand.NewPCG(3, 4))
	var all []time.Duration
	for range 5000 {
		d := time.Duration(rng.ExpFloat64()*float64(time.Second)) / time.Duration(1+rng.IntN(10000))
		all = append(all, d)
		h.Observe(d)
	}
	for _, step := range []int{1, 2} {
		for bound, n := range h.read().cumulative(step) {
			below := 0
			for _, d := range all {
				if d < time.Duration(bound*float64(time.Second)) {
					below++
				}
			}
			require.EqualValues(t, below, n, "bound %v s, step %d", bound, step)
		}
	}
}
