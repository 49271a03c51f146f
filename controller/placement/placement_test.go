package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/controller/meta"
)

// cluster has the brokers 1 to n, of which these live.
func cluster(t *testing.T, n int32, living ...int32) *meta.Image {
	t.Helper()
	var keys meta.Keys
	var changes []meta.Change
	for id := int32(1); id <= n; id++ {
		changes = append(changes, meta.Change{Key: keys.Broker(id), Value: meta.EncodeBroker(&meta.Broker{}), ModRevision: 1})
		// Epochs must grow whatever the leaders' openings are.
		changes = append(changes, meta.Change{Key: keys.Openings(id), Value: meta.EncodeNumber(int64(id * id)), ModRevision: 1})
		if slices.Contains(living, id) {
			changes = append(changes, meta.Change{Key: keys.Live(id), Value: meta.EncodeLive(meta.Live{}), ModRevision: 1})
		}
	}
	image, _, err := meta.Apply(meta.Empty(), 1, changes)
	require.NoError(t, err)
	return image
}

// state is a partition as a test writes it.
func state(image *meta.Image, leader int32, replicas, isr, adding, removing []int32) meta.Partition {
	p := image.NewPartition(replicas, isr)
	p.Adding, p.Removing = adding, removing
	return image.Led(p, leader)
}

func ids(list ...int32) []int32 { return list }

func text(p meta.Partition) string {
	return fmt.Sprintf("leader %d of %v in sync %v adding %v removing %v", p.Leader, p.Replicas, p.ISR, p.Adding, p.Removing)
}

func TestElections(t *testing.T) {
	for _, c := range []struct {
		name     string
		living   []int32
		leader   int32
		replicas []int32
		isr      []int32
		how      Election
		want     int32
		wantISR  []int32
		err      error
	}{
		{"the preferred one leads", ids(1, 2), 1, ids(1, 2), ids(1, 2), Preferred, 0, nil, kerr.ElectionNotNeeded},
		{"the preferred one is in sync", ids(1, 2), 2, ids(1, 2), ids(2, 1), Preferred, 1, ids(2, 1), nil},
		{"the preferred one is not in sync", ids(1, 2), 2, ids(1, 2), ids(2), Preferred, 0, nil, kerr.PreferredLeaderNotAvailable},
		{"the preferred one is dead", ids(2, 3), 2, ids(1, 2, 3), ids(1, 2, 3), Preferred, 0, nil, kerr.PreferredLeaderNotAvailable},
		{"the leader and the preferred one are dead", ids(2, 3), 1, ids(1, 3, 2), ids(1, 2), Preferred, 2, ids(1, 2), nil},
		{"all in sync are dead", ids(3), 1, ids(1, 2, 3), ids(1, 2), Preferred, 0, nil, kerr.PreferredLeaderNotAvailable},
		{"nobody leads", ids(1, 2), -1, ids(1, 2), ids(1, 2), Preferred, 1, ids(1, 2), nil},
		{"unclean, though somebody leads", ids(1, 2), 2, ids(1, 2), ids(1, 2), Unclean, 0, nil, kerr.ElectionNotNeeded},
		{"unclean, and one in sync lives", ids(2, 3), 1, ids(1, 3, 2), ids(1, 2), Unclean, 2, ids(1, 2), nil},
		{"unclean, and none in sync lives", ids(3, 4), 1, ids(1, 2, 3, 4), ids(1, 2), Unclean, 3, ids(3), nil},
		{"unclean, and none lives", nil, 1, ids(1, 2), ids(1, 2), Unclean, 0, nil, kerr.EligibleLeadersNotAvailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := cluster(t, 4, c.living...)
			before := state(image, c.leader, c.replicas, c.isr, nil, nil)
			got, err := Elect(image, before, c.how)
			require.ErrorIs(t, err, c.err)
			if c.err != nil {
				assert.True(t, got.Same(&before), "nothing changes")
				return
			}
			assert.Equal(t, c.want, got.Leader)
			assert.Equal(t, c.wantISR, got.ISR)
			assert.Greater(t, got.LeaderEpoch, before.LeaderEpoch)
			assert.Equal(t, before.PartitionEpoch+1, got.PartitionEpoch)
		})
	}
}

func TestReassignments(t *testing.T) {
	for _, c := range []struct {
		name   string
		living []int32
		from   func(*meta.Image) meta.Partition
		target []int32
		want   string
	}{
		{"to what it is", ids(1), stateOf(1, ids(1), ids(1), nil, nil), ids(1), ""},
		{"another order", ids(1, 2), stateOf(1, ids(1, 2), ids(1, 2), nil, nil), ids(2, 1), "leader 1 of [2 1] in sync [1 2] adding [] removing []"},
		{"one more", ids(1, 2), stateOf(1, ids(1), ids(1), nil, nil), ids(1, 2), "leader 1 of [1 2] in sync [1] adding [2] removing []"},
		{"elsewhere", ids(1, 2, 3), stateOf(1, ids(1, 2), ids(1, 2), nil, nil), ids(3, 2), "leader 1 of [3 2 1] in sync [1 2] adding [3] removing [1]"},
		{"one less", ids(1, 2), stateOf(1, ids(1, 2), ids(1, 2), nil, nil), ids(1), "leader 1 of [1] in sync [1] adding [] removing []"},
		{"without its leader", ids(1, 2), stateOf(1, ids(1, 2), ids(1, 2), nil, nil), ids(2), "leader 2 of [2] in sync [2] adding [] removing []"},
		{"to one that is not in sync", ids(1, 2), stateOf(1, ids(1, 2), ids(1), nil, nil), ids(2), "leader 1 of [2 1] in sync [1] adding [] removing [1]"},
		{"to one that is dead", ids(1), stateOf(1, ids(1, 2), ids(1, 2), nil, nil), ids(2), "leader 1 of [2 1] in sync [1 2] adding [] removing [1]"},
		{"the same move again", ids(1, 2), stateOf(1, ids(2, 1), ids(1), ids(2), ids(1)), ids(2), ""},
		{"another place meanwhile", ids(1, 2, 3), stateOf(1, ids(2, 1), ids(1), ids(2), ids(1)), ids(3), "leader 1 of [3 2 1] in sync [1] adding [3] removing [2 1]"},
		{"back meanwhile", ids(1, 2), stateOf(1, ids(2, 1), ids(1), ids(2), ids(1)), ids(1), "leader 1 of [1] in sync [1] adding [] removing []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := cluster(t, 3, c.living...)
			before := c.from(image)
			got := Reassign(image, before, c.target)
			if c.want == "" {
				assert.True(t, got.Same(&before))
				return
			}
			assert.Equal(t, c.want, text(got))
			assert.Equal(t, before.PartitionEpoch+1, got.PartitionEpoch)
			if len(without(before.Replicas, got.Replicas)) > 0 {
				assert.Greater(t, got.LeaderEpoch, before.LeaderEpoch, "one that is taken away does not go on")
			}
		})
	}
}

// stateOf is state for a table.
func stateOf(leader int32, replicas, isr, adding, removing []int32) func(*meta.Image) meta.Partition {
	return func(image *meta.Image) meta.Partition { return state(image, leader, replicas, isr, adding, removing) }
}

func TestAMoveIsTakenBack(t *testing.T) {
	image := cluster(t, 3, 1, 2, 3)
	_, _, err := Revert(image, state(image, 1, ids(1, 2), ids(1, 2), nil, nil))
	require.ErrorIs(t, err, kerr.NoReassignmentInProgress)

	p, lossy, err := Revert(image, state(image, 3, ids(3, 2, 1), ids(3, 1), ids(3), ids(1)))
	require.NoError(t, err)
	assert.False(t, lossy)
	assert.Equal(t, "leader 1 of [2 1] in sync [1] adding [] removing []", text(p))

	before := state(image, 3, ids(3, 2), ids(3), ids(3), ids(2))
	p, lossy, err = Revert(image, before)
	require.NoError(t, err)
	assert.True(t, lossy, "the only one in sync goes")
	assert.Equal(t, "leader 2 of [2] in sync [2] adding [] removing []", text(p))
	assert.Greater(t, p.LeaderEpoch, before.LeaderEpoch)
	_, _, err = Revert(image, state(image, 3, ids(3), ids(3), ids(3), nil))
	require.ErrorIs(t, err, kerr.InvalidReplicaAssignment, "nobody would be left")
}

// TestWhateverIsAskedForHolds changes partitions at random and looks at what must
// always hold.
func TestWhateverIsAskedForHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 1000 {
		var living []int32
		for id := int32(1); id <= 5; id++ {
			if rng.IntN(3) > 0 {
				living = append(living, id)
			}
		}
		image := cluster(t, 5, living...)
		pick := func() (list []int32) {
			for _, i := range rng.Perm(5)[:1+rng.IntN(4)] {
				list = append(list, int32(i+1))
			}
			return list
		}
		replicas := pick()
		p := state(image, replicas[0], replicas, replicas[:1+rng.IntN(len(replicas))], nil, nil)
		for range 6 {
			was, unclean := p, false
			switch rng.IntN(4) {
			case 0:
				p = Reassign(image, p, pick())
			case 1:
				p, unclean, _ = Revert(image, p)
			case 2:
				p, _ = Elect(image, p, Preferred)
			case 3:
				p, _ = Elect(image, p, Unclean)
				unclean = true
			}
			what := fmt.Sprintf("%s\n%s\nliving %v", text(was), text(p), living)
			require.NotEmpty(t, p.ISR, what)
			require.Empty(t, without(p.ISR, p.Replicas), what)
			require.Empty(t, without(p.Adding, p.Replicas), what)
			require.Empty(t, without(p.Removing, p.Replicas), what)
			require.Len(t, p.Replicas, len(slices.Compact(slices.Sorted(slices.Values(p.Replicas)))), what)
			if p.Leader != was.Leader {
				require.Greater(t, p.LeaderEpoch, was.LeaderEpoch, what)
				require.True(t, p.Leader < 0 || alive(image, p.Leader), what)
				require.True(t, unclean || p.Leader < 0 || slices.Contains(was.ISR, p.Leader), what)
			}
			if !p.Same(&was) {
				require.Greater(t, p.PartitionEpoch, was.PartitionEpoch, what)
			}
		}
	}
}
