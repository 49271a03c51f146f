package quota

import "time"

// Mutations is what one request changes about topics.
type Mutations struct {
	m      *Manager
	client Client
	strict bool
	wait   time.Duration
	since  time.Duration
}

// Mutations begins a request. strict refuses changes while the quota is overdrawn;
// else they are made and the client has to wait.
func (m *Manager) Mutations(c Client, strict bool) Mutations {
	return Mutations{m: m, client: c, strict: strict}
}

// Take counts a change of n partitions. False says that it must not be made now.
func (q *Mutations) Take(n int) bool {
	if q.m == nil || q.m.limits.Load() == nil {
		return true
	}
	now := q.m.now()
	bound, a, ok := q.m.find(Mutation, q.client, now)
	if !ok {
		return true
	}
	w := q.m.accounts[Mutation].window
	a.mu.Lock()
	defer a.mu.Unlock()
	owed := a.bucket.refill(w, bound, now) < 0
	if !owed || !q.strict {
		a.rate.add(w, float64(n), now)
		a.bucket.tokens -= float64(n)
	}
	if owed || !q.strict {
		if d := a.throttle(a.bucket.debt(w, bound, now), now); d > 0 {
			q.wait, q.since = d, now
		}
	}
	return !owed || !q.strict
}

// Throttle is how long the client has to wait now.
func (q *Mutations) Throttle() time.Duration {
	if q.wait == 0 {
		return 0
	}
	return max(0, q.wait-(q.m.now()-q.since)).Round(time.Millisecond)
}
