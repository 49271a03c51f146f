package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// stopLimit is how long a broker that was asked to stop may take. The last part
// of it is kept for cutting what does not end by itself.
const (
	stopLimit = 10 * time.Second
	stopKept  = time.Second
)

// node is a running broker, as much of it as its supervisor needs.
type node interface {
	// Done gives the reason when the broker ends by itself.
	Done() <-chan error
	// Close stops in order, until ctx ends; then it cuts.
	Close(ctx context.Context) error
}

// supervisor starts a broker, waits for what ends it, and stops it.
type supervisor struct {
	open    func(context.Context) (node, error)
	ready   func(node) error // Tells the world that requests are served.
	stop    func() error     // Tells the world that we are stopping.
	signals <-chan os.Signal
	logger  *zap.Logger
}

// run returns nil after a stop that was asked for.
func (s *supervisor) run(ctx context.Context) error {
	n, err := s.start(ctx)
	if errors.Is(err, errGivenUp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.ready(n); err != nil {
		s.logger.Warn("could not say that the broker is ready", zap.Error(err))
	}
	select {
	case cause := <-n.Done():
		if cause == nil {
			cause = errors.New("the broker ended by itself")
		}
		return errors.Join(cause, s.end(n))
	case sig := <-s.signals:
		s.logger.Info("stopping", zap.String("signal", sig.String()))
	case <-ctx.Done():
	}
	return s.end(n)
}

// errGivenUp is a start that ended because it was told to.
var errGivenUp = errors.New("start given up")

// start opens the broker. A signal meanwhile gives it up.
func (s *supervisor) start(ctx context.Context) (node, error) {
	type result struct {
		node node
		err  error
	}
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	opened := make(chan result, 1)
	go func() {
		n, err := s.open(opening)
		opened <- result{n, err}
	}()
	select {
	case r := <-opened:
		return r.node, r.err
	case sig := <-s.signals:
		s.logger.Info("stopping before the start was complete", zap.String("signal", sig.String()))
		cancel()
	}
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case r := <-opened:
		if r.err == nil {
			return nil, errors.Join(errGivenUp, s.end(r.node))
		}
		return nil, errGivenUp // Whatever it failed of no longer matters.
	case <-s.signals:
	case <-limit.C:
	}
	s.logger.Warn("the start did not end in time: leaving it")
	return nil, errGivenUp
}

// end stops the broker in order, within stopLimit, or at once on a signal.
func (s *supervisor) end(n node) error {
	if err := s.stop(); err != nil {
		s.logger.Warn("could not say that the broker stops", zap.Error(err))
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit-stopKept)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- n.Close(ctx) }()
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case err := <-closed:
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			s.logger.Warn("stopped late, some requests were cut", zap.Duration("took", time.Since(began)), zap.Error(err))
			return nil
		}
		if err != nil {
			return fmt.Errorf("stop the broker: %w", err)
		}
		s.logger.Info("stopped", zap.Duration("took", time.Since(began)))
	case sig := <-s.signals:
		s.logger.Warn("stopped at once; nothing acknowledged is lost, the next start looks through the end of the log", zap.String("signal", sig.String()))
	case <-limit.C:
		s.logger.Warn("stopped after the time limit; nothing acknowledged is lost, the next start looks through the end of the log")
	}
	return nil
}

// stopSignals delivers what asks a broker to stop. It also ignores SIGPIPE, so
// that a log whose reader is gone does not end the broker.
func stopSignals() (ch <-chan os.Signal, release func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	return signals, func() { signal.Stop(signals) }
}
