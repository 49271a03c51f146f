package controller

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkOpen100000Topics shows what a broker with very many topics pays at its start.
func BenchmarkOpen100000Topics(b *testing.B) {
	o := Options{Dir: b.TempDir(), NodeID: 1}
	c, err := Open(b.Context(), o)
	require.NoError(b, err)
	require.NoError(b, c.Register(b.Context(), broker()))
	began := time.Now()
	for n := range 100 {
		topics := make([]NewTopic, 1000)
		for i := range topics {
			topics[i] = NewTopic{Name: fmt.Sprintf("topic-%03d-%03d", n, i), Assignments: onNode1(1)}
		}
		for _, err := range c.CreateTopics(b.Context(), topics) {
			require.NoError(b, err)
		}
	}
	created := time.Since(began)
	began = time.Now()
	require.NoError(b, c.RaiseEpochs(b.Context(), 1))
	raised := time.Since(began)
	require.NoError(b, c.Close(b.Context()))
	o.WantClusterID, o.HasData = c.ClusterID(), true
	for b.Loop() {
		c, err = Open(b.Context(), o)
		require.NoError(b, err)
		require.Equal(b, 100_000, c.Image().PartitionCount())
		require.NoError(b, c.Close(b.Context()))
	}
	b.ReportMetric(created.Seconds(), "s-create")
	b.ReportMetric(raised.Seconds(), "s-raise")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/100_000, "B-heap/topic")
	runtime.KeepAlive(c.Image())
}
