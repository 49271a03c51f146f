package groups

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/protocol"
)

// Kinds of coordinators.
const (
	ofGroups       = 0
	ofTransactions = 1
)

// batchedKeys is the version of FindCoordinator that asks for many.
const batchedKeys = 4

// findCoordinator answers FindCoordinator: who leads the partition of the
// internal topic that a key belongs to.
func (h *Handlers) findCoordinator(c *protocol.Call) protocol.Finish {
	req := c.Request.(*kmsg.FindCoordinatorRequest)
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	if req.Version >= batchedKeys {
		for _, key := range req.CoordinatorKeys {
			row := kmsg.NewFindCoordinatorResponseCoordinator()
			row.Key = key
			at, err := h.find(c, req, key)
			row.NodeID, row.Host, row.Port = at.id, at.host, at.port
			row.ErrorCode, row.ErrorMessage = found(c, err, "")
			resp.Coordinators = append(resp.Coordinators, row)
		}
		return c.Answer(resp)
	}
	at, err := h.find(c, req, req.CoordinatorKey)
	resp.NodeID, resp.Host, resp.Port = at.id, at.host, at.port
	resp.ErrorCode, resp.ErrorMessage = found(c, err, "NONE")
	return c.Answer(resp)
}

// found is the outcome of a search. fine stands where there is no error to
// explain: tools show it.
func found(c *protocol.Call, err error, fine string) (int16, *string) {
	code, text := c.ErrorCode(err)
	if text == nil {
		text = &fine
	}
	return code, text
}

// node is a broker and how to reach it.
type node struct {
	id, port int32
	host     string
}

func (h *Handlers) find(c *protocol.Call, req *kmsg.FindCoordinatorRequest, key string) (node, error) {
	nobody := node{id: -1, port: -1}
	topic := ""
	switch {
	case req.CoordinatorType == ofGroups:
		topic = OffsetsTopic
	case req.CoordinatorType == ofTransactions:
		topic = TransactionsTopic
	default:
		return nobody, kerr.InvalidRequest // Of share groups too, which are not served.
	}
	t := h.replicas.Topic(topic)
	if t == nil {
		h.createTopic(topic)
		return nobody, kerr.CoordinatorNotAvailable
	}
	leader, _ := t.Leader(coordinator.Partition(key, t.Partitions()))
	if at, ok := h.reach(leader, c.Conn.Listener); ok {
		return at, nil
	}
	return nobody, kerr.CoordinatorNotAvailable
}

// reach is how clients of a listener reach a broker that lives.
func (h *Handlers) reach(id int32, listener string) (node, bool) {
	img := h.replicas.Image()
	if img == nil || id < 0 {
		return node{}, false
	}
	b := img.Broker(id)
	if b == nil || b.Fenced {
		return node{}, false
	}
	for _, e := range b.Listeners {
		if strings.EqualFold(e.Name, listener) {
			return node{id: id, host: e.Host, port: e.Port}, true
		}
	}
	return node{}, false
}
