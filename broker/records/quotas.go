package records

import (
	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/protocol"
)

// chargeProduce counts a produce for its client's quota. It is done in the request's
// turn, so that those behind it wait if it was too much.
func (h *Handlers) chargeProduce(c *protocol.Call) {
	if h.quotas.Bounds(quota.Produce) {
		c.Throttle(h.quotas.Charge(quota.Produce, quota.ClientOf(c.Conn.Principal, c.ClientID), float64(c.Size())))
	}
}

func (f *fetch) client() quota.Client {
	return quota.ClientOf(f.call.Conn.Principal, f.call.ClientID)
}

// boundByQuota keeps an answer so small that its client may have it after a pause.
func (f *fetch) boundByQuota() {
	if !f.follower && f.h.quotas.Bounds(quota.Fetch) {
		f.maxBytes = f.h.quotas.MostOfFetch(f.client(), f.maxBytes)
	}
}

// charge counts the answer for its client's quotas. If the client has to wait, the
// answer is not sent, and not counted.
func (f *fetch) charge() {
	if f.follower {
		f.call.Exempt()
		return
	}
	counted := 0
	if f.h.quotas.Bounds(quota.Fetch) {
		f.encodeBody()
		counted = len(f.body) + f.bytes
		f.call.Throttle(f.h.quotas.ChargeFetch(f.client(), counted))
	}
	own := f.call.Throttling() > 0
	if f.wait = f.call.Throttled(); f.wait > 0 && !own && counted > 0 {
		f.h.quotas.Refund(f.client(), counted)
	}
}

// withhold makes the answer one without partitions, and the session what it was: what
// the client was to be told it is told when it has waited. A request that was to
// begin a session begins none.
// REQUIRES: the turn.
func (f *fetch) withhold() {
	for i := range f.rows {
		r := &f.rows[i]
		if r.batches != nil {
			r.batches.Release()
		}
		if pt := f.s.parts[r.key]; f.incremental && pt != nil {
			pt.hw = -1
			f.s.ready.push(pt)
		}
	}
	clear(f.rows)
	f.rows = f.rows[:0]
	f.h.memory.change(-f.held)
	f.bytes, f.held = 0, 0
}

// countOut counts the records that are sent.
func (f *fetch) countOut() {
	for i := range f.rows {
		if r := &f.rows[i]; r.batches != nil {
			r.stats.BytesOut.Add(r.batches.Size())
		}
	}
}
