package records

import (
	"encoding/binary"
	"slices"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/controller/meta"
)

// hint tells a client that came to the wrong broker who leads (KIP-951), so that
// it can go there without asking for the metadata first. The zero value is none.
type hint struct {
	known         bool
	leader, epoch int32
}

// leaders collects the brokers that an answer's hints name.
type leaders struct {
	h        *Handlers
	listener string
	nodes    []endpoint
}

type endpoint struct {
	id   int32
	host string
	port int32
	rack string
}

func (l *leaders) reset(h *Handlers, listener string) {
	l.h, l.listener, l.nodes = h, listener, l.nodes[:0]
}

// hintFor names the partition's leader. A leader that the client cannot be told
// how to reach is better not named at all.
func (l *leaders) hintFor(t *replica.Topic, i int32) hint {
	if t == nil {
		return hint{}
	}
	leader, epoch := t.Leader(i)
	switch {
	case leader < 0:
		return hint{}
	case leader == l.h.nodeID && l.h.replicas.Fenced(), leader != l.h.nodeID && !l.add(leader):
		return hint{}
	}
	return hint{known: true, leader: leader, epoch: epoch}
}

// add puts a broker into the answer's list, with its address on the listener that
// the client came by.
func (l *leaders) add(id int32) bool {
	if slices.ContainsFunc(l.nodes, func(n endpoint) bool { return n.id == id }) {
		return true
	}
	img := l.h.replicas.Image()
	if img == nil {
		return false
	}
	b := img.Broker(id)
	if b == nil || b.Fenced {
		return false
	}
	i := slices.IndexFunc(b.Listeners, func(e meta.Endpoint) bool { return e.Name == l.listener })
	if i < 0 {
		return false
	}
	l.nodes = append(l.nodes, endpoint{id: id, host: b.Listeners[i].Host, port: b.Listeners[i].Port, rack: b.Rack})
	return true
}

// appendCurrentLeader appends the tag CurrentLeader of a partition.
func (h hint) appendCurrentLeader(b []byte, tag uint64) []byte {
	b = binary.AppendUvarint(b, tag)
	b = append(b, 4+4+1)
	b = appendInt32(b, h.leader)
	b = appendInt32(b, h.epoch)
	return append(b, 0)
}

// appendEndpoints ends a flexible body: with the tag NodeEndpoints, number 0, if
// there are any.
func (l *leaders) appendEndpoints(b []byte) []byte {
	if len(l.nodes) == 0 {
		return append(b, 0)
	}
	size := uvarintLen(uint64(len(l.nodes)) + 1)
	for i := range l.nodes {
		n := &l.nodes[i]
		size += 4 + uvarintLen(uint64(len(n.host))+1) + len(n.host) + 4 + 1 + 1
		if n.rack != "" {
			size += uvarintLen(uint64(len(n.rack))+1) - 1 + len(n.rack)
		}
	}
	b = append(b, 1, 0)
	b = binary.AppendUvarint(b, uint64(size))
	b = appendArrayLen(b, len(l.nodes), true)
	for i := range l.nodes {
		n := &l.nodes[i]
		b = appendInt32(b, n.id)
		b = appendString(b, n.host, true)
		b = appendInt32(b, n.port)
		if n.rack == "" {
			b = append(b, 0)
		} else {
			b = appendString(b, n.rack, true)
		}
		b = append(b, 0)
	}
	return b
}
