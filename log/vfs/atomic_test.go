package vfs_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

// atomicCrash writes a file anew, cuts the power after n operations, and says whether what is found then is right.
func atomicCrash(t *testing.T, seed uint64, n int, stub errorfs.Kind) (right, finished bool) {
	oldData, newData := fill('o', 3*sector), fill('n', 2*sector)
	m := vfs.NewMem(seed)
	require.NoError(t, m.MkdirAll("d"))
	require.NoError(t, vfs.WriteAtomic(m, "d/f", []byte(oldData)))
	fsys := errorfs.New(m)
	fsys.StubSyncs(stub)
	fsys.CutPower(n)
	err := vfs.WriteAtomic(fsys, "d/f", []byte(newData))
	if err != nil {
		require.ErrorIs(t, err, vfs.ErrCrashed)
	}
	got := content(t, m.Crash(rand.New(rand.NewPCG(seed, 3))), "d/f")
	return got == newData || (err != nil && got == oldData), err == nil
}

func TestWriteAtomicLeavesOldOrNewWhereverThePowerGoes(t *testing.T) {
	for n, finished := 0, false; !finished; n++ {
		for seed := range seeds(t) {
			var right bool
			right, finished = atomicCrash(t, seed, n, 0)
			require.True(t, right, "power cut after %d operations, seed %d", n, seed)
		}
	}
}

func TestTheCrashTestNoticesASyncThatDoesNothing(t *testing.T) {
	for _, stub := range []errorfs.Kind{errorfs.Sync, errorfs.SyncDir} {
		wrong := 0
		for seed := range seeds(t) {
			if right, finished := atomicCrash(t, seed, 1000, stub); !right {
				require.True(t, finished)
				wrong++
			}
		}
		require.NotZero(t, wrong, "%v was stubbed", stub)
	}
}

func TestWriteAtomicReportsEachFailureAndLeavesTheOldFile(t *testing.T) {
	for n := 0; ; n++ {
		m := vfs.NewMem(1)
		require.NoError(t, m.MkdirAll("d"))
		require.NoError(t, vfs.WriteAtomic(m, "d/f", []byte("old")))
		fsys := errorfs.New(m)
		failure := fsys.Fail(errorfs.Rule{After: n, Short: true})
		err := vfs.WriteAtomic(fsys, "d/f", []byte("new"))
		if failure.Hits() == 0 {
			require.NoError(t, err)
			require.Greater(t, n, 5)
			return
		}
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Fatalf("operation %d, %v, failed, but the error is %v", n, failure.First(), err)
		}
		require.ErrorContains(t, err, "d/f")
		got := content(t, m, "d/f")
		require.True(t, got == "old" || (failure.First().Kind == errorfs.SyncDir && got == "new"), "%v left %q", failure.First(), got)
		names, err := m.List("d")
		require.NoError(t, err)
		require.Equal(t, []string{"f"}, names, "nothing is left behind")
	}
}
