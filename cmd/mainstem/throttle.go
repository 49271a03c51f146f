package main

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxKinds bounds the memory of a throttle; messages are few and constant, so
// reaching it means that they are not.
const maxKinds = 4096

// throttle is a zap core that lets the same message pass a few times in a window
// of time. Messages are the same when level, logger and text are; fields differ.
type throttle struct {
	zapcore.Core
	seen *repeats
}

// repeats is shared by a core and those made of it by With.
type repeats struct {
	allowed int
	window  time.Duration

	mu    sync.Mutex
	kinds map[kind]*repeat
}

type kind struct {
	level  zapcore.Level
	logger string
	text   string
}

type repeat struct {
	since  time.Time
	passed int
	left   int // Left out in this window.
}

func newThrottle(core zapcore.Core, allowed int, window time.Duration) zapcore.Core {
	return &throttle{core, &repeats{allowed: allowed, window: window, kinds: make(map[kind]*repeat)}}
}

// With keeps the shared memory of what was seen.
func (t *throttle) With(fields []zapcore.Field) zapcore.Core {
	return &throttle{t.Core.With(fields), t.seen}
}

// Check decides about the level only: what is throttled is decided by Write,
// which knows that the line is really to be written.
func (t *throttle) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if t.Enabled(e.Level) {
		return ce.AddCore(e, t)
	}
	return ce
}

// Write writes the line unless it repeats too often.
func (t *throttle) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if e.Level > zapcore.ErrorLevel {
		return t.Core.Write(e, fields)
	}
	pass, left := t.seen.admit(e)
	if !pass {
		return nil
	}
	if left > 0 {
		fields = append(fields[:len(fields):len(fields)], zap.Int("repeats_left_out", left))
	}
	return t.Core.Write(e, fields)
}

// admit says whether the entry passes, and how many before it did not.
func (r *repeats) admit(e zapcore.Entry) (pass bool, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := kind{e.Level, e.LoggerName, e.Message}
	s := r.kinds[k]
	if s == nil {
		if len(r.kinds) >= maxKinds {
			clear(r.kinds)
		}
		s = &repeat{since: e.Time}
		r.kinds[k] = s
	}
	if e.Time.Sub(s.since) >= r.window {
		left = s.left
		*s = repeat{since: e.Time}
	}
	if s.passed < r.allowed {
		s.passed++
		return true, left
	}
	s.left++
	return false, 0
}
