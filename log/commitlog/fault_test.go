package commitlog

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

// script works on a log with one goroutine and returns the first error.
func script(h *history, fs vfs.FS) error {
	l, frames, err := tryReopen(h.options(fs))
	if err != nil {
		return err
	}
	if err := h.check(frames); err != nil {
		return errors.Join(err, l.Close())
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 60 {
		if err = h.append(l, rng); err == nil {
			err = h.tend(l, rng)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, l.Close())
}

// TestEveryOperationFailsOnce makes the n-th operation fail, for all n: each is reported or made good, and all that was acknowledged is
// there afterwards, for the next process and after a loss of power.
func TestEveryOperationFailsOnce(t *testing.T) {
	for _, fault := range []struct {
		name  string
		err   error
		kinds errorfs.Kind
	}{
		{"error", errorfs.ErrInjected, errorfs.Mutations | errorfs.OpenRW},
		{"no space", vfs.ErrNoSpace, errorfs.Create | errorfs.Allocate | errorfs.Write},
		{"read error", errorfs.ErrInjected, errorfs.Reads},
	} {
		t.Run(fault.name, func(t *testing.T) {
			for n := 0; ; n++ {
				mem := vfs.NewMem(uint64(n))
				h := newHistory(uint64(n))
				fs := errorfs.New(mem)
				require.NoError(t, script(h, fs))
				fail := fs.Fail(errorfs.Rule{Kinds: fault.kinds, After: n, Err: fault.err, Match: notLock})
				h.events = nil
				err := script(h, fs)
				if fail.Hits() == 0 {
					require.NoError(t, err)
					break
				}
				if err != nil {
					require.True(t, errors.Is(err, fault.err) || errors.Is(err, ErrDiskFull), "%d: %+v: %v", n, fail.First(), err)
				}
				if !vfs.IsNoSpace(fault.err) { // Which the reserve makes good.
					require.Error(t, errors.Join(append(h.events, err)...), "%d: %+v was swallowed", n, fail.First())
				}
				require.NoError(t, script(h, mem), "the process died: %d: %+v", n, fail.First())
				h.rng, h.powerLost = rand.New(rand.NewPCG(uint64(n), 9)), true
				require.NoError(t, script(h, mem.Crash(h.rng)), "%d: %+v", n, fail.First())
			}
		})
	}
}

func notLock(op errorfs.Op) bool { return op.Path != "data/"+lockName }

func TestAFailedSyncIsFinal(t *testing.T) {
	mem := vfs.NewMem(1)
	fs := errorfs.New(mem)
	var poisoned error
	o := smallOptions(fs)
	o.Events.Poisoned = func(err error) { poisoned = err }
	l, _ := reopen(t, o)
	id := PartitionID{Partition: 1}
	first, err := appendBatch(l, id, 0, 100)
	require.NoError(t, err)
	fs.Fail(errorfs.Rule{Kinds: errorfs.SyncData})
	_, err = appendBatch(l, id, 1, 100)
	require.ErrorIs(t, err, ErrPoisoned)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	require.ErrorIs(t, poisoned, ErrPoisoned)
	<-l.Done()
	_, err = appendBatch(l, id, 2, 100)
	require.ErrorIs(t, err, ErrPoisoned)
	require.NoError(t, l.Commit(first.End(), Synced), "what was durable stays so")
	require.ErrorIs(t, l.Drop([]SegmentID{1}), ErrPoisoned)
	got, err := read(l, first)
	require.NoError(t, err)
	require.Equal(t, string(testBatch(0, 3, 1, 100, 0)), got)
	require.ErrorIs(t, l.Close(), ErrPoisoned)

	// The frame whose sync failed can still be read; recovery makes it durable before it shows it.
	l, frames := reopen(t, smallOptions(mem))
	require.Len(t, frames, 2)
	require.ErrorIs(t, errors.Join(l.Close(), ErrClosed), ErrClosed)
	l, frames = reopen(t, smallOptions(mem.Crash(nil)))
	require.Len(t, frames, 2)
	require.NoError(t, l.Close())
}

func TestAShortWriteIsFinal(t *testing.T) {
	fs := errorfs.New(vfs.NewMem(1))
	l, _ := reopen(t, smallOptions(fs))
	_, err := appendBatch(l, PartitionID{}, 0, 100)
	require.NoError(t, err)
	fs.Fail(errorfs.Rule{Kinds: errorfs.Write, Path: segmentSuffix, Short: true})
	_, err = appendBatch(l, PartitionID{}, 1, 100)
	require.ErrorIs(t, err, ErrPoisoned)
	require.ErrorIs(t, l.Close(), ErrPoisoned)
}
