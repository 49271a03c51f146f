package replica_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/log/vfs"
)

// BenchmarkPartitions makes ten thousand topics of ten partitions in one change, and
// reports the memory that a partition takes, store and metadata included.
func BenchmarkPartitions(b *testing.B) {
	const topics, each = 10000, 10
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		n := replicatest.Open(b, replicatest.Options{FS: vfs.NewMem(1), Dir: "data"})
		n.Create(manyTopics(topics, each)...)
		if !n.Partition("topic-9999", each-1).Leads() {
			b.Fatal("partition is not led")
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(topics*each), "heap-B/partition")
		runtime.KeepAlive(n)
	}
}

func manyTopics(n, partitions int) []replicatest.Topic {
	all := make([]replicatest.Topic, n)
	for i := range all {
		all[i] = replicatest.Topic{Name: fmt.Sprintf("topic-%d", i), Partitions: partitions}
		all[i].ID = [16]byte{0: 1, 12: byte(i >> 24), 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}
	}
	return all
}
