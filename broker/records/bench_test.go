package records

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/log/vfs"
	"github.com/mainstem/mainstem/protocol"
)

// memoryRig is a rig whose disk costs nothing, so that what is measured is ours.
func memoryRig(b *testing.B) *rig {
	b.Helper()
	r := &rig{Node: replicatest.Open(b, replicatest.Options{FS: vfs.NewMem(1), Dir: "data"}), t: b}
	r.handle()
	return r
}

// produceCall prepares a call that can be handed in again and again.
func (r *rig) produceCall(req *kmsg.ProduceRequest) (*protocol.Call, func()) {
	r.t.Helper()
	client := "bench"
	c := &protocol.Call{Ctx: context.Background(), Version: req.Version, ClientID: &client, Conn: &protocol.ConnInfo{Listener: "PLAINTEXT"}}
	body := req.AppendTo(nil)
	require.NoError(r.t, protocol.DecodeProduce(c, body))
	decoded := c.Body.(*protocol.ProduceRequest)
	fresh := append([]byte(nil), body...)
	return c, func() {
		copy(body, fresh) // The append has stamped offsets into the records.
		if err := decoded.Decode(req.Version, body); err != nil {
			panic(err)
		}
	}
}

func benchmarkProduce(b *testing.B, r *rig, partitions, records int) {
	b.Helper()
	id := r.Create(replicatest.Topic{Name: "a", Partitions: partitions})
	var batches [][]byte
	for range partitions {
		batches = append(batches, spec{count: records, value: string(make([]byte, 100))}.build(b))
	}
	c, again := r.produceCall(produceRequest(id, "a", batches...))
	b.SetBytes(int64(partitions * len(batches[0])))
	b.ReportAllocs()
	for b.Loop() {
		again()
		reply := r.h.submitProduce(c)()
		reply.Body.Release()
	}
}

func BenchmarkProduceOneRecordInMemory(b *testing.B) { benchmarkProduce(b, memoryRig(b), 1, 1) }

func BenchmarkProduceHundredRecordsInMemory(b *testing.B) { benchmarkProduce(b, memoryRig(b), 1, 100) }

func BenchmarkProduceFiftyPartitionsInMemory(b *testing.B) { benchmarkProduce(b, memoryRig(b), 50, 10) }

func BenchmarkProduceHundredRecordsSynced(b *testing.B) { benchmarkProduce(b, newRig(b), 1, 100) }

func benchmarkFetch(b *testing.B, r *rig, req *kmsg.FetchRequest, prepare func()) {
	b.Helper()
	client := "bench"
	c := &protocol.Call{Ctx: context.Background(), Version: req.Version, ClientID: &client, Request: req, Conn: &protocol.ConnInfo{Listener: "PLAINTEXT"}}
	b.ReportAllocs()
	for b.Loop() {
		prepare()
		reply := r.h.submitFetch(c)()
		size := 0
		for _, p := range reply.Body.Pieces {
			size += len(p)
		}
		b.SetBytes(int64(size))
		reply.Body.Release()
	}
}

func BenchmarkFetchOfRecentRecords(b *testing.B) {
	r := memoryRig(b)
	r.Create(replicatest.Topic{Name: "a"})
	for range 64 {
		require.Zero(b, r.produce("a", spec{count: 100, value: string(make([]byte, 100))}.build(b)).ErrorCode)
	}
	benchmarkFetch(b, r, fetchRequest(18, r.Image.Topic("a"), 0), func() {})
}

// BenchmarkFetchOfSessionWithQuietPartitions is an incremental fetch over 10,000
// partitions of which one has records.
func BenchmarkFetchOfSessionWithQuietPartitions(b *testing.B) {
	r := memoryRig(b)
	r.Create(replicatest.Topic{Name: "a", Partitions: 10000})
	c := &reader{r: r, version: 18}
	c.open("a", make([]int64, 10000)...)
	c.fetch("", nil)
	r.fill("a", 5000, 1, "v")
	req := c.next("", nil)
	benchmarkFetch(b, r, req, func() { req.SessionEpoch = c.epoch - 1; c.epoch++ })
}

func BenchmarkFullFetchOfThousandPartitions(b *testing.B) {
	r := memoryRig(b)
	r.Create(replicatest.Topic{Name: "a", Partitions: 1000})
	r.fill("a", 500, 1, "v")
	benchmarkFetch(b, r, fetchRequest(18, r.Image.Topic("a"), make([]int64, 1000)...), func() {})
}
