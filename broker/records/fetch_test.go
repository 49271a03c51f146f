package records

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

// inBubble runs a test under virtual time.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		test(t, r)
	})
}

// elapse lets virtual time pass.
func elapse(d time.Duration) { <-time.After(d) }

// parked is a fetch that runs on a goroutine of its own.
type parked struct {
	done chan *kmsg.FetchResponse
}

func (r *rig) park(ctx context.Context, req *kmsg.FetchRequest) parked {
	p := parked{make(chan *kmsg.FetchResponse, 1)}
	_, finish := r.submit(ctx, req)
	go func() { p.done <- r.decode(req, finish()).(*kmsg.FetchResponse) }()
	return p
}

// waits tells whether the fetch is still parked once all is quiet.
func (p parked) waits() bool {
	synctest.Wait()
	return len(p.done) == 0
}

func TestFetchWaitsForDataOrTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a"})
		req := fetchRequest(18, r.Image.Topic("a"), 0)
		req.MaxWaitMillis = 1000
		began := time.Now()
		resp := r.fetch(req)
		require.Equal(t, time.Second, time.Since(began))
		require.Len(t, resp.Topics, 1, "a full answer names every partition")
		require.Empty(t, resp.Topics[0].Partitions[0].RecordBatches)

		began = time.Now()
		p := r.park(t.Context(), req)
		elapse(300 * time.Millisecond)
		require.True(t, p.waits())
		_, n := r.h.Parked()
		require.Equal(t, 1, n)
		r.fill("a", 0, 1, "v")
		resp = <-p.done
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		require.NotEmpty(t, resp.Topics[0].Partitions[0].RecordBatches)
		require.EqualValues(t, 1, resp.Topics[0].Partitions[0].HighWatermark)

		req.MaxWaitMillis = 0
		req.Topics[0].Partitions[0].FetchOffset = 1
		began = time.Now()
		r.fetch(req)
		require.Zero(t, time.Since(began))
		_, n = r.h.Parked()
		require.Zero(t, n)
	})
}

func TestFetchWaitsForMinBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a", Partitions: 2})
		one := len(spec{value: "v"}.build(t))
		req := fetchRequest(18, r.Image.Topic("a"), 0, 0)
		req.MaxWaitMillis, req.MinBytes = 10000, int32(3*one)
		p := r.park(t.Context(), req)
		r.fill("a", 0, 1, "v")
		require.True(t, p.waits())
		r.fill("a", 1, 1, "v")
		require.True(t, p.waits())
		r.fill("a", 0, 1, "v")
		resp := <-p.done
		require.Len(t, resp.Topics[0].Partitions[0].RecordBatches, 2*one)
		require.Len(t, resp.Topics[0].Partitions[1].RecordBatches, one)
	})
}

func TestParkedFetchEndsWithWhatItWaitsOn(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *rig, cancel func())
		want int16
	}{
		"topic deleted":   {func(r *rig, _ func()) { r.Delete("a") }, kerr.UnknownTopicID.Code},
		"leader moved":    {func(r *rig, _ func()) { r.Elect("a", func(p *meta.Partition) { p.Leader = 2 }) }, kerr.NotLeaderForPartition.Code},
		"epoch raised":    {func(r *rig, _ func()) { r.Raise(1, 1) }, kerr.FencedLeaderEpoch.Code},
		"client hangs up": {func(_ *rig, cancel func()) { cancel() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.Create(replicatest.Topic{Name: "a", Replicas: []int32{1, 2}, ISR: []int32{1}})
				req := fetchRequest(18, r.Image.Topic("a"), 0)
				req.MaxWaitMillis = 60000
				req.Topics[0].Partitions[0].CurrentLeaderEpoch = 0
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				p := r.park(ctx, req)
				require.True(t, p.waits())
				c.end(r, cancel)
				resp := <-p.done
				require.Less(t, time.Since(began), time.Second)
				require.Equal(t, c.want, resp.Topics[0].Partitions[0].ErrorCode)
			})
		})
	}
}

func TestFetchAnswersErrorsAtOnceButWaitsBesideTheUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Create(replicatest.Topic{Name: "a", Partitions: 2})
		took := func(req *kmsg.FetchRequest) time.Duration {
			req.MaxWaitMillis = 500
			began := time.Now()
			r.fetch(req)
			return time.Since(began)
		}
		req := fetchRequest(12, r.Image.Topic("a"), 0, 7)
		require.Zero(t, took(req), "out of range")
		req = fetchRequest(12, r.Image.Topic("a"), 0)
		nope := fetchRequest(12, &meta.Topic{Name: "nope"}, 0)
		req.Topics = append(req.Topics, nope.Topics...)
		require.Equal(t, 500*time.Millisecond, took(req))
		require.Zero(t, took(nope), "there is nothing to wait for")
		require.Zero(t, took(fetchRequest(12, r.Image.Topic("a"))), "nor here")
	})
}

func TestFirstBatchIsSentHoweverLarge(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"}, replicatest.Topic{Name: "b"})
	large := spec{value: string(make([]byte, 900000))}.build(t)
	require.Zero(t, r.produce("a", large).ErrorCode)
	require.Zero(t, r.produce("b", large).ErrorCode)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		req := fetchRequest(18, r.Image.Topic(order[0]), 0)
		req.Topics = append(req.Topics, fetchRequest(18, r.Image.Topic(order[1]), 0).Topics...)
		req.MaxBytes = 1
		for i := range req.Topics {
			req.Topics[i].Partitions[0].PartitionMaxBytes = 1
		}
		resp := r.fetch(req)
		require.Len(t, resp.Topics[0].Partitions[0].RecordBatches, len(large))
		require.Empty(t, resp.Topics[1].Partitions[0].RecordBatches)
	}
}

func TestFetchKeepsItsLimits(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 3})
	one := len(spec{value: "v"}.build(t))
	for i := range int32(3) {
		r.fill("a", i, 10, "v")
	}
	req := fetchRequest(18, r.Image.Topic("a"), 0, 5, 9)
	for i := range req.Topics[0].Partitions {
		req.Topics[0].Partitions[i].PartitionMaxBytes = int32(3*one + 1)
	}
	req.MaxBytes = int32(5 * one)
	rows := r.fetch(req).Topics[0].Partitions
	require.Len(t, rows[0].RecordBatches, 3*one)
	require.Len(t, rows[1].RecordBatches, 2*one)
	require.Empty(t, rows[2].RecordBatches)
	h, err := batch.ParseHeader(rows[1].RecordBatches)
	require.NoError(t, err)
	require.EqualValues(t, 5, h.BaseOffset)
}

func TestFetchMemoryIsBounded(t *testing.T) {
	r := newRig(t)
	r.h.memory.limit = 4000
	r.Create(replicatest.Topic{Name: "a"})
	one := len(spec{value: "v"}.build(t))
	r.fill("a", 0, 100, "v")
	req := fetchRequest(18, r.Image.Topic("a"), 0)
	var held []protocol.Reply
	sizes := func() (total int) {
		_, finish := r.submit(t.Context(), req)
		reply := finish()
		held = append(held, reply)
		for _, p := range reply.Body.Pieces {
			total += len(p)
		}
		return total
	}
	require.Greater(t, sizes(), 10*one)
	for !r.h.memory.spent() {
		require.Greater(t, sizes(), one, "who comes late gets one batch still")
	}
	require.Less(t, r.h.memory.used.Load(), int64(4000+one))
	// All is held by clients that do not read: then there is nothing for a while.
	req.MaxWaitMillis = 0
	began := time.Now()
	require.Less(t, sizes(), one)
	require.GreaterOrEqual(t, time.Since(began), spentWait)
	go held[0].Body.Release()
	require.Greater(t, sizes(), one, "what is given back is not waited for to the end")
	for _, reply := range held[1:] {
		reply.Body.Release()
	}
	require.Zero(t, r.h.memory.used.Load())
}

// Below version 10 a client need not know the codec; Kafka 4 gives it the batches all the same.
func TestTopicsOfZstdAreGivenToOldClientsToo(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "zstd", Configs: map[string]string{"compression.type": "zstd"}}, replicatest.Topic{Name: "producer"})
	zstd := spec{Spec: batch.Spec{Codec: batch.Zstd}}.build(t)
	for _, topic := range []string{"zstd", "producer"} {
		require.Zero(t, r.produce(topic, bytes.Clone(zstd)).ErrorCode)
		for version := int16(4); version <= 18; version++ {
			rows := r.fetch(fetchRequest(version, r.Image.Topic(topic), 0)).Topics[0].Partitions
			require.Zero(t, rows[0].ErrorCode, version)
			require.NotEmpty(t, rows[0].RecordBatches, version)
		}
	}
}

func TestFetchTellsWhereLogsPart(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 3, "v")
	r.Raise(1, 4)
	r.fill("a", 0, 2, "v")
	req := fetchRequest(18, r.Image.Topic("a"), 5)
	req.Topics[0].Partitions[0].LastFetchedEpoch = 2
	req.MaxWaitMillis = 60000
	row := r.fetch(req).Topics[0].Partitions[0]
	require.Zero(t, row.ErrorCode)
	require.EqualValues(t, 0, row.DivergingEpoch.Epoch)
	require.EqualValues(t, 3, row.DivergingEpoch.EndOffset)
	require.Empty(t, row.RecordBatches)
}

func TestOldEpochIsToldTheLeader(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.Raise(1, 4)
	for version := int16(9); version <= 18; version++ {
		req := fetchRequest(version, r.Image.Topic("a"), 0)
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = 3
		row := r.fetch(req).Topics[0].Partitions[0]
		require.Equal(t, kerr.FencedLeaderEpoch.Code, row.ErrorCode)
		if version >= 16 {
			require.EqualValues(t, 1, row.CurrentLeader.LeaderID)
			require.EqualValues(t, 4, row.CurrentLeader.LeaderEpoch)
		} else {
			require.EqualValues(t, -1, row.CurrentLeader.LeaderID)
		}
	}
}

func TestFetchFromTheWrongBrokerIsToldTheLeader(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Replicas: []int32{2}})
	r.Broker(meta.Broker{ID: 2, Listeners: []meta.Endpoint{{Name: "PLAINTEXT", Host: "two", Port: 9}}})
	for version := int16(4); version <= 18; version++ {
		resp := r.fetch(fetchRequest(version, r.Image.Topic("a"), 0))
		row := resp.Topics[0].Partitions[0]
		require.Equal(t, kerr.NotLeaderForPartition.Code, row.ErrorCode)
		if version < 16 {
			require.EqualValues(t, -1, row.CurrentLeader.LeaderID)
			require.Empty(t, resp.Brokers)
			continue
		}
		require.EqualValues(t, 2, row.CurrentLeader.LeaderID)
		require.Len(t, resp.Brokers, 1)
		require.Equal(t, "two", resp.Brokers[0].Host)
	}
}

func TestAnAnswerHoldsNoMoreThanTheClientCanUseAtOnce(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 3})
	const each, total = 200_000, 20
	value := string(bytes.Repeat([]byte{'v'}, each))
	for p := range int32(3) {
		r.fill("a", p, total, value)
	}
	req := fetchRequest(18, r.Image.Topic("a"), 0, 0, 0)
	req.MaxBytes = 50 << 20
	for i := range req.Topics[0].Partitions {
		req.Topics[0].Partitions[i].PartitionMaxBytes = 50 << 20
	}
	records := func() (n int) {
		for _, p := range r.fetch(req).Topics[0].Partitions {
			n += len(p.RecordBatches)
		}
		return n
	}
	got := records()
	require.LessOrEqual(t, got, answerBytes)
	require.Greater(t, got, answerBytes-2*each, "as much as fits")

	req.MinBytes = 10_000_000
	require.Greater(t, records(), 10_000_000-2*each, "a client that asks for more at least gets it")
}

func TestALargeAnswerTakesLittleMemory(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 3})
	value := string(bytes.Repeat([]byte{'v'}, 200_000))
	for p := range int32(3) {
		r.fill("a", p, 20, value)
	}
	req := fetchRequest(18, r.Image.Topic("a"), 0, 0, 0)
	req.MaxBytes = 50 << 20
	for i := range req.Topics[0].Partitions {
		req.Topics[0].Partitions[i].PartitionMaxBytes = 3 << 20
	}
	_, finish := r.submit(t.Context(), req)
	reply := finish()
	require.LessOrEqual(t, r.h.memory.used.Load(), int64(nowBytes+laterBytes))
	require.Greater(t, len(whole(t, reply.Body)), 6<<20)
	reply.Body.Release()
	require.Zero(t, r.h.memory.used.Load())
}
