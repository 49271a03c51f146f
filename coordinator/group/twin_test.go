package group

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/coordinator/journaltest"
)

// twin keeps offsets in the slow and obvious way: what counts for a partition is
// the offset that was written last, be it plain or in a transaction that has
// committed by now.
type twin struct {
	clock  int
	counts map[place]written
	staged map[int]map[place]written
}

type written struct {
	when   int
	offset int64
}

func (w *twin) commit(at place, offset int64) {
	w.clock++
	w.counts[at] = written{w.clock, offset}
}

func (w *twin) stage(producer int, at place, offset int64) {
	w.clock++
	if w.staged[producer] == nil {
		w.staged[producer] = map[place]written{}
	}
	w.staged[producer][at] = written{w.clock, offset}
}

func (w *twin) end(producer int, commit bool) {
	for at, x := range w.staged[producer] {
		if commit && x.when > w.counts[at].when {
			w.counts[at] = x
		}
	}
	delete(w.staged, producer)
}

func (w *twin) forget(at place) {
	delete(w.counts, at)
	for _, held := range w.staged {
		delete(held, at)
	}
}

// shows is what fetching a partition gives; with stable, what a transaction holds
// is hidden.
func (w *twin) shows(at place, stable bool) string {
	for _, held := range w.staged {
		if _, ok := held[at]; ok && stable {
			return fmt.Sprintf(" %s/%d:-1 UNSTABLE_OFFSET_COMMIT", at.topic, at.partition)
		}
	}
	offset := int64(-1)
	if x, ok := w.counts[at]; ok {
		offset = x.offset
	}
	return fmt.Sprintf(" %s/%d:%d", at.topic, at.partition, offset)
}

// TestOffsetsAreThoseOfTheirSlowTwin plays random histories of commits,
// transactions, deletions and restarts.
func TestOffsetsAreThoseOfTheirSlowTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for history := range uint64(150) {
		synctest.Test(t, func(t *testing.T) { playTwins(t, rand.New(rand.NewPCG(seed, history))) })
	}
}

func playTwins(t *testing.T, rng *rand.Rand) {
	s := newStage(t)
	defer s.Close()
	w := &twin{counts: map[place]written{}, staged: map[int]map[place]written{}}
	var told []string
	do := func(command string) []string {
		told = append(told, command)
		s.Run(journaltest.Parse(t, command))
		synctest.Wait()
		return s.Told()
	}
	places := []place{{"t", 0}, {"t", 1}, {"u", 0}}
	for range 60 {
		at, offset, producer := places[rng.IntN(len(places))], rng.Int64N(1000), rng.IntN(3)
		where := fmt.Sprintf("%s/%d", at.topic, at.partition)
		switch rng.IntN(10) {
		case 0, 1, 2:
			do(fmt.Sprintf("commit %s:%d", where, offset))
			w.commit(at, offset)
		case 3, 4, 5:
			do(fmt.Sprintf("txn %d %s:%d", producer, where, offset))
			w.stage(producer, at, offset)
		case 6, 7:
			how := []string{"abort", "commit"}[rng.IntN(2)]
			do(fmt.Sprintf("end %d %s", producer, how))
			w.end(producer, how == "commit")
		case 8:
			// Before anything was committed there is no group to delete of.
			do("delete-offsets " + where)
			w.forget(at)
		case 9:
			do("restart")
		}
		stable := rng.IntN(2)
		got := do(fmt.Sprintf("fetch t/0 t/1 u/0 stable=%d", stable))
		want := "offsets: ok"
		for _, at := range places {
			want += w.shows(at, stable == 1)
		}
		require.Equal(t, []string{want}, got, "after\n%s", strings.Join(told, "\n"))
	}
}
