package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEmbeddedStartsWorksAndStops(t *testing.T) {
	log, logs := logged()
	o := Options{Dir: t.TempDir(), NodeID: 1, Logger: log}
	began := time.Now()
	c := register(t, o)
	t.Log("open and register:", time.Since(began))
	require.Len(t, c.ClusterID(), 22)
	create(t, c, 3, "a")
	began = time.Now()
	require.NoError(t, c.Close(t.Context()))
	t.Log("close:", time.Since(began))

	o.WantClusterID, o.HasData = c.ClusterID(), true
	began = time.Now()
	again := register(t, o)
	t.Log("reopen:", time.Since(began))
	require.Equal(t, c.ClusterID(), again.ClusterID())
	require.NoError(t, again.RaiseEpochs(t.Context(), 1))
	topic := again.Image().Topic("a")
	require.Len(t, topic.Partitions, 3)
	require.EqualValues(t, 1, topic.Partitions[2].LeaderEpoch)
	for _, l := range logs.All() {
		t.Log(l.Level, l.LoggerName, l.Message, l.ContextMap())
	}
}
