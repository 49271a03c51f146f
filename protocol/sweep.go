package protocol

import "time"

const (
	// sweepPeriod is how often connections are looked at: time-outs are that
	// much off.
	sweepPeriod = time.Second
	// stallTimeout is how long a request or an answer may stand still half-way
	// while others wait for the memory that it holds.
	stallTimeout = 10 * time.Second
)

// sweep closes connections without traffic. One goroutine does it for all, so
// that a request costs no timer; it sleeps while there is no connection.
func (s *Server) sweep() {
	defer s.running.Done()
	t := time.NewTicker(s.period)
	defer t.Stop()
	for {
		if s.isEmpty() {
			select {
			case <-s.draining:
				return
			case <-s.peopled:
			}
		}
		select {
		case <-s.draining:
			return
		case <-t.C:
		}
		now := s.tick.Add(1)
		idle := make(map[string]time.Duration, len(s.listeners))
		for _, ln := range s.listeners {
			idle[ln.Name] = s.gate.idle(ln.Name)
		}
		crowded := s.frames.waiting.Load() > 0
		unread := s.opts.Crowded != nil && s.opts.Crowded()
		s.mu.Lock()
		for c := range s.conns {
			age := time.Duration(now-c.seen.Load()) * s.period
			if limit := idle[c.ln.Name]; limit > 0 && age > limit && c.unused() {
				c.kill(ErrIdle)
			} else if crowded && age > stallTimeout && c.holding.Load() {
				c.kill(ErrStalled)
			} else if unread && age > stallTimeout && c.writing.Load() {
				c.kill(ErrUnread)
			}
		}
		s.mu.Unlock()
	}
}

// isEmpty says that nobody is connected.
func (s *Server) isEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) == 0
}

// unused says that a connection waits for its client, be it for a request or for
// an answer to be taken.
func (c *conn) unused() bool {
	return c.writing.Load() || !c.working.Load() && c.pending.Load() == 0
}
