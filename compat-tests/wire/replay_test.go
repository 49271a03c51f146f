package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestRecordedExchanges replays what Apache Kafka 4.3.1 was asked and answered,
// for every API that the broker advertises.
func TestRecordedExchanges(t *testing.T) {
	node := harness.New(t)
	// The settings of the broker that was recorded, Kafka's own among them.
	node.Settings = []string{
		"broker.rack=rack1", "process.roles=broker,controller",
		"listeners=PLAINTEXT://" + node.Address + ",CONTROLLER://127.0.0.1:1",
		"advertised.listeners=PLAINTEXT://" + node.Address,
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"controller.listener.names=CONTROLLER", "controller.quorum.voters=1@127.0.0.1:29192",
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1", "share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		// Not as recorded, so that each first join does not take three seconds.
		"group.initial.rebalance.delay.ms=50",
	}
	require.NoError(t, node.Start())
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
		if a.Used == 0 && !strings.HasPrefix(a.Reason, "sometimes:") {
			t.Errorf("differences.tsv: no such difference any more: %s %s %s", a.API, a.Note, a.Path)
		}
	}
	t.Logf("%d exchanges compared, %d accepted differences", sent, len(found))
}
