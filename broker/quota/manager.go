package quota

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/mainstem/mainstem/controller/meta"
)

// Options are given to New.
type Options struct {
	// Clients is the window of all quotas but one.
	Clients Window
	// Mutations is the window of the quota on changes of topics.
	Mutations Window
}

// Manager holds clients to their quotas. Its methods are safe for concurrent use.
type Manager struct {
	begun     time.Time
	limits    atomic.Pointer[limits]        // nil while no client has a quota
	addresses atomic.Pointer[addressLimits] // nil while no address has one

	accounts [kinds]*accounts[Client]
	callers  *accounts[netip.Addr]
}

// New returns a manager that knows no quotas yet.
func New(o Options) *Manager {
	m := &Manager{begun: time.Now(), callers: newAccounts[netip.Addr](o.Clients)}
	for k := range kinds {
		m.accounts[k] = newAccounts[Client](o.Clients)
	}
	m.accounts[Mutation] = newAccounts[Client](o.Mutations)
	return m
}

// Apply takes the quotas of an image.
func (m *Manager) Apply(img *meta.Image) {
	m.limits.Store(limitsOf(img))
	m.addresses.Store(addressLimitsOf(img))
}

func (m *Manager) now() time.Duration { return time.Since(m.begun) }

// Bounds tells whether anybody has a quota of the kind.
func (m *Manager) Bounds(k Kind) bool {
	l := m.limits.Load()
	return l != nil && l.tables[k].bounds != nil
}

// find gives a client's bound and account.
func (m *Manager) find(k Kind, c Client, now time.Duration) (bound float64, a *account, ok bool) {
	l := m.limits.Load()
	if l == nil || l.tables[k].bounds == nil {
		return 0, nil, false
	}
	bound, key, ok := l.tables[k].find(c)
	if !ok {
		return 0, nil, false
	}
	return bound, m.accounts[k].get(bounded(key), now), true
}

// Charge counts v, bytes of Produce or Fetch, and says how long the client has to
// wait now.
func (m *Manager) Charge(k Kind, c Client, v float64) time.Duration {
	if m.limits.Load() == nil {
		return 0
	}
	now := m.now()
	bound, a, ok := m.find(k, c, now)
	if !ok {
		return 0
	}
	w := m.accounts[k].window
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rate.add(w, v, now)
	return a.throttle(a.rate.excess(w, bound, now), now)
}

// ChargeTime counts the broker's time that a request took, and says how long the
// client has to wait now.
func (m *Manager) ChargeTime(c Client, took time.Duration) time.Duration {
	if m.limits.Load() == nil {
		return 0
	}
	now := m.now()
	bound, a, ok := m.find(Request, c, now)
	if !ok {
		return 0
	}
	w := m.accounts[Request].window
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rate.add(w, 100*took.Seconds(), now)
	return a.throttle(min(a.rate.excess(w, bound, now), w.Length), now)
}

// ChargeFetch is Charge for an answer that is sent only if the client need not
// wait: else it is not counted.
func (m *Manager) ChargeFetch(c Client, bytes int) time.Duration {
	if m.limits.Load() == nil {
		return 0
	}
	now := m.now()
	bound, a, ok := m.find(Fetch, c, now)
	if !ok {
		return 0
	}
	w := m.accounts[Fetch].window
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rate.add(w, float64(bytes), now)
	d := a.rate.excess(w, bound, now)
	if d > 0 {
		a.rate.add(w, -float64(bytes), now)
	}
	return a.throttle(d, now)
}

// Refund takes back bytes of an answer that ChargeFetch has counted and that is
// not sent, for another reason.
func (m *Manager) Refund(c Client, bytes int) {
	now := m.now()
	if _, a, ok := m.find(Fetch, c, now); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.rate.add(m.accounts[Fetch].window, -float64(bytes), now)
	}
}

// MostOfFetch is how many bytes an answer to the client may have so that, after a
// pause, it would not have to wait; most if its quota allows more.
func (m *Manager) MostOfFetch(c Client, most int) int {
	l := m.limits.Load()
	if l == nil {
		return most
	}
	bound, _, ok := l.tables[Fetch].find(c)
	if !ok {
		return most
	}
	return int(min(float64(most), bound*m.accounts[Fetch].window.full().Seconds()))
}

// Connection counts a new connection from an address. If the address has to wait
// it is not counted, and is to be refused for that long.
func (m *Manager) Connection(ip netip.Addr) time.Duration {
	l := m.addresses.Load()
	if l == nil || !ip.IsValid() {
		return 0
	}
	bound, ok := l.find(ip)
	if !ok {
		return 0
	}
	now, w := m.now(), m.callers.window
	a := m.callers.get(ip, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rate.add(w, 1, now)
	d := min(a.rate.excess(w, bound, now), w.Length)
	if d > 0 {
		a.rate.add(w, -1, now)
	}
	return a.throttle(d, now)
}

// Expire forgets accounts that nobody has used for long.
func (m *Manager) Expire() {
	now := m.now()
	for _, a := range m.accounts {
		a.sweep(now)
	}
	m.callers.sweep(now)
}

// throttle remembers a throttle time for the figures.
//
// REQUIRES: mu held.
func (a *account) throttle(d, now time.Duration) time.Duration {
	if d > 0 {
		a.throttled.add(figureWindow(), float64(d.Milliseconds()), now)
	}
	return d
}
