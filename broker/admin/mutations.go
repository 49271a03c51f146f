package admin

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/quota"
	"github.com/mainstem/mainstem/protocol"
)

// Since these versions a client knows that a change of topics may be refused for its
// quota. Changes of older ones are made, and the client has to wait afterwards.
const (
	createStrictSince = 6
	deleteStrictSince = 5
	growStrictSince   = 3
)

var errThrottled = refuse(kerr.ThrottlingQuotaExceeded, "the quota on changes of topics is exceeded; try again after the throttle time")

// mutations begins to count what a request changes about topics.
func (h *Handlers) mutations(c *protocol.Call, strictSince int16) quota.Mutations {
	return h.opts.Quotas.Mutations(clientOf(c), c.Version >= strictSince)
}

func clientOf(c *protocol.Call) quota.Client { return quota.ClientOf(c.Conn.Principal, c.ClientID) }

// affordable are those of the topics, to be made since the client has asked about
// them, that its quota has room for. It asks about the others again.
func (h *Handlers) affordable(c *protocol.Call, names []string) []string {
	if !h.opts.Quotas.Bounds(quota.Mutation) {
		return names
	}
	q := h.opts.Quotas.Mutations(clientOf(c), true)
	image := h.opts.Controller.Image()
	var out []string
	for _, name := range h.creator.fresh(names) {
		if p := h.planAutomatic(image, name, 0); p.err != nil || q.Take(len(p.Assignments)) {
			out = append(out, name)
		}
	}
	return out
}
