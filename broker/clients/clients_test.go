package clients

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/coordinator/group"
	"github.com/mainstem/mainstem/protocol"
)

func connection(port int) *protocol.ConnInfo {
	return &protocol.ConnInfo{
		Listener: "PLAINTEXT", Principal: "User:ANONYMOUS",
		Remote: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port},
	}
}

func TestConnectionsAndMembershipsOfAClientStandTogether(t *testing.T) {
	r := New()
	first, second := connection(1), connection(2)
	r.Opened(first)
	r.Opened(second)
	o := Options{
		Members: func(context.Context) ([]group.Member, error) {
			return []group.Member{
				{Group: "g", Kind: group.KindClassic, State: "Stable", ID: "m", Host: "/10.0.0.1", Reads: []group.Reading{
					{Topic: "t", Partition: 0, Committed: 7}, {Topic: "t", Partition: 1, Committed: -1}, {Topic: "far", Partition: 0, Committed: 1},
				}},
				{Group: "h", Kind: group.KindConsumer, ID: "n", ClientID: "elsewhere", Host: "/0:0:0:0:0:0:0:1"},
			}, nil
		},
		End: func(topic string, _ int32) (int64, bool) { return 10, topic == "t" },
	}
	list, err := r.List(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "10.0.0.1", list[0].Host)
	require.Equal(t, 2, list[0].Connections)
	require.NotNil(t, list[0].Since)
	m := list[0].Groups[0]
	require.Equal(t, int64(3), m.Lag)
	require.Equal(t, int64(3), *m.Partitions[0].Lag)
	require.Nil(t, m.Partitions[1].Lag, "nothing was committed")
	require.Nil(t, m.Partitions[2].Lag, "the end is not known here")
	require.Equal(t, "::1", list[1].Host)
	require.Zero(t, list[1].Connections)

	r.Closed(first)
	r.Closed(second)
	o.Members = func(context.Context) ([]group.Member, error) { return nil, nil }
	list, err = r.List(t.Context(), o)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestAListWithoutGroupsIsAnError(t *testing.T) {
	loading := errors.New("loading")
	_, err := New().List(t.Context(), Options{Members: func(context.Context) ([]group.Member, error) { return nil, loading }})
	require.ErrorIs(t, err, loading)
}
