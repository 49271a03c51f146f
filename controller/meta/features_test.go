package meta

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLevelsOfFeaturesAreTold(t *testing.T) {
	set := func(base *Image, level int64) (*Image, Delta) {
		image, d, err := Apply(base, base.Revision()+1, []Change{{Key: Keys{}.Feature(GroupVersion), Value: EncodeNumber(level)}})
		require.NoError(t, err)
		return image, d
	}
	first, d := set(Empty(), 1)
	assert.True(t, d.IsEmpty(), "it is what a cluster has anyway")
	second, d := set(first, 0)
	assert.Equal(t, []string{GroupVersion}, d.FeaturesChanged)
	assert.EqualValues(t, 0, second.Level(GroupVersion))
	assert.EqualValues(t, 1, first.Level(GroupVersion))
	d = Diff(Empty(), second)
	assert.Equal(t, []string{GroupVersion}, d.FeaturesChanged)
	assert.False(t, d.IsEmpty())
	d = Diff(first, second)
	assert.Equal(t, []string{GroupVersion}, d.FeaturesChanged)
	_, d = set(second, 0)
	assert.True(t, d.IsEmpty())
}

func TestALeaderIsElectedUnderTheNextEpoch(t *testing.T) {
	var changes []Change
	for id, n := range map[int32]int64{1: 10, 2: 3} {
		changes = append(changes, Change{Key: Keys{}.Openings(id), Value: EncodeNumber(n)})
	}
	image, _, err := Apply(Empty(), 1, changes)
	require.NoError(t, err)
	p := image.NewPartition([]int32{1, 2}, nil)
	for i, leader := range []int32{2, 1, -1, -1, 1, 1} {
		before := p
		p = image.Led(p, leader)
		assert.EqualValues(t, i+1, p.LeaderEpoch)
		assert.Equal(t, leader, p.Leader)
		assert.False(t, p.Same(&before))
		// It is the same for who reads it back.
		parts, err := DecodeChunk(EncodeChunk([]Partition{p}))
		require.NoError(t, err)
		image.resolve(parts)
		assert.EqualValues(t, i+1, parts[0].LeaderEpoch)
	}
}
