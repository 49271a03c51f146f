package log_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/log/storetest"
	"github.com/mainstem/mainstem/protocol/batch"
)

// TestManyAtOnce has producers, readers, retention and topic changes run side
// by side; each reader checks that what it sees is one dense log.
func TestManyAtOnce(t *testing.T) {
	s := storetest.Open(t, func(o *log.Options) { o.SegmentEntries, o.CacheRows = 60, 8 })
	ps := storetest.Create(t, s, 1, "orders", 6, log.Fsync)
	ps = append(ps, storetest.Create(t, s, 2, "clicks", 2, log.Async)...)
	const batches = 150
	var producers, others sync.WaitGroup
	stop := make(chan struct{})
	for _, p := range ps {
		producers.Go(func() { appendMany(t, s, p, batches) })
	}
	for i := range 4 {
		others.Go(func() { readUntil(t, ps, uint64(i), stop) })
	}
	others.Go(func() {
		for n := uint64(0); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			passing := storetest.ID(100+n, 0)
			assert.NoError(t, s.Create([]log.CreateSpec{{ID: passing, Name: "passing", LeaderEpoch: 1}}))
			ticket, err := s.MoveStarts(map[*log.Partition]int64{ps[n%8]: ps[n%8].Start() + 1})
			assert.NoError(t, err)
			assert.NoError(t, s.Commit(ticket))
			assert.NoError(t, s.Retain(time.Now(), func(*log.Partition) log.Retention { return log.Retention{Delete: true, Ms: -1, Bytes: 20 << 10} }))
			assert.NoError(t, s.Delete([]log.PartitionID{passing}))
		}
	})
	producers.Wait()
	close(stop)
	others.Wait()
	for _, p := range ps {
		require.EqualValues(t, batches, p.End())
		require.EqualValues(t, batches, p.Durable())
	}
}

func appendMany(t *testing.T, s *log.Store, p *log.Partition, batches int) {
	for i := range batches {
		b := batch.NewBuilder(batch.Spec{Producer: &batch.Producer{ID: 1, Sequence: int32(i)}})
		b.Append(int64(1000+i), nil, fmt.Appendf(nil, "%s-%d %d %0200d", p.Topic(), p.ID().Partition, i, i))
		records, err := b.Batch()
		assert.NoError(t, err)
		a, err := p.Append(log.Append{Records: records, LeaderEpoch: 1})
		if err == nil {
			err = s.Commit(a.Ticket)
		}
		if !assert.NoError(t, err) {
			return
		}
		assert.EqualValues(t, i, a.BaseOffset)
		p.SetHighWatermark(p.Durable())
	}
}

// readUntil reads at random places until it is stopped.
func readUntil(t *testing.T, ps []*log.Partition, seed uint64, stop chan struct{}) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for {
		select {
		case <-stop:
			return
		default:
		}
		p := ps[rng.IntN(len(ps))]
		start, end := p.Start(), p.HighWatermark()
		if start >= end {
			continue
		}
		at := start + rng.Int64N(end-start)
		b, err := p.Read(at, end, 1+rng.IntN(8<<10), true)
		if errors.Is(err, log.ErrOffsetOutOfRange) && at < p.Start() {
			continue // Retention was faster.
		}
		if !assert.NoError(t, err, "read at %d of %d to %d", at, start, end) {
			return
		}
		next := at
		for _, one := range storetest.Split(t, b) {
			for r, err := range batch.Records(one) {
				assert.NoError(t, err)
				assert.Equal(t, next, r.Offset)
				assert.Contains(t, string(r.Value), fmt.Sprintf("%s-%d %d ", p.Topic(), p.ID().Partition, next))
				next++
			}
		}
		assert.Equal(t, next, b.NextOffset())
		assert.Greater(t, next, at)
		b.Release()
		offset, _, _, ok, err := p.OffsetForTime(1000+at, end)
		assert.NoError(t, err)
		if !ok {
			assert.GreaterOrEqual(t, p.Start(), end, "time of %d", at) // All of it was retained away.
			continue
		}
		assert.True(t, offset == at || offset > at && offset <= p.Start(), "time of %d is at %d, log begins at %d", at, offset, p.Start())
	}
}
