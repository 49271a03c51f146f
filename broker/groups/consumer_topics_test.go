package groups

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/controller/meta"
)

func TestRacksMatterWhereThereAreSeveral(t *testing.T) {
	image := func(racks ...string) *meta.Image {
		k := meta.Keys{Prefix: "/"}
		var changes []meta.Change
		for i, rack := range racks {
			id := int32(i + 1)
			b := &meta.Broker{Rack: rack, Incarnation: [16]byte{byte(id)}}
			changes = append(changes, meta.Change{Key: k.Broker(id)[1:], Value: meta.EncodeBroker(b), ModRevision: 1})
		}
		img, _, err := meta.Apply(meta.Empty(), 1, changes)
		require.NoError(t, err)
		require.Len(t, img.Brokers(), len(racks))
		return img
	}
	topic := &meta.Topic{Partitions: []meta.Partition{{Replicas: []int32{3, 1}}, {Replicas: []int32{1, 2}}, {Replicas: []int32{4}}}}
	require.Nil(t, racksOf(image("a", "a", "a"), topic))
	require.Nil(t, racksOf(image("", ""), topic))
	require.Equal(t, [][]string{{"a", "b"}, {"a"}, nil}, racksOf(image("a", "a", "b"), topic))
}
