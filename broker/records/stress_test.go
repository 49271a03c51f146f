package records

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/protocol/batch"
)

// TestReadersSeeEveryRecordOnceWhileAllMoves lets producers, readers with sessions,
// elections, lost leases, evictions and changes of settings run against each other. What was
// acknowledged must be read, in order and without holes.
func TestReadersSeeEveryRecordOnceWhileAllMoves(t *testing.T) {
	r := newRig(t)
	const partitions, producers, perProducer = 4, 3, 60
	id := r.Create(replicatest.Topic{Name: "a", Partitions: partitions})
	var acked [partitions]atomic.Int64 // number of acknowledged records
	var writers, others sync.WaitGroup
	for w := range producers {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 7))
			for range perProducer {
				req := produceRequest(id, "a", spec{value: "v", count: 1 + rnd.IntN(3)}.build(t))
				req.Topics[0].Partitions[0].Partition = int32(rnd.IntN(partitions))
				row := r.do(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
				switch row.ErrorCode {
				case 0:
					h, err := batch.ParseHeader(req.Topics[0].Partitions[0].Records)
					require.NoError(t, err)
					acked[row.Partition].Add(int64(h.NumRecords))
				case kerr.NotLeaderForPartition.Code: // Perhaps stored, not acknowledged.
				default:
					t.Errorf("produce: %v", kerr.ErrorForCode(row.ErrorCode))
				}
			}
		})
	}
	done := make(chan struct{})
	others.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				r.Fenced.Store(false)
				return
			case <-time.After(2 * time.Millisecond):
			}
			switch n % 4 {
			case 0:
				r.Raise(1, 1)
			case 1:
				r.Configure("a", map[string]string{"mainstem.durability": []string{"async", "fsync"}[n/4%2]})
			case 2:
				r.Fenced.Store(true)
			case 3:
				r.Fenced.Store(false)
				r.evictOne()
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	var read [2][partitions]int64
	for i := range read {
		others.Go(func() { readAll(ctx, t, r, &read[i]) })
	}
	writers.Wait()
	close(done)
	for p := range int32(partitions) {
		end := func() int64 { return r.Partition("a", p).HighWatermark() }
		require.GreaterOrEqual(t, end(), acked[p].Load())
	}
	time.AfterFunc(300*time.Millisecond, stop)
	others.Wait()
	for i := range read {
		for p := range int32(partitions) {
			require.Equal(t, r.Partition("a", p).HighWatermark(), read[i][p], "reader %d, partition %d", i, p)
		}
	}
}

// evictOne takes a session its slot away.
func (r *rig) evictOne() {
	var victim int32
	r.h.sessions.mu.Lock()
	for id := range r.h.sessions.byID {
		victim = id
		break
	}
	r.h.sessions.mu.Unlock()
	r.h.sessions.remove(victim)
}

// readAll follows the partitions by a session, opening a new one when it is lost.
func readAll(ctx context.Context, t *testing.T, r *rig, next *[4]int64) {
	var id, epoch int32
	moved := map[int32]bool{0: true, 1: true, 2: true, 3: true}
	for ctx.Err() == nil {
		req := fetchRequest(18, r.Set.Image().Topic("a"))
		req.SessionID, req.SessionEpoch, req.MaxWaitMillis, req.MaxBytes = id, epoch, 20, 500
		topic := kmsg.FetchRequestTopic{TopicID: r.Set.Image().Topic("a").ID}
		for p := range moved {
			rp := kmsg.NewFetchRequestTopicPartition()
			rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p, next[p], 200
			topic.Partitions = append(topic.Partitions, rp)
		}
		if len(moved) > 0 {
			req.Topics = append(req.Topics, topic)
		}
		clear(moved)
		_, finish := r.submit(ctx, req)
		resp := r.decode(req, finish()).(*kmsg.FetchResponse)
		if resp.ErrorCode != 0 {
			id, epoch = 0, 0
			moved = map[int32]bool{0: true, 1: true, 2: true, 3: true}
			continue
		}
		id, epoch = resp.SessionID, epoch+1
		for _, kt := range resp.Topics {
			for _, row := range kt.Partitions {
				for b := row.RecordBatches; len(b) > 0; {
					h, err := batch.ParseHeader(b)
					if err != nil || h.BaseOffset != next[row.Partition] || h.NextOffset() > row.HighWatermark {
						t.Errorf("partition %d at %d: batch at %d, watermark %d, %v", row.Partition, next[row.Partition], h.BaseOffset, row.HighWatermark, err)
						return
					}
					next[row.Partition] = h.NextOffset()
					moved[row.Partition] = true
					b = b[binary.BigEndian.Uint32(b[8:])+12:]
				}
			}
		}
	}
}

func TestProduceAndFetchTakeNoMemoryARecord(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a"})
	allocs := func(records int) float64 {
		c, again := r.produceCall(produceRequest(id, "a", spec{count: records, value: "v"}.build(t)))
		return testing.AllocsPerRun(20, func() {
			again()
			r.h.submitProduce(c)().Body.Release()
		})
	}
	few := allocs(1)
	// The race detector has pools forget at random, hence the slack.
	require.Less(t, few, 50.0)
	require.InDelta(t, few, allocs(1000), 100)
	req := fetchRequest(18, r.Image.Topic("a"), 0)
	c, _ := r.submit(t.Context(), req)
	c.Request = req
	require.Less(t, testing.AllocsPerRun(20, func() { r.h.submitFetch(c)().Body.Release() }), 50.0)
}
