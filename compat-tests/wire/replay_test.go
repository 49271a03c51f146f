package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestRecordedExchanges replays what Apache Kafka 4.3.1 was asked and answered,
// for every API that the broker advertises.
func TestRecordedExchanges(t *testing.T) {
	node := harness.Start(t, "broker.rack=rack1")
	exchanges, err := Recorded()
	require.NoError(t, err)
	list, err := AcceptedDifferences()
	require.NoError(t, err)
	served, err := ServedBy(node.Address)
	require.NoError(t, err)
	sent, found, err := Replay(exchanges, Options{Address: node.Address, Serves: served})
	require.NoError(t, err)
	require.Greater(t, sent, 400, "most exchanges of the served APIs must have been sent")
	for _, d := range Unexplained(found, list) {
		t.Error(d)
	}
	for _, a := range list {
		if a.Used == 0 {
			t.Errorf("differences.tsv: no such difference any more: %s %s %s", a.API, a.Note, a.Path)
		}
	}
	t.Logf("%d exchanges compared, %d accepted differences", sent, len(found))
}
