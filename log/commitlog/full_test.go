package commitlog

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
)

// fullOptions are of a log on a small disk, of which others may take the rest.
func fullOptions(fs vfs.FS) Options {
	o := smallOptions(fs)
	o.ReserveBytes = 64 << 10
	return o
}

// fill appends until clients are refused, and returns the places.
func fill(t *testing.T, l *Log) (places []Place) {
	t.Helper()
	for i := int64(0); ; i++ {
		p, err := appendBatch(l, PartitionID{}, i, 1000)
		if err != nil {
			require.ErrorIs(t, err, ErrDiskFull)
			return places
		}
		places = append(places, p)
		synctest.Wait() // The keeper decides whether there is room for more.
	}
}

func internal(l *Log, size int) error {
	r, err := l.Reserve(Budget{Bytes: size, Class: Internal})
	if err != nil {
		return err
	}
	defer r.Release()
	p, err := r.Place(Header{Kind: Delete}, nil, make([]byte, size))
	if err != nil {
		return err
	}
	return l.Commit(p.End(), Synced)
}

func TestAFullDiskRefusesClientsServesReadsAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem(1)
		fs.SetCapacity(300 << 10)
		o := fullOptions(fs)
		var events []error
		o.Events.DiskFull = func(err error) { events = append(events, err) }
		l, _ := reopen(t, o)
		places := fill(t, l)
		require.Greater(t, len(places), 60)
		require.Len(t, events, 1)
		for _, p := range places {
			_, err := read(l, p)
			require.NoError(t, err)
		}
		require.NoError(t, internal(l, 100), "control frames go on")
		require.NoError(t, l.Poisoned())

		// Freeing a segment heals without a restart.
		require.NoError(t, l.Drop([]SegmentID{places[0].Segment}))
		synctest.Wait()
		_, err := appendBatch(l, PartitionID{}, 1000, 1000)
		require.NoError(t, err)
		require.Equal(t, []error{events[0], nil}, events)

		fill(t, l)
		fs.SetCapacity(0) // Others made room: it is noticed within a while.
		time.Sleep(2 * healEvery)
		synctest.Wait()
		_, err = appendBatch(l, PartitionID{}, 2000, 1000)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

// takeRest fills the disk to the last byte, as somebody else would.
func takeRest(t *testing.T, fs *vfs.Mem) {
	t.Helper()
	f, err := fs.Create("others")
	require.NoError(t, err)
	var size int64
	for step := int64(1 << 20); step > 0; {
		if f.Allocate(size, step) == nil {
			size += step
		} else {
			step /= 2
		}
	}
	require.NoError(t, f.Close())
}

func TestAFullDiskIsNoReasonNotToOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem(1)
		fs.SetCapacity(400 << 10)
		l, _ := reopen(t, fullOptions(fs))
		places := fill(t, l)
		takeRest(t, fs)
		for i := range 6 { // Stops of both kinds, again and again.
			if i%2 == 0 {
				if err := l.Close(); err != nil { // Not clean, when others took even the reserve's bytes.
					require.ErrorIs(t, err, ErrDiskFull)
				}
			} else {
				fs = fs.Crash(nil)
				_ = l.Close()
			}
			takeRest(t, fs)
			var frames []found
			l, frames = reopen(t, fullOptions(fs))
			takeRest(t, fs)
			synctest.Wait()
			require.GreaterOrEqual(t, len(frames), len(places))
			_, err := appendBatch(l, PartitionID{}, 5000, 1000)
			require.ErrorIs(t, err, ErrDiskFull)
			for _, p := range places {
				_, err := read(l, p)
				require.NoError(t, err)
			}
		}
		if err := internal(l, 100); err != nil {
			require.ErrorIs(t, err, ErrDiskFull)
		}
		require.NoError(t, fs.Remove("others"))
		fs.SetCapacity(0)
		time.Sleep(2 * healEvery)
		synctest.Wait()
		_, err := appendBatch(l, PartitionID{}, 6000, 1000)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

// TestWhatAFullDiskPutOffIsDoneBeforeTheLogCountsAsClean stops a log that could not write down what recovery found.
func TestWhatAFullDiskPutOffIsDoneBeforeTheLogCountsAsClean(t *testing.T) {
	for _, room := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fs := vfs.NewMem(1)
			fs.SetCapacity(400 << 10)
			l, _ := reopen(t, fullOptions(fs))
			places := fill(t, l)
			_, err := read(l, places[len(places)-1])
			require.NoError(t, err)
			fs = fs.Crash(nil)
			_ = l.Close()
			require.NoError(t, fs.Remove("data/"+reserveName))
			takeRest(t, fs)
			full := errorfs.New(fs)
			noRoom := full.Fail(errorfs.Rule{Kinds: errorfs.Create | errorfs.Write, Path: manifestName, Times: errorfs.Forever, Err: vfs.ErrNoSpace})
			l, frames := reopen(t, fullOptions(full))
			require.Len(t, frames, len(places))
			require.Positive(t, noRoom.Hits())
			_, err = appendBatch(l, PartitionID{}, 5000, 100)
			require.ErrorIs(t, err, ErrDiskFull)
			require.ErrorIs(t, internal(l, 10), ErrDiskFull)
			_, err = read(l, places[len(places)-1])
			require.NoError(t, err)
			if room {
				noRoom.Stop()
				require.NoError(t, fs.Remove("others"))
				require.NoError(t, l.Close())
			} else {
				require.ErrorIs(t, l.Close(), ErrDiskFull)
				noRoom.Stop()
				require.NoError(t, fs.Remove("others"))
			}
			l, frames = reopen(t, fullOptions(fs))
			require.Len(t, frames, len(places))
			require.NoError(t, l.Close())
		})
	}
}

// TestAFullDiskLeavesRoomToDelete: whoever frees space must be able to say so, also after a crash on a full disk.
func TestAFullDiskLeavesRoomToDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem(1)
		fs.SetCapacity(400 << 10)
		l, _ := reopen(t, fullOptions(fs))
		fill(t, l)
		for range 5 {
			fs = fs.Crash(nil)
			_ = l.Close()
			l, _ = reopen(t, fullOptions(fs))
			synctest.Wait()
			require.NoError(t, internal(l, 100))
		}
		_, err := appendBatch(l, PartitionID{}, 5000, 1000)
		require.ErrorIs(t, err, ErrDiskFull)
		require.NoError(t, l.Close())
	})
}

func TestSpaceThatOthersNeedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem(1)
		fs.SetCapacity(600 << 10)
		o := fullOptions(fs)
		o.MinFree = 200 << 10
		l, _ := reopen(t, o)
		fill(t, l)
		free, _, err := fs.Space("data")
		require.NoError(t, err)
		require.GreaterOrEqual(t, free, uint64(o.MinFree)-(16<<10))
		require.NoError(t, l.Close())
	})
}

func TestIndexAndCheckpointMayUseTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem(1)
		fs.SetCapacity(300 << 10)
		l, _ := reopen(t, fullOptions(fs))
		places := fill(t, l)
		takeRest(t, fs)
		id := places[0].Segment
		require.NoError(t, l.WithReserve(func() error {
			return vfs.WriteAtomic(fs, "data/"+IndexName(id), make([]byte, 20<<10))
		}))
		require.NoError(t, l.AttachIndex(id, IndexName(id)))
		require.NoError(t, l.Close())
	})
}

func TestAPreparationThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := errorfs.New(vfs.NewMem(1))
		l, _ := reopen(t, smallOptions(fs))
		fail := fs.Fail(errorfs.Rule{Kinds: errorfs.Allocate, Times: 3})
		var err error
		for i := int64(0); err == nil; i++ {
			_, err = appendBatch(l, PartitionID{}, i, 1000)
		}
		require.ErrorIs(t, err, errorfs.ErrInjected)
		require.False(t, errors.Is(err, ErrPoisoned))
		time.Sleep(5 * healEvery)
		_, err = appendBatch(l, PartitionID{}, 100, 1000)
		require.NoError(t, err)
		require.Equal(t, 3, fail.Hits())
		require.NoError(t, l.Close())
	})
}
