package coordinator

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Promise is an answer that somebody waits for. It is kept once: later answers
// are ignored.
type Promise[A any] struct {
	kept   atomic.Bool
	answer A
	err    error
	done   chan struct{}
}

// NewPromise returns an open promise.
func NewPromise[A any]() *Promise[A] { return &Promise[A]{done: make(chan struct{})} }

// Keep gives the answer at once. An answer that tells of state is given by
// Deliver instead.
func (p *Promise[A]) Keep(a A) { p.settle(a, nil) }

// Fail gives an error instead of an answer.
func (p *Promise[A]) Fail(err error) {
	var none A
	p.settle(none, err)
}

func (p *Promise[A]) settle(a A, err error) {
	if p.kept.CompareAndSwap(false, true) {
		p.answer, p.err = a, err
		close(p.done)
	}
}

// Ready tells whether Wait would return at once.
func (p *Promise[A]) Ready() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits for the answer. It gives up when ctx ends, or when stop is closed:
// the request's client is then to ask another coordinator.
func (p *Promise[A]) Wait(ctx context.Context, stop <-chan struct{}) (A, error) {
	select {
	case <-p.done:
		return p.answer, p.err
	default:
	}
	var none A
	select {
	case <-p.done:
		return p.answer, p.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-stop:
		return none, kerr.NotCoordinator
	}
}

// Deliver keeps the promise once everything that was appended so far is
// committed.
func Deliver[A any](t *Turn, p *Promise[A], a A) {
	t.settles = append(t.settles, &delivery[A]{p, a})
}

type delivery[A any] struct {
	promise *Promise[A]
	answer  A
}

func (d *delivery[A]) settle(err error) {
	if err != nil {
		d.promise.Fail(err)
		return
	}
	d.promise.Keep(d.answer)
}

// Ask runs fn in a turn of the shard. fn keeps the promise, in this turn or in a
// later one; the promise fails if the shard resigns before fn has run. A shard
// that does not serve fails it at once.
func Ask[M Machine, A any](s *Shard[M], fn func(m M, t *Turn, p *Promise[A])) *Promise[A] {
	q := &question[M, A]{fn: fn}
	q.promise.done = make(chan struct{})
	s.Do(q)
	return &q.promise
}

type question[M Machine, A any] struct {
	promise Promise[A]
	fn      func(m M, t *Turn, p *Promise[A])
}

func (q *question[M, A]) Run(m M, t *Turn) { q.fn(m, t, &q.promise) }
func (q *question[M, A]) Fail(err error)   { q.promise.Fail(err) }
