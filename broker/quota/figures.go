package quota

import "time"

// Figure is what there is to know of an account.
type Figure struct {
	// Resource is Kafka's name of the kind.
	Resource string
	// User and ClientID say whose it is; one of them may be empty.
	User, ClientID string
	// Rate is bytes a second, percent of a processor, or partitions a second.
	Rate float64
	// Throttle is the average time of its throttles, in milliseconds.
	Throttle float64
	// Tokens are those left, of Mutation only.
	Tokens float64
}

// figureWindow is over what time throttles are averaged: that of Kafka's metrics.
func figureWindow() Window { return Window{Samples: 2, Length: 30 * time.Second} }

// resourceOf are the kinds as Kafka's metrics name them.
func resourceOf(k Kind) string {
	return [kinds]string{"Produce", "Fetch", "Request", "ControllerMutation"}[k]
}

// Figures are those of at most so many accounts of clients.
func (m *Manager) Figures(most int) []Figure {
	now, l := m.now(), m.limits.Load()
	var out []Figure
	for k := range kinds {
		w := m.accounts[k].window
		for c, a := range m.accounts[k].some(most - len(out)) {
			f := Figure{Resource: resourceOf(k), User: c.User, ClientID: c.ID}
			bound, bounded := 0.0, false
			if k == Mutation && l != nil {
				bound, _, bounded = l.tables[k].find(c)
			}
			a.mu.Lock()
			f.Rate, _ = a.rate.measure(w, now)
			f.Throttle = a.throttled.average(figureWindow(), now)
			if bounded {
				f.Tokens = a.bucket.refill(w, bound, now)
			}
			a.mu.Unlock()
			out = append(out, f)
		}
	}
	return out
}
