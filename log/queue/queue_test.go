package queue

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/commitlog"
	"github.com/mainstem/mainstem/protocol/batch"
)

func TestEpochsAgreeWithASlowTwin(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		e := newEpochs()
		var twin []int32 // the epoch of each offset
		start, epoch := 0, int32(0)
		for range 60 {
			switch rng.IntN(6) {
			case 0:
				epoch += int32(1 + rng.IntN(3))
				e.Assign(epoch, int64(len(twin)))
			case 1:
				if n := start + rng.IntN(len(twin)-start+1); rng.IntN(2) == 0 {
					e.truncate(int64(n))
					twin = twin[:n]
				} else {
					e.moveStart(int64(n))
					start = n
				}
			default:
				e.Assign(epoch, int64(len(twin)))
				twin = append(twin, epoch)
			}
			require.Equal(t, epoch, max(e.Latest(), 0))
			for o := start; o < len(twin); o++ {
				require.Equal(t, twin[o], e.Of(int64(o)), "seed %d: offset %d", seed, o)
			}
			for want := range epoch + 1 {
				found, end := e.End(want, int64(len(twin)))
				for o := start; o < len(twin); o++ {
					if twin[o] <= want {
						require.Greater(t, end, int64(o), "seed %d: epoch %d", seed, want)
						require.GreaterOrEqual(t, found, twin[o])
					} else if found >= 0 {
						require.LessOrEqual(t, end, int64(o), "seed %d: epoch %d", seed, want)
						break
					}
				}
			}
		}
	}
}

func TestTheActiveBaseRollsAsKafkasSegmentsDo(t *testing.T) {
	a := Active{FirstTimestamp: -1}
	roll := Roll{Ms: 1000, Bytes: 250}
	a.add(0, 9, 5000, 100, roll)
	a.add(10, 19, 5900, 100, roll)
	require.Equal(t, Active{Base: 0, FirstTimestamp: 5000, Bytes: 200}, a)
	a.add(20, 29, 5900, 51, roll)
	require.Equal(t, Active{Base: 20, FirstTimestamp: 5900, Bytes: 51}, a, "it would have passed segment.bytes")
	a.add(30, 30, 6900, 10, roll)
	require.EqualValues(t, 20, a.Base, "segment.ms is not passed yet")
	a.add(31, 31, 6901, 10, roll)
	require.Equal(t, Active{Base: 31, FirstTimestamp: 6901, Bytes: 10}, a)
	a.add(32, 32, 1, 300, Roll{})
	require.EqualValues(t, 31, a.Base, "without limits it stays")
	a.add(33, 31+math.MaxInt32+1, 1, 10, Roll{})
	require.EqualValues(t, 33, a.Base, "offsets of a segment fit an int32")
}

func TestAReplayAppliesAFrameOnce(t *testing.T) {
	h := batch.Header{ProducerID: 4, BaseSequence: 0}
	entry := func(lsn commitlog.LSN, base int64) Entry {
		return Entry{Base: base, LSN: lsn, Size: 100, Count: 1, Epoch: 1}
	}
	q := New()
	q.Data(1, entry(10, 0), &h, nil, 0)
	q.Data(1, entry(20, 1), &h, nil, 0)
	s, err := DecodeState((&State{Queue: q}).Append(nil))
	require.NoError(t, err)
	again := New()
	again.Adopt(s)
	again.Data(1, entry(10, 0), &h, nil, 0)
	again.Data(1, entry(20, 1), &h, nil, 0)
	require.Equal(t, q.Bytes(), again.Bytes())
	require.Equal(t, q.End(), again.End())
	require.Equal(t, q.Runs(), again.Runs())
	require.Len(t, again.Producers.Get(4).Batches(), 2)
}

func TestALostFrameLeavesAHole(t *testing.T) {
	h := batch.Header{ProducerID: -1}
	q := New()
	q.Data(1, Entry{Base: 0, LSN: 10, Size: 100, Count: 5}, &h, nil, 0)
	q.Data(1, Entry{Base: 8, LSN: 30, Size: 100, Count: 2}, &h, nil, 0)
	q.Damaged(40, 10, 3, 2)
	require.Equal(t, []Span{{5, 7}, {10, 12}}, q.Holes())
	require.EqualValues(t, 13, q.End())
	q.BeginEpoch(50, 3, 15)
	require.Equal(t, []Span{{5, 7}, {10, 14}}, q.Holes())
	q.MoveStart(60, 6, 100)
	require.Equal(t, []Span{{6, 7}, {10, 14}}, q.Holes())
	q.Truncate(70, 8, 100, Producers{})
	require.Equal(t, []Span{{6, 7}}, q.Holes())
	require.False(t, q.AddHole(Span{6, 7}))
	require.True(t, q.AddHole(Span{6, 8}))
}

func TestOfTwoCutsTheLowerLaterOneCounts(t *testing.T) {
	q := New()
	h := batch.Header{ProducerID: -1}
	for i := range int64(10) {
		q.Data(1, Entry{Base: i, LSN: commitlog.LSN(10 + i), Size: 1, Count: 1}, &h, nil, 0)
	}
	q.Truncate(100, 8, 2, Producers{})
	q.Truncate(200, 5, 3, Producers{})
	q.Truncate(300, 5, 0, Producers{})
	require.Equal(t, []Cut{{300, 5}}, q.Cuts())
	require.False(t, q.Live(&Entry{Base: 5, LSN: 15}))
	require.True(t, q.Live(&Entry{Base: 4, LSN: 14}))
	require.True(t, q.Live(&Entry{Base: 5, LSN: 301}))
	q.ForgetCuts(299)
	require.Len(t, q.Cuts(), 1)
	q.ForgetCuts(300)
	require.Empty(t, q.Cuts())
}
