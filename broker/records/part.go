package records

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica"
)

// partKey names a partition as a client does: by topic name up to Fetch v12, by
// topic id from then on. What is not used is zero.
type partKey struct {
	id    [16]byte
	name  string
	index int32
}

// part is one partition of a fetch or of a session. Whoever has the session's turn
// owns it.
type part struct {
	watch replica.Watch
	key   partKey
	p     *replica.Partition // nil if there is none here
	fault error              // why there is none

	// What the client asked for last.
	at       replica.Position
	maxBytes int32

	// What the client was told last; -1 if nothing, or an error.
	hw, start int64

	// What the last look has found.
	view  replica.View
	err   error
	bytes int

	queued     bool // in the session's ready queue
	prev, next *part
}

// ask takes over what a request says of the partition.
func (pt *part) ask(rp *kmsg.FetchRequestTopicPartition, version int16) {
	pt.at = replica.Position{Offset: rp.FetchOffset, CurrentEpoch: replica.NoEpoch, LastEpoch: replica.NoEpoch}
	if version >= 9 {
		pt.at.CurrentEpoch = rp.CurrentLeaderEpoch
	}
	if version >= 12 {
		pt.at.LastEpoch = rp.LastFetchedEpoch
	}
	pt.maxBytes = rp.PartitionMaxBytes
}

// missing tells that there is no such partition in the cluster: it is answered
// without being read, and does not end a wait.
func (pt *part) missing() bool {
	return pt.p == nil && (errors.Is(pt.fault, kerr.UnknownTopicOrPartition) || errors.Is(pt.fault, kerr.UnknownTopicID))
}

// resolve finds the partition that the key names now, and watches it for w unless
// that is nil.
func (pt *part) resolve(h *Handlers, byID bool, w *replica.Waiter) {
	pt.watch.Drop()
	pt.p = nil
	var t *replica.Topic
	if byID {
		if t = h.replicas.TopicByID(pt.key.id); t == nil {
			pt.fault = kerr.UnknownTopicID
			return
		}
	} else {
		t = h.replicas.Topic(pt.key.name)
	}
	pt.p, pt.fault = replica.Find(t, pt.key.index)
	if pt.p != nil && w != nil {
		pt.watch.Of = pt
		pt.watch.Hang(w, pt.p)
	}
}

// queue is a list of parts in the order in which they are served.
type queue struct {
	head, tail *part
	n          int
}

func (q *queue) push(pt *part) {
	if pt.queued {
		return
	}
	pt.queued = true
	pt.prev, pt.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = pt
	} else {
		q.head = pt
	}
	q.tail = pt
	q.n++
}

func (q *queue) remove(pt *part) {
	if !pt.queued {
		return
	}
	if pt.prev != nil {
		pt.prev.next = pt.next
	} else {
		q.head = pt.next
	}
	if pt.next != nil {
		pt.next.prev = pt.prev
	} else {
		q.tail = pt.prev
	}
	pt.prev, pt.next, pt.queued = nil, nil, false
	q.n--
}
