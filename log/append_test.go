package log_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol/batch"
)

// produce appends records of an idempotent producer.
func produce(t *testing.T, s *log.Store, p *log.Partition, producer batch.Producer, count int) (log.Appended, error) {
	t.Helper()
	values := make([]string, count)
	a, err := p.Append(log.Append{Records: storetest.Batch(t, batch.Spec{Producer: &producer}, 1000, values...), LeaderEpoch: p.LatestEpoch()})
	if err == nil {
		require.NoError(t, s.Commit(a.Ticket))
	}
	return a, err
}

func TestARepeatedBatchIsAnsweredWithItsFirstOffsets(t *testing.T) {
	fs := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	for i := range int32(7) {
		a, err := produce(t, s, p, batch.Producer{ID: 9, Epoch: 3, Sequence: i * 2}, 2)
		require.NoError(t, err)
		require.Equal(t, int64(i*2), a.BaseOffset)
	}
	check := func(s *log.Store, p *log.Partition) {
		for i := int32(2); i < 7; i++ {
			a, err := produce(t, s, p, batch.Producer{ID: 9, Epoch: 3, Sequence: i * 2}, 2)
			require.NoError(t, err)
			require.True(t, a.Duplicate)
			require.Equal(t, [2]int64{int64(i * 2), int64(i*2 + 1)}, [2]int64{a.BaseOffset, a.LastOffset})
		}
		for what, producer := range map[string]batch.Producer{
			"older than what is remembered": {ID: 9, Epoch: 3, Sequence: 2},
			"a gap":                         {ID: 9, Epoch: 3, Sequence: 16},
			"part of a remembered one":      {ID: 9, Epoch: 3, Sequence: 13},
			"a new epoch not from 0":        {ID: 9, Epoch: 4, Sequence: 14},
		} {
			_, err := produce(t, s, p, producer, 1)
			require.ErrorIs(t, err, log.ErrOutOfOrderSequence, what)
		}
		_, err := produce(t, s, p, batch.Producer{ID: 9, Epoch: 2, Sequence: 14}, 2)
		require.ErrorIs(t, err, log.ErrProducerEpoch)
		require.EqualValues(t, 14, p.End())
	}
	check(s, p)
	require.NoError(t, s.Close())
	s = storetest.OpenOn(t, storetest.Small(fs))
	p = s.Partition(p.ID())
	require.NoError(t, s.BeginEpochs([]log.EpochStart{{ID: p.ID(), Epoch: 2}}))
	check(s, p)
	_, err = produce(t, s, p, batch.Producer{ID: 9, Epoch: 4, Sequence: 0}, 1)
	require.NoError(t, err)
	a, err := produce(t, s, p, batch.Producer{ID: 10, Sequence: 77}, 1)
	require.NoError(t, err, "of an unknown producer any sequence is accepted")
	require.EqualValues(t, 15, a.BaseOffset)
}

func TestOfACoordinatorsBatchWithoutSequenceOnlyEpochAndTransactionCount(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "__consumer_offsets", 1, log.Fsync)[0]
	commit := func(epoch int16, transactional bool) error {
		spec := batch.Spec{Transactional: transactional, Producer: &batch.Producer{ID: 4, Epoch: epoch, Sequence: -1}}
		_, err := p.Append(log.Append{Records: storetest.Batch(t, spec, 1000, "offset"), LeaderEpoch: 1, Origin: log.Coordinator})
		s.Kick()
		return err
	}
	require.NoError(t, commit(1, true))
	require.NoError(t, commit(1, true))
	require.ErrorIs(t, commit(0, true), log.ErrProducerEpoch)
	require.ErrorIs(t, commit(1, false), log.ErrTxnState)
	require.EqualValues(t, 2, p.End())
	first, ok := p.FirstUnstable()
	require.True(t, ok)
	require.Zero(t, first)
}

func TestSequencesWrapAlsoWithinABatch(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	_, err := produce(t, s, p, batch.Producer{ID: 1, Sequence: math.MaxInt32 - 1}, 4)
	require.NoError(t, err)
	a, err := produce(t, s, p, batch.Producer{ID: 1, Sequence: math.MaxInt32 - 1}, 4)
	require.NoError(t, err)
	require.True(t, a.Duplicate)
	require.Equal(t, [2]int64{0, 3}, [2]int64{a.BaseOffset, a.LastOffset})
	_, err = produce(t, s, p, batch.Producer{ID: 1, Sequence: 2}, 1)
	require.NoError(t, err)
}

func TestProducersAreForgottenByTheBrokersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, func(o *log.Options) { o.ProducerExpiry = func() time.Duration { return time.Hour } })
		p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
		values := storetest.Batch(t, batch.Spec{Producer: &batch.Producer{ID: 5}}, -1, "no timestamp")
		storetest.Append(t, s, p, slices.Clone(values))
		time.Sleep(59 * time.Minute)
		s.ExpireProducers(time.Now())
		require.Len(t, p.Producers(), 1)
		time.Sleep(2 * time.Minute)
		s.ExpireProducers(time.Now())
		require.Empty(t, p.Producers())
	})
}

func TestALeaderAppendsOnlyInAnEpochBegunSinceTheOpening(t *testing.T) {
	fs := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	records := storetest.Batch(t, batch.Spec{}, 1000, "v")
	_, err = p.Append(log.Append{Records: records, LeaderEpoch: 0})
	require.ErrorIs(t, err, log.ErrEpoch)
	storetest.Append(t, s, p, records)
	require.NoError(t, s.Close())

	s = storetest.OpenOn(t, storetest.Small(fs))
	p = s.Partition(p.ID())
	require.EqualValues(t, 1, p.LatestEpoch())
	_, err = p.Append(log.Append{Records: records, LeaderEpoch: 1})
	require.ErrorIs(t, err, log.ErrEpoch)
	err = s.BeginEpochs([]log.EpochStart{{ID: p.ID(), Epoch: 1}})
	require.ErrorIs(t, err, log.ErrEpoch, "an epoch does not span two openings")
	require.NoError(t, s.BeginEpochs([]log.EpochStart{{ID: p.ID(), Epoch: 5}}))
	storetest.Append(t, s, p, records)
	epoch, end := p.EpochEnd(4)
	require.Equal(t, [2]int64{1, 1}, [2]int64{int64(epoch), end})
	epoch, end = p.EpochEnd(9)
	require.Equal(t, [2]int64{5, 2}, [2]int64{int64(epoch), end})
	epoch, end = p.EpochEnd(0)
	require.Equal(t, [2]int64{-1, -1}, [2]int64{int64(epoch), end})
}

func TestAReplicaStoresVerbatimWhatContinuesItsLog(t *testing.T) {
	s := storetest.Open(t)
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	b := func(base int64, epoch int32, values ...string) []byte {
		return storetest.Batch(t, batch.Spec{BaseOffset: base, LeaderEpoch: epoch}, 1000, values...)
	}
	run := append(b(0, 3, "a", "b"), b(2, 7, "c")...)
	run = append(run, b(3, 7, "cut")[:30]...)
	a, err := p.Append(log.Append{Records: run, Origin: log.Replica})
	require.NoError(t, err)
	require.NoError(t, s.Commit(a.Ticket))
	require.Equal(t, [2]int64{0, 2}, [2]int64{a.BaseOffset, a.LastOffset})
	require.EqualValues(t, 7, p.LatestEpoch())
	require.EqualValues(t, 3, p.EpochOf(1))
	_, err = p.Append(log.Append{Records: b(5, 7, "gap"), Origin: log.Replica})
	require.ErrorIs(t, err, log.ErrNotContiguous)
	require.Equal(t, []string{"a", "b", "c"}, storetest.Values(t, p, 0))
}

func TestADeletedPartitionRefusesEverythingAndStaysAway(t *testing.T) {
	fs := vfs.NewMem(1)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	ps := storetest.Create(t, s, 1, "orders", 2, log.Fsync)
	storetest.Append(t, s, ps[0], storetest.Batch(t, batch.Spec{}, 1000, "v"))
	require.NoError(t, s.Delete([]log.PartitionID{ps[0].ID(), storetest.ID(99, 0)}))
	require.Nil(t, s.Partition(ps[0].ID()))
	_, err = ps[0].Append(log.Append{Records: storetest.Batch(t, batch.Spec{}, 1000, "v"), LeaderEpoch: 1})
	require.ErrorIs(t, err, log.ErrDeleted)
	_, err = ps[0].Read(0, 1, 100, true)
	require.ErrorIs(t, err, log.ErrDeleted)
	require.NoError(t, s.Close())
	s = storetest.OpenOn(t, storetest.Small(fs))
	require.Nil(t, s.Partition(ps[0].ID()))
	require.NotNil(t, s.Partition(ps[1].ID()))
}

func TestAFullDiskRefusesClientsAndHealsByItself(t *testing.T) {
	fs := vfs.NewMem(1)
	fs.SetCapacity(1 << 20)
	full := make(chan bool, 100)
	s := storetest.Open(t, func(o *log.Options) {
		o.FS = fs
		o.Events.DiskFull = func(is bool, _ error) { full <- is }
	})
	ps := storetest.Create(t, s, 1, "orders", 2, log.Fsync)
	var err error
	n := int64(0)
	for err == nil {
		var a log.Appended
		a, err = ps[n%2].Append(log.Append{Records: batchOf(t, 2000), LeaderEpoch: 1})
		if err == nil {
			require.NoError(t, s.Commit(a.Ticket))
			n++
		}
	}
	require.ErrorIs(t, err, log.ErrDiskFull)
	require.True(t, <-full)
	require.Equal(t, n, ps[0].End()+ps[1].End(), "what was refused got no offset")
	require.Len(t, storetest.Values(t, ps[0], 0), int(ps[0].End()), "reads go on")
	_, err = ps[0].Append(log.Append{Records: batchOf(t, 100), LeaderEpoch: 1, Origin: log.Coordinator})
	require.NoError(t, err, "the reserve serves internal topics")
	require.NoError(t, s.Delete([]log.PartitionID{ps[1].ID()}), "and control frames")
	fs.SetCapacity(0)
	for <-full {
	}
	storetest.Append(t, s, ps[0], batchOf(t, 100))
}

func TestDurableRisesBeforeAWaiterGoesOn(t *testing.T) {
	var moved []*log.Partition
	s := storetest.Open(t, func(o *log.Options) {
		o.Events.Advanced = func(ps []*log.Partition) { moved = append(moved, ps...) }
	})
	p := storetest.Create(t, s, 1, "orders", 1, log.Fsync)[0]
	p.SetOwner("owner")
	a, err := p.Append(log.Append{Records: batchOf(t, 100), LeaderEpoch: 1})
	require.NoError(t, err)
	require.Zero(t, p.Durable())
	require.EqualValues(t, 1, p.End())
	require.NoError(t, s.Commit(a.Ticket))
	require.EqualValues(t, 1, p.Durable())
	require.Equal(t, []*log.Partition{p}, moved)
	require.Equal(t, "owner", moved[0].Owner())
}

func TestADirectoryTellsWhoseItIs(t *testing.T) {
	fs := vfs.NewMem(1)
	_, found, err := log.ReadIdentity(fs, storetest.Dir)
	require.NoError(t, err)
	require.False(t, found)
	s, err := log.Open(storetest.Small(fs))
	require.NoError(t, err)
	_, err = log.Open(storetest.Small(fs))
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, s.Close())
	id, found, err := log.ReadIdentity(fs, storetest.Dir)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, log.Identity{ClusterID: "test", NodeID: 1}, id)
	o := storetest.Small(fs)
	o.NodeID = 2
	_, err = log.Open(o)
	require.True(t, errors.Is(err, log.ErrIdentity), "%v", err)
}
