package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// refsOf names all partitions of topics.
func refsOf(c *Client, names ...string) []PartitionRef {
	var refs []PartitionRef
	for _, name := range names {
		topic := c.Image().Topic(name)
		for i := range topic.Partitions {
			refs = append(refs, PartitionRef{Topic: topic.ID, Partition: int32(i)})
		}
	}
	return refs
}

// turned gives a partition the other of two leaders, which are its replicas.
func turned(image *meta.Image, p meta.Partition) meta.Partition {
	p = image.Led(p, p.Replicas[slices.Index(p.Replicas, p.Leader)^1])
	p.PartitionEpoch++
	return p
}

// pair are two registered brokers, and topics that both hold.
func pair(t *testing.T, topics, partitions int) (first, second *Client, names []string) {
	t.Helper()
	o := external(t)
	first = register(t, o)
	o.Dir, o.NodeID = t.TempDir(), 2
	second = register(t, o)
	require.NoError(t, second.RaiseEpochs(t.Context(), 7))
	require.NoError(t, first.catchUp(t.Context()))
	var list []NewTopic
	for i := range topics {
		topic := NewTopic{Name: fmt.Sprintf("t%d", i)}
		for range partitions {
			topic.Assignments = append(topic.Assignments, []int32{1, 2})
		}
		list, names = append(list, topic), append(names, topic.Name)
	}
	for _, err := range first.CreateTopics(t.Context(), list) {
		require.NoError(t, err)
	}
	return first, second, names
}

func TestLeadersChangeUnderNewEpochs(t *testing.T) {
	first, second, names := pair(t, 40, 200) // More chunks than one transaction takes.
	refs := refsOf(first, names...)
	for range 2 {
		for _, err := range first.ChangePartitions(t.Context(), refs, func(_ int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
			return turned(image, p), nil
		}) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, second.catchUp(t.Context()))
	for _, c := range []*Client{first, second} {
		for _, name := range names {
			for _, p := range c.Image().Topic(name).Partitions {
				require.EqualValues(t, 1, p.Leader)
				require.EqualValues(t, 2, p.LeaderEpoch, "there and back")
				require.EqualValues(t, 2, p.PartitionEpoch)
			}
		}
	}
}

func TestChangesAtOnceDoNotOverwriteEachOther(t *testing.T) {
	first, second, names := pair(t, 1, 3)
	refs := refsOf(first, names...)
	require.NoError(t, second.catchUp(t.Context()))
	const times = 20
	var wg sync.WaitGroup
	for _, c := range []*Client{first, second} {
		wg.Go(func() {
			for range times {
				errs := c.ChangePartitions(context.Background(), refs, func(_ int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
					return turned(image, p), nil
				})
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Add(1)
	go func() { // Openings of the leaders grow meanwhile.
		defer wg.Done()
		for range times {
			if err := first.RaiseEpochs(context.Background(), 1); err != nil {
				t.Error(err)
			}
		}
	}()
	last := make([]int32, 3)
	first.Subscribe(func(image *meta.Image, _ meta.Delta) {
		for i, p := range image.Topic("t0").Partitions {
			if p.LeaderEpoch < last[i] {
				t.Errorf("epoch %d after %d", p.LeaderEpoch, last[i])
			}
			last[i] = p.LeaderEpoch
		}
	})
	wg.Wait()
	require.NoError(t, first.catchUp(t.Context()))
	for _, p := range first.Image().Topic("t0").Partitions {
		require.EqualValues(t, 2*times, p.PartitionEpoch)
		require.EqualValues(t, 1, p.Leader)
	}
}

func TestOnlyWhatIsAllowedIsChanged(t *testing.T) {
	first, _, names := pair(t, 1, 4)
	refs := refsOf(first, names...)
	refs = append(refs, refs[0], PartitionRef{Topic: meta.TopicID{1}}, PartitionRef{Topic: refs[0].Topic, Partition: 4})
	before := first.Image().Revision()
	errs := first.ChangePartitions(t.Context(), refs, func(n int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
		switch n {
		case 1:
			return p, kerr.ElectionNotNeeded
		case 2:
			return p, nil
		}
		return turned(image, p), nil
	})
	require.ErrorIs(t, errs[1], kerr.ElectionNotNeeded)
	require.ErrorIs(t, errs[5], kerr.UnknownTopicID)
	require.ErrorIs(t, errs[6], kerr.UnknownTopicID)
	require.NoError(t, errors.Join(errs[0], errs[2], errs[3], errs[4]))
	require.Equal(t, before+1, first.Image().Revision(), "one write")
	var epochs []int32
	for _, p := range first.Image().Topic("t0").Partitions {
		epochs = append(epochs, p.PartitionEpoch)
	}
	require.Equal(t, []int32{2, 0, 0, 1}, epochs, "the first one was named twice")
}

// TestADeadBrokerIsNotMadeLeaderByALateImage has the chosen one die between the
// choice and the write.
func TestADeadBrokerIsNotMadeLeaderByALateImage(t *testing.T) {
	first, second, names := pair(t, 1, 1)
	asked := 0
	errs := first.ChangePartitions(t.Context(), refsOf(first, names...), func(_ int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
		if asked++; asked == 1 {
			require.NoError(t, second.Close(context.Background()))
		}
		if image.Broker(2).Fenced {
			return p, kerr.PreferredLeaderNotAvailable
		}
		return turned(image, p), nil
	})
	require.ErrorIs(t, errs[0], kerr.PreferredLeaderNotAvailable)
	require.Equal(t, 2, asked)
	require.EqualValues(t, 1, first.Image().Topic("t0").Partitions[0].Leader)
}

func TestANewClusterBeginsWithTheLevelsThatItIsMadeWith(t *testing.T) {
	o := external(t)
	o.Levels = map[string]int16{meta.MetadataVersion: meta.UnstableMetadataVersion}
	c := open(t, o)
	require.EqualValues(t, 31, c.Image().Level(meta.MetadataVersion))
	closeNow(c)
	o.Levels = map[string]int16{meta.GroupVersion: 0}
	c = open(t, o)
	require.EqualValues(t, 31, c.Image().Level(meta.MetadataVersion))
	require.EqualValues(t, 1, c.Image().Level(meta.GroupVersion), "the cluster was there")
}

func TestFeatureLevelsAreKept(t *testing.T) {
	o := external(t)
	c := open(t, o)
	require.Empty(t, c.Image().Features())
	require.EqualValues(t, 1, c.Image().Level(meta.GroupVersion))
	set := func(levels map[string]int16) error {
		return c.UpdateFeatures(t.Context(), func(*meta.Image) (map[string]int16, error) { return levels, nil })
	}
	require.NoError(t, set(map[string]int16{meta.GroupVersion: 0, meta.TransactionVersion: 1}))
	require.EqualValues(t, 0, c.Image().Level(meta.GroupVersion))
	before := c.Image().Revision()
	require.NoError(t, set(map[string]int16{meta.GroupVersion: 0}))
	require.Equal(t, before, c.Image().Revision(), "nothing to write")
	refused := errors.New("no")
	require.ErrorIs(t, c.UpdateFeatures(t.Context(), func(*meta.Image) (map[string]int16, error) { return nil, refused }), refused)
	closeNow(c)
	c = open(t, o)
	require.Equal(t, map[string]int16{meta.GroupVersion: 0, meta.TransactionVersion: 1}, c.Image().Features())
	require.EqualValues(t, 30, c.Image().Level(meta.MetadataVersion))
	require.Zero(t, c.Image().Level("unknown"))
}

func TestABrokerIsForgottenWhenItIsGone(t *testing.T) {
	first, second, names := pair(t, 1, 1)
	require.ErrorIs(t, first.UnregisterBroker(t.Context(), 3), kerr.BrokerIDNotRegistered)
	require.ErrorIs(t, first.UnregisterBroker(t.Context(), 2), kerr.InvalidRequest, "it is alive")
	for _, err := range first.ChangePartitions(t.Context(), refsOf(first, names...), func(_ int, image *meta.Image, p meta.Partition) (meta.Partition, error) {
		return turned(image, p), nil
	}) {
		require.NoError(t, err)
	}
	require.NoError(t, second.Close(t.Context()))
	eventually(t, func() bool { return first.Image().Broker(2).Fenced }, "it has said goodbye")
	epoch := first.Image().Topic("t0").Partitions[0].LeaderEpoch
	require.NoError(t, first.UnregisterBroker(t.Context(), 2))
	require.Nil(t, first.Image().Broker(2))
	require.Equal(t, epoch, first.Image().Topic("t0").Partitions[0].LeaderEpoch, "epochs never go back")
	require.EqualValues(t, 7, first.Image().Openings(2))
	require.ErrorIs(t, first.UnregisterBroker(t.Context(), 2), kerr.BrokerIDNotRegistered)
}
