package errorfs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

func newFS(t *testing.T) (*errorfs.FS, *vfs.Mem) {
	m := vfs.NewMem(1)
	require.NoError(t, m.MkdirAll("d"))
	return errorfs.New(m), m
}

// script does each kind of operation once and returns the first error.
func script(fsys vfs.FS) error {
	var errs []error
	did := func(err error) { errs = append(errs, err) }
	did(fsys.MkdirAll("d/sub"))
	f, err := fsys.Create("d/a")
	did(err)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("hello"), 0)
	did(err)
	_, err = f.WritevAt([][]byte{[]byte("hel"), []byte("lo!")}, 0)
	did(err)
	did(f.Allocate(0, 100))
	did(f.Truncate(50))
	did(f.Sync())
	did(f.SyncData())
	_, err = f.Size()
	did(err)
	_, err = f.ReadAt(make([]byte, 3), 0)
	did(err)
	did(f.Close())
	did(fsys.SyncDir("d"))
	for _, open := range []func(string) (vfs.File, error){fsys.Open, fsys.OpenRW} {
		f, err := open("d/a")
		did(err)
		if err == nil {
			did(f.Close())
		}
	}
	_, err = fsys.List("d")
	did(err)
	_, err = fsys.Stat("d/a")
	did(err)
	_, _, err = fsys.Space("d")
	did(err)
	lock, err := fsys.Lock("d/lock")
	did(err)
	if err == nil {
		did(lock.Close())
	}
	if err := fsys.Rename("d/a", "d/b"); err != nil {
		did(err)
		did(fsys.Remove("d/a"))
	} else {
		did(fsys.Remove("d/b"))
	}
	return errors.Join(errs...)
}

func TestEveryOperationFailsOnce(t *testing.T) {
	var kinds errorfs.Kind
	for n := 0; ; n++ {
		fsys, _ := newFS(t)
		failure := fsys.Fail(errorfs.Rule{After: n})
		err := script(fsys)
		if failure.Hits() == 0 {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, errorfs.ErrInjected)
		require.Equal(t, 1, failure.Hits())
		require.ErrorContains(t, err, failure.First().Kind.String()+" "+failure.First().Path)
		kinds |= failure.First().Kind
	}
	require.Equal(t, errorfs.All, kinds, "each kind was met: %v", kinds)
}

func TestOperationsAreCounted(t *testing.T) {
	fsys, _ := newFS(t)
	require.NoError(t, script(fsys))
	require.Equal(t, 2, fsys.Count(errorfs.Write))
	require.Equal(t, 3, fsys.Count(errorfs.Syncs))
	require.Equal(t, 3, fsys.Count(errorfs.Close))
	require.Equal(t, 1, fsys.Count(errorfs.Rename))
	require.Equal(t, 22, fsys.Count(errorfs.All))
	fsys.Fail(errorfs.Rule{Kinds: errorfs.Stat})
	_, err := fsys.Stat("d")
	require.Error(t, err)
	require.Equal(t, 23, fsys.Count(errorfs.All), "failures count too")
}

func TestRulesChooseByKindPathAndMatch(t *testing.T) {
	fsys, _ := newFS(t)
	a, err := fsys.Create("d/a")
	require.NoError(t, err)
	b, err := fsys.Create("d/b")
	require.NoError(t, err)
	full := fsys.Fail(errorfs.Rule{Kinds: errorfs.Allocate | errorfs.Write, Path: "/b", Times: errorfs.Forever, Err: vfs.ErrNoSpace})
	_, err = a.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	for range 3 {
		_, err = b.WriteAt([]byte("x"), 0)
		require.True(t, vfs.IsNoSpace(err))
		require.True(t, vfs.IsNoSpace(b.Allocate(0, 1)))
	}
	require.NoError(t, b.Sync())
	require.Equal(t, 6, full.Hits())
	full.Stop()
	_, err = b.WriteAt([]byte("x"), 0)
	require.NoError(t, err)

	large := fsys.Fail(errorfs.Rule{After: 1, Times: 2, Match: func(op errorfs.Op) bool { return op.Len > 5 || op.To == "d/c" }})
	_, err = a.WriteAt([]byte("small"), 0)
	require.NoError(t, err)
	_, err = a.WriteAt([]byte("larger"), 0)
	require.NoError(t, err, "one passes")
	_, err = a.WriteAt([]byte("larger"), 10)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	require.Equal(t, errorfs.Op{Kind: errorfs.Write, Path: "d/a", Off: 10, Len: 6}, large.First())
	require.ErrorIs(t, fsys.Rename("d/b", "d/c"), errorfs.ErrInjected)
	require.NoError(t, fsys.Rename("d/b", "d/c"))
	require.Equal(t, 4, large.Matched())
	byTarget := fsys.Fail(errorfs.Rule{Path: "target"})
	require.Error(t, fsys.Rename("d/c", "d/target"))
	require.Equal(t, 1, byTarget.Hits())
}

func TestAShortWriteLetsHalfArrive(t *testing.T) {
	fsys, m := newFS(t)
	f, err := fsys.Create("d/f")
	require.NoError(t, err)
	fsys.Fail(errorfs.Rule{Kinds: errorfs.Write, Times: 2, Short: true})
	n, err := f.WriteAt([]byte("abcdef"), 0)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	require.Equal(t, 3, n)
	n, err = f.WritevAt([][]byte{[]byte("gh"), []byte("ij"), []byte("kl")}, 3)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	require.Equal(t, 3, n)
	got := make([]byte, 6)
	g, err := m.Open("d/f")
	require.NoError(t, err)
	_, err = g.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, "abcghi", string(got))
}

func TestAFailedSyncLosesTheData(t *testing.T) {
	fsys, m := newFS(t)
	f, err := fsys.Create("d/f")
	require.NoError(t, err)
	require.NoError(t, f.Allocate(0, 4))
	require.NoError(t, f.Sync())
	require.NoError(t, fsys.SyncDir("d"))
	_, err = f.WriteAt([]byte("lost"), 0)
	require.NoError(t, err)
	fsys.Fail(errorfs.Rule{Kinds: errorfs.Syncs, Times: 2})
	require.Error(t, f.SyncData())
	_, err = fsys.Create("d/g")
	require.NoError(t, err)
	require.Error(t, fsys.SyncDir("d"))
	require.NoError(t, f.SyncData())
	require.NoError(t, fsys.SyncDir("d"))

	c := m.Crash(nil)
	names, err := c.List("d")
	require.NoError(t, err)
	require.Equal(t, []string{"f"}, names)
	g, err := c.Open("d/f")
	require.NoError(t, err)
	got := make([]byte, 4)
	_, err = g.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 4), got)
}

func TestStubbedSyncsDoNothing(t *testing.T) {
	fsys, m := newFS(t)
	fsys.StubSyncs(errorfs.Syncs)
	f, err := fsys.Create("d/f")
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.SyncData())
	require.NoError(t, fsys.SyncDir("d"))
	lost := 0
	for range 50 {
		if names, err := m.Crash(nil).List("d"); err == nil && len(names) == 0 {
			lost++
		}
	}
	require.NotZero(t, lost)
	require.Panics(t, func() { fsys.StubSyncs(errorfs.Write) })
}

func TestPowerIsCutAfterSoManyChanges(t *testing.T) {
	fsys, _ := newFS(t)
	require.NoError(t, script(fsys))
	changes := fsys.Count(errorfs.Mutations)
	for n := range changes + 1 {
		fsys, _ := newFS(t)
		cut := fsys.CutPower(n)
		err := script(fsys)
		if n == changes {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, vfs.ErrCrashed)
		require.NotZero(t, cut.First().Kind&errorfs.Mutations)
		_, err = fsys.Stat("d")
		require.ErrorIs(t, err, vfs.ErrCrashed, "reads fail too from then on")
	}
}

func TestAWatcherSeesOperationsBeforeTheyHappen(t *testing.T) {
	fsys, m := newFS(t)
	var seen []errorfs.Op
	fsys.Watch(func(op errorfs.Op) {
		seen = append(seen, op)
		_, err := m.Stat("d/f")
		require.Error(t, err)
	})
	_, err := fsys.Create("d/f")
	require.NoError(t, err)
	require.Equal(t, []errorfs.Op{{Kind: errorfs.Create, Path: "d/f"}}, seen)
	require.Equal(t, "sync|syncdata", (errorfs.Sync | errorfs.SyncData).String())
}
