package group

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMembersShowWhatTheyRead(t *testing.T) {
	m := testMachine()
	fill(m, "g", 1)
	g := m.groups["g"].(*Classic)
	a := kmsg.NewConsumerMemberAssignment()
	topic := kmsg.NewConsumerMemberAssignmentTopic()
	topic.Topic, topic.Partitions = "t", []int32{0, 7}
	a.Topics = append(a.Topics, topic)
	g.order[0].assignment = a.AppendTo(nil)
	g.order[1].assignment = a.AppendTo(nil)[:20]

	seen := g.seen()
	require.Equal(t, []Reading{{Topic: "t", Partition: 0}, {Topic: "t", Partition: 7}}, seen[0].Reads)
	require.Equal(t, "/127.0.0.1", seen[0].Host)
	require.Empty(t, seen[1].Reads, "what is cut short is garbage")
	for _, garbage := range [][]byte{nil, {0, 0, 255, 255, 255, 255}, {0, 0, 0, 0, 0, 9, 0}, {0, 0, 0, 0, 0, 1, 0, 1, 'a', 127, 255, 255, 255}} {
		require.Empty(t, readings(garbage))
	}
}
