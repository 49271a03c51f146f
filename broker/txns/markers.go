package txns

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/coordinator/txn"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol/batch"
)

// mark is a marker for one partition, and how its writing went.
type mark struct {
	place  txn.Place
	marker coordinator.Marker
	// raised says that the producer epoch was raised for the marker.
	raised bool
	err    error

	part  *replica.Partition
	epoch int32
	end   int64
	group *coordinator.Promise[struct{}] // of a partition of __consumer_offsets
}

// marks are markers that are written together: one sync is for all of them.
type marks struct {
	h      *Handlers
	all    []*mark
	ticket log.Ticket
}

// append appends the marker, without waiting for the disk.
func (w *marks) append(m *mark) {
	w.all = append(w.all, m)
	if m.place.Topic == OffsetsTopic {
		if _, m.err = replica.Find(w.h.replicas.Topic(OffsetsTopic), m.place.Partition); m.err == nil {
			m.group = w.h.groups.EndTxn(m.place.Partition, m.marker)
		}
		return
	}
	if m.part, m.err = replica.Find(w.h.replicas.Topic(m.place.Topic), m.place.Partition); m.err != nil {
		return
	}
	if m.epoch, m.err = m.part.Writable(true); m.err != nil {
		return
	}
	b := batch.Marker{
		Type: batch.Abort, ProducerID: m.marker.Producer.ID, ProducerEpoch: m.marker.Producer.Epoch,
		CoordinatorEpoch: m.marker.CoordinatorEpoch, Timestamp: time.Now().UnixMilli(),
	}
	if m.marker.Commit {
		b.Type = batch.Commit
	}
	var a log.Appended
	if a, m.err = m.part.AppendMarker(replica.Marker{Batch: b.Batch(), Raised: m.raised}, m.epoch); m.err == nil {
		m.end = a.LastOffset + 1
		w.ticket = w.ticket.Max(a.Ticket)
	}
}

// wait returns when every marker is durable and replicated, or has failed.
func (w *marks) wait(ctx context.Context, timeout time.Duration, stop <-chan struct{}) {
	var err error
	if !w.ticket.IsZero() {
		err = w.h.replicas.Commit(w.ticket)
	}
	var pending []replica.Pending
	var of []*mark
	for _, m := range w.all {
		switch {
		case m.err != nil || m.part == nil:
		case err != nil:
			m.err = err
		default:
			pending = append(pending, replica.Pending{Partition: m.part, Epoch: m.epoch, End: m.end})
			of = append(of, m)
		}
	}
	replica.AwaitReplicated(pending, timeout, stop)
	for i, m := range of {
		m.err = pending[i].Err
	}
	for _, m := range w.all {
		if m.group != nil {
			_, m.err = m.group.Wait(ctx, stop)
		}
	}
}

// settled tells whether there is nothing left to do about the marker: it is
// written, or the partition is gone, or something newer has come to it.
func (m *mark) settled() bool {
	return m.err == nil || errors.Is(m.err, kerr.UnknownTopicOrPartition) || errors.Is(m.err, kerr.InvalidProducerEpoch)
}
