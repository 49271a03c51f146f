package replica

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func taken(w *Waiter) (out []*Watch) {
	for x := w.Take(); x != nil; x = x.Next() {
		out = append(out, x)
	}
	return out
}

func signalled(w *Waiter) bool {
	select {
	case <-w.Signal():
		return true
	default:
		return false
	}
}

func TestWaiterTakesMarkedWatchesOnceInOrder(t *testing.T) {
	var parts [3]Partition
	var watches [3]Watch
	w := NewWaiter()
	for i := range parts {
		watches[i].Hang(w, &parts[i])
	}
	require.Nil(t, w.Take())
	require.False(t, signalled(w))

	parts[2].wake()
	parts[0].wake()
	parts[2].wake()
	require.True(t, signalled(w))
	require.False(t, signalled(w))
	require.Equal(t, []*Watch{&watches[2], &watches[0]}, taken(w))
	require.Nil(t, w.Take())

	parts[2].wake()
	require.True(t, signalled(w), "a taken watch is marked anew")
	require.Equal(t, []*Watch{&watches[2]}, taken(w))
}

func TestOnePartitionWakesAllWhoWatchIt(t *testing.T) {
	var p Partition
	waiters := []*Waiter{NewWaiter(), NewWaiter(), NewWaiter()}
	watches := make([]Watch, len(waiters))
	for i := range watches {
		watches[i].Hang(waiters[i], &p)
	}
	watches[1].Drop()
	p.wake()
	require.True(t, signalled(waiters[0]))
	require.False(t, signalled(waiters[1]))
	require.True(t, signalled(waiters[2]))
	watches[0].Drop()
	watches[2].Drop()
	require.Nil(t, p.watches)
	require.False(t, watches[0].Hung())
}

func TestDroppedWatchDoesNotComeOut(t *testing.T) {
	var p, q Partition
	var onP, onQ Watch
	w := NewWaiter()
	onP.Hang(w, &p)
	onQ.Hang(w, &q)
	p.wake()
	q.wake()
	onP.Drop()
	require.Equal(t, []*Watch{&onQ}, taken(w))

	onP.Hang(w, &q)
	q.wake()
	require.ElementsMatch(t, []*Watch{&onP, &onQ}, taken(w), "a watch may hang again elsewhere")
}

func TestNoMoveIsMissed(t *testing.T) {
	var p Partition
	var x Watch
	w := NewWaiter()
	x.Hang(w, &p)
	const moves = 20000
	go func() {
		for range moves {
			p.hw.Add(1)
			p.wake()
		}
	}()
	// Whoever looks after each signal sees the last move.
	for p.hw.Load() < moves {
		<-w.Signal()
		w.Take()
	}
	x.Drop()
}
