package groups

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/broker/config"
)

// liveWith is the configuration with name=value words over the defaults.
func liveWith(t *testing.T, words ...string) *config.Live {
	source, err := config.ParseOverrides(words)
	require.NoError(t, err)
	static, err := config.Load(config.Options{Sources: []config.Source{source}, Hostname: "localhost"})
	require.NoError(t, err)
	return config.NewLive(static)
}

func TestConsumerSettingsAreKafkasDefaults(t *testing.T) {
	s := readConsumerSettings(liveWith(t)).with(nil)
	require.Equal(t, 45*time.Second, s.SessionTimeout)
	require.Equal(t, 5*time.Second, s.HeartbeatInterval)
	require.Equal(t, time.Second, s.AssignmentInterval)
	require.Equal(t, 1<<31-1, s.MaxSize)
	require.Equal(t, []string{"uniform", "range"}, s.Assignors)
	require.True(t, s.Upgrade)
	require.True(t, s.Downgrade)
}

func TestAGroupsOwnSettingsStayInTheBounds(t *testing.T) {
	all := readConsumerSettings(liveWith(t, "group.consumer.max.session.timeout.ms=50000"))
	s := all.with(map[string]string{
		"consumer.session.timeout.ms": " 60000 ", "consumer.heartbeat.interval.ms": "+6000", "consumer.assignment.interval.ms": "0",
		"share.session.timeout.ms": "50000",
	})
	require.Equal(t, 50*time.Second, s.SessionTimeout, "the bound was lowered after it was set")
	require.Equal(t, 6*time.Second, s.HeartbeatInterval)
	require.Zero(t, s.AssignmentInterval)
	require.Equal(t, time.Second, all.AssignmentInterval, "other groups have theirs")
}

func TestThePolicyNamesTheDirections(t *testing.T) {
	for policy, want := range map[string][2]bool{
		"BIDIRECTIONAL": {true, true}, "upgrade": {true, false}, "Downgrade": {false, true}, "disabled": {false, false},
	} {
		s := readConsumerSettings(liveWith(t, "group.consumer.migration.policy="+policy)).with(nil)
		require.Equal(t, want, [2]bool{s.Upgrade, s.Downgrade}, policy)
	}
}

func TestTheProtocolMayBeSwitchedOff(t *testing.T) {
	require.True(t, readConsumerSettings(liveWith(t, "group.coordinator.rebalance.protocols=classic")).disabled)
	require.False(t, readConsumerSettings(liveWith(t)).disabled)
}

func TestMembersThatBeginTogetherMeet(t *testing.T) {
	require.Equal(t, leastRebalanceDelay, newRig(t).h.settings.Load().InitialRebalanceDelay, "not even a delay of 0 lets the first go alone")
	require.Equal(t, time.Minute, newRig(t, "group.initial.rebalance.delay.ms=60000").h.settings.Load().InitialRebalanceDelay)
}
