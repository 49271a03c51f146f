package log_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/log/vfs/errorfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// verdict is a testing.TB that notes a failure instead of failing the test.
type verdict struct {
	testing.TB
	failed bool
	why    string
}

func (v *verdict) Errorf(format string, args ...any) {
	v.failed, v.why = true, fmt.Sprintf(format, args...)
}
func (v *verdict) FailNow() { v.failed = true; runtime.Goexit() }
func (v *verdict) Helper()  {}

func TestHistoriesFailWhenSyncsDoNothing(t *testing.T) {
	for _, stub := range []errorfs.Kind{errorfs.SyncData, errorfs.Syncs} {
		found := false
		for seed := uint64(0); seed < 60 && !found; seed++ {
			v := &verdict{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				playPowerCuts(v, seed, func(*log.Options) {}, stub)
			}()
			<-done
			found = v.failed
		}
		require.True(t, found, "no history noticed that %v does nothing", stub)
	}
}

// script does a little of everything and returns the first error. acked is
// what was acknowledged of the one topic that stays.
func script(fs vfs.FS, events log.Events) (acked []string, err error) {
	o := storetest.Small(fs)
	o.SegmentEntries = 12
	o.Events = events
	s, err := log.Open(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Create([]log.CreateSpec{{ID: storetest.ID(1, 0), Name: "stays", LeaderEpoch: 1}, {ID: storetest.ID(2, 0), Name: "goes", LeaderEpoch: 1}}); err != nil {
		return nil, err
	}
	stays, goes := s.Partition(storetest.ID(1, 0)), s.Partition(storetest.ID(2, 0))
	for i := range 40 {
		value := fmt.Sprintf("value %d", i)
		b := batch.NewBuilder(batch.Spec{})
		b.Append(1000, nil, []byte(value))
		records, err := b.Batch()
		if err != nil {
			return acked, err
		}
		if _, err := goes.Append(log.Append{Records: append([]byte{}, records...), LeaderEpoch: 1}); err != nil {
			return acked, err
		}
		a, err := stays.Append(log.Append{Records: records, LeaderEpoch: 1})
		if err == nil {
			err = s.Commit(a.Ticket)
		}
		if err != nil {
			return acked, err
		}
		acked = append(acked, value)
	}
	if _, err := s.MoveStarts(map[*log.Partition]int64{goes: 10}); err != nil {
		return acked, err
	}
	return acked, s.Delete([]log.PartitionID{goes.ID()})
}

func TestEveryOperationFailsOnceAndNothingAcknowledgedIsLost(t *testing.T) {
	for n, more := 0, true; more; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			mem := vfs.NewMem(uint64(n))
			fs := errorfs.New(mem)
			fail := fs.Fail(errorfs.Rule{Kinds: errorfs.All, After: n})
			var told atomic.Int64 // Work behind the scenes reports; what the caller asked for returns its error.
			acked, err := script(fs, log.Events{
				Background: func(string, error) { told.Add(1) },
				Poisoned:   func(error) { told.Add(1) },
				DiskFull:   func(bool, error) { told.Add(1) },
				Corrupt:    func(log.CorruptSpan) { told.Add(1) },
			})
			if fail.Hits() == 0 {
				require.NoError(t, err)
				require.Greater(t, n, 50)
				more = false
				return
			}
			if err == nil && fail.First().Kind&(errorfs.Remove|errorfs.Close|errorfs.Space) == 0 {
				require.Positive(t, told.Load(), "nobody was told of %v", fail.First())
			}
			s, oerr := log.Open(storetest.Small(mem))
			require.NoError(t, oerr, "after %v, which gave %v", fail.First(), err)
			if p := s.Partition(storetest.ID(1, 0)); p != nil {
				require.GreaterOrEqual(t, p.End(), int64(len(acked)))
				require.Equal(t, acked, append([]string(nil), storetest.Values(t, p, 0)[:len(acked)]...), "after %v, which gave %v", fail.First(), err)
			} else {
				require.Empty(t, acked)
			}
			require.NoError(t, s.Close())
			storetest.Check(t, mem)
		})
	}
}

func TestAFailedSyncPoisonsTheStoreForGood(t *testing.T) {
	mem := vfs.NewMem(1)
	fs := errorfs.New(mem)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	storetest.Append(t, s, p, batchOf(t, 100))
	fs.Fail(errorfs.Rule{Kinds: errorfs.SyncData})
	a, err := p.Append(log.Append{Records: batchOf(t, 100), LeaderEpoch: 1})
	require.NoError(t, err)
	require.ErrorIs(t, s.Commit(a.Ticket), log.ErrPoisoned)
	<-s.Done()
	require.ErrorIs(t, s.Err(), log.ErrPoisoned)
	require.EqualValues(t, 1, p.Durable(), "what the sync did not cover is not durable")
	_, err = p.Append(log.Append{Records: batchOf(t, 100), LeaderEpoch: 1})
	require.ErrorIs(t, err, log.ErrPoisoned)
	require.ErrorIs(t, s.Commit(a.Ticket), log.ErrPoisoned, "a later sync does not heal it")
	_ = s.Close()
	s = storetest.OpenOn(t, storetest.Small(mem))
	require.GreaterOrEqual(t, s.Partition(p.ID()).End(), int64(1))
}

func TestADamagedIndexIsRebuiltFromItsSegment(t *testing.T) {
	fs := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("value ", i))
		storetest.Append(t, s, p, storetest.Batch(t, batch.Spec{}, 1000, want[i]))
	}
	roll(t, s)
	require.NoError(t, s.Close())
	names, err := fs.List(storetest.Dir)
	require.NoError(t, err)
	for _, name := range names {
		if len(name) > 6 && name[len(name)-6:] == ".index" {
			f, err := fs.OpenRW(storetest.Dir + "/" + name)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("damage"), 1)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	rebuilt := make(chan string, 100)
	o := storetest.Small(fs)
	o.Events.Background = func(what string, err error) { rebuilt <- fmt.Sprint(what, err) }
	s = storetest.OpenOn(t, o)
	p = s.Partition(p.ID())
	deadline := time.After(10 * time.Second)
	for {
		b, err := p.Read(0, p.End(), 1<<20, true)
		if err == nil {
			b.Release()
			break
		}
		var damaged *log.StorageError
		require.ErrorAs(t, err, &damaged)
		select {
		case <-rebuilt:
		case <-deadline:
			t.Fatal("the index was not rebuilt")
		}
	}
	require.Equal(t, want, storetest.Values(t, p, 0))
}
