package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// fakeClock is a zapcore.Clock that stands still until it is moved.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time                         { return c.now }
func (c *fakeClock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

func throttled(t *testing.T, allowed int) (*zap.Logger, *fakeClock, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	clock := &fakeClock{now: time.Unix(1000, 0)}
	return zap.New(newThrottle(core, allowed, time.Minute), zap.WithClock(clock)), clock, logs
}

func TestRepeatsAreLeftOutAndCounted(t *testing.T) {
	logger, clock, logs := throttled(t, 2)
	for i := range 7 {
		logger.Warn("client refused", zap.Int("n", i))
	}
	require.Equal(t, 2, logs.Len())
	clock.now = clock.now.Add(time.Minute)
	logger.Warn("client refused")
	last := logs.All()[2]
	require.EqualValues(t, 5, last.ContextMap()["repeats_left_out"])
	logger.Warn("client refused")
	require.NotContains(t, logs.All()[3].ContextMap(), "repeats_left_out")
}

func TestDifferentLinesDoNotThrottleEachOther(t *testing.T) {
	logger, _, logs := throttled(t, 1)
	logger.Info("a")
	logger.Info("b")
	logger.Warn("a")
	logger.Named("x").Info("a")
	logger.With(zap.Int("k", 1)).Info("a") // The same line with fields: left out.
	logger.Debug("a")                      // Below the level.
	require.Equal(t, 4, logs.Len())
}

func TestPanicsAreNeverLeftOut(t *testing.T) {
	logger, _, logs := throttled(t, 1)
	for range 3 {
		require.Panics(t, func() { logger.Panic("broken") })
	}
	require.Equal(t, 3, logs.Len())
}

func TestAThrottleDoesNotGrowWithoutBound(t *testing.T) {
	core, _ := observer.New(zapcore.InfoLevel)
	th, ok := newThrottle(core, 1, time.Minute).(*throttle)
	require.True(t, ok)
	for i := range 3 * maxKinds {
		th.seen.admit(zapcore.Entry{Message: fmt.Sprint(i), Time: time.Unix(1, 0)})
		require.LessOrEqual(t, len(th.seen.kinds), maxKinds)
	}
}
