package java

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestConsumersShareByEachProtocol has two Java consumers join a group one after the
// other, and one leave, by group.protocol=classic and =consumer. What is committed
// is read once, and a broker that is killed meanwhile changes nothing of that.
func TestConsumersShareByEachProtocol(t *testing.T) {
	needsJava(t)
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			node := harness.Start(t, "group.initial.rebalance.delay.ms=100", "group.consumer.assignment.interval.ms=0",
				"group.consumer.min.heartbeat.interval.ms=100", "group.consumer.heartbeat.interval.ms=300")
			cl, adm := client(t, node.Address, kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
			createTopic(t, adm, "t", 4)
			sent := 0
			send := func() {
				t.Helper()
				var records []*kgo.Record
				for range 200 {
					records = append(records, kgo.StringRecord(fmt.Sprint(sent)))
					sent++
				}
				require.NoError(t, cl.ProduceSync(t.Context(), records...).FirstErr())
			}
			join := func() *program { return start(t, "Member", node.Address, "t", "g", protocol) }

			a := join()
			await(t, "the first has all partitions", func() bool { return a.last("assigned ") == "4" })
			listed, err := adm.ListGroups(t.Context())
			require.NoError(t, err)
			require.Equal(t, protocol, listed["g"].GroupType)
			send()
			b := join()
			await(t, "both have two partitions", func() bool { return a.last("assigned ") == "2" && b.last("assigned ") == "2" })
			send()
			read := func() int { return len(a.said("record ")) + len(b.said("record ")) }
			await(t, "all is read", func() bool { return read() == sent })
			require.NotEmpty(t, b.said("record "))

			node.Kill()
			require.NoError(t, node.Start())
			send()
			await(t, "all is read after the crash", func() bool { return read() == sent })
			a.end()
			await(t, "the second has all partitions", func() bool { return b.last("assigned ") == "4" })
			send()
			await(t, "all is read by the second", func() bool { return read() == sent })
			b.end()

			seen := map[string]int{}
			for _, value := range append(a.said("record "), b.said("record ")...) {
				seen[value]++
			}
			require.Len(t, seen, sent, "each record once")
			// The client does not retry on a connection that a crash has cut.
			_, adm = client(t, node.Address)
			offsets, err := adm.FetchOffsets(t.Context(), "g")
			require.NoError(t, err)
			total := int64(0)
			offsets.Each(func(o kadm.OffsetResponse) { total += o.At })
			require.EqualValues(t, sent, total)
		})
	}
}
