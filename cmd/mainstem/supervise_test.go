package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// fakeNode is a broker whose end the test decides.
type fakeNode struct {
	done  chan error
	close func(context.Context) error
}

func (n *fakeNode) Done() <-chan error              { return n.done }
func (n *fakeNode) Close(ctx context.Context) error { return n.close(ctx) }

type supervised struct {
	*supervisor
	signals  chan os.Signal
	node     *fakeNode
	ready    atomic.Bool
	stopping atomic.Bool
}

func newSupervised() *supervised {
	s := &supervised{signals: make(chan os.Signal, 8)}
	s.node = &fakeNode{done: make(chan error, 1), close: func(context.Context) error { return nil }}
	s.supervisor = &supervisor{
		open:    func(context.Context) (node, error) { return s.node, nil },
		ready:   func(node) error { s.ready.Store(true); return nil },
		stop:    func() error { s.stopping.Store(true); return nil },
		signals: s.signals,
		logger:  zap.NewNop(),
	}
	return s
}

// start runs the supervisor beside the test.
func (s *supervised) start(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	synctest.Wait()
	return ended
}

func TestASignalStopsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		s.node.close = func(context.Context) error {
			require.True(t, s.stopping.Load(), "systemd is told before the stop begins")
			return nil
		}
		ended := s.start(t.Context())
		require.True(t, s.ready.Load())
		require.False(t, s.stopping.Load())
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
	})
}

func TestAStopThatTakesTooLongIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		s.node.close = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		ended := s.start(t.Context())
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
		require.LessOrEqual(t, time.Since(began), stopLimit)
	})
}

func TestAStopThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		release := make(chan struct{})
		defer close(release)
		s.node.close = func(context.Context) error { <-release; return nil }
		began := time.Now()
		ended := s.start(t.Context())
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
		require.Equal(t, stopLimit, time.Since(began))
	})
}

func TestASecondSignalStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		release := make(chan struct{})
		defer close(release)
		s.node.close = func(context.Context) error { <-release; return nil }
		began := time.Now()
		ended := s.start(t.Context())
		s.signals <- syscall.SIGTERM
		synctest.Wait()
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
		require.Zero(t, time.Since(began))
	})
}

func TestABrokerThatEndsByItselfIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		closed := false
		s.node.close = func(context.Context) error { closed = true; return nil }
		ended := s.start(t.Context())
		cause := errors.New("the log is poisoned")
		s.node.done <- cause
		require.ErrorIs(t, <-ended, cause)
		require.True(t, closed)
	})
}

func TestAFailedStopIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		cause := errors.New("sync failed")
		s.node.close = func(context.Context) error { return cause }
		ended := s.start(t.Context())
		s.signals <- syscall.SIGINT
		require.ErrorIs(t, <-ended, cause)
	})
}

func TestAFailedStartIsReturned(t *testing.T) {
	s := newSupervised()
	cause := errors.New("address in use")
	s.open = func(context.Context) (node, error) { return nil, cause }
	require.ErrorIs(t, s.run(t.Context()), cause)
	require.False(t, s.ready.Load())
}

func TestASignalDuringTheStartGivesItUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		s.open = func(ctx context.Context) (node, error) { <-ctx.Done(); return nil, ctx.Err() }
		ended := s.start(t.Context())
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
		require.False(t, s.ready.Load())
	})
}

func TestAStartThatWasTooFarAlongIsStoppedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		closed := false
		s.node.close = func(context.Context) error { closed = true; return nil }
		s.open = func(ctx context.Context) (node, error) { <-ctx.Done(); return s.node, nil }
		ended := s.start(t.Context())
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
		require.True(t, closed)
		require.False(t, s.ready.Load())
	})
}

func TestAStartThatHangsIsLeftOnASecondSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSupervised()
		release := make(chan struct{})
		defer close(release)
		s.open = func(context.Context) (node, error) { <-release; return nil, errors.New("late") }
		ended := s.start(t.Context())
		s.signals <- syscall.SIGTERM
		synctest.Wait()
		s.signals <- syscall.SIGTERM
		require.NoError(t, <-ended)
	})
}
