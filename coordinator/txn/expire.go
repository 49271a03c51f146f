package txn

import (
	"time"

	"github.com/mainstem/mainstem/coordinator"
)

// abortOverdue aborts transactions that have taken longer than they may. Their
// producers are locked out: they must not write into what has ended.
func (m *Machine) abortOverdue(t *coordinator.Turn) {
	now := t.NowMillis()
	for _, x := range m.txns {
		if x.state != Ongoing || x.started+int64(x.timeout) >= now {
			continue
		}
		if m.opts.Events.TimedOut != nil {
			m.opts.Events.TimedOut(x.id, x.who(), time.Duration(x.timeout)*time.Millisecond)
		}
		x.fence(t)
	}
	t.Set(&m.overdue, t.Now().Add(m.opts.Settings().TimeoutCheck))
}

// expire forgets ids that nobody has used for long.
func (m *Machine) expire(t *coordinator.Turn) {
	s := m.opts.Settings()
	oldest, n := t.NowMillis()-s.IDExpiration.Milliseconds(), 0
	for id, x := range m.txns {
		if x.state.idle() && x.updated <= oldest {
			t.Append(keyOf(id), nil)
			delete(m.txns, id)
			n++
		}
	}
	if n > 0 && m.opts.Events.Expired != nil {
		m.opts.Events.Expired(n)
	}
	t.Set(&m.expiry, t.Now().Add(s.ExpiryCheck))
}
