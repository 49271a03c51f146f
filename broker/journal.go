package broker

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/config"
	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol/batch"
)

// journal is a partition of an internal topic, led in one epoch, as a coordinator
// writes it.
type journal struct {
	set   *replica.Set
	part  *replica.Partition
	live  *config.Live
	epoch int32
	// names are the settings that internal topics have each of their own.
	names journalSettings
	// loads has room for as many journals as may be read at a time.
	loads chan struct{}

	mu     sync.Mutex
	ticket log.Ticket // covers everything that was appended, guarded by mu
}

// journalSettings are names of settings: how long a commit may take, how much is
// read at a time, and by which codec records are compressed; "" is by none.
type journalSettings struct {
	timeout, buffer, codec string
}

// Append appends a batch of records.
func (j *journal) Append(records []coordinator.Record, producer *coordinator.Producer, now int64) (int64, error) {
	var spec batch.Spec
	if j.names.codec != "" {
		spec.Codec = batch.Codec(j.live.Int(j.names.codec))
	}
	if producer != nil {
		spec.Transactional = true
		spec.Producer = &batch.Producer{ID: producer.ID, Epoch: producer.Epoch, Sequence: -1}
	}
	b := batch.NewBuilder(spec)
	for i := range records {
		b.Append(now, records[i].Key, records[i].Value)
	}
	whole, err := b.Batch()
	if err != nil {
		return 0, err
	}
	return j.append(whole)
}

// AppendMarker appends the end of a transaction.
func (j *journal) AppendMarker(m coordinator.Marker, now int64) (int64, error) {
	marker := batch.Marker{
		Type: batch.Abort, ProducerID: m.Producer.ID, ProducerEpoch: m.Producer.Epoch,
		CoordinatorEpoch: m.CoordinatorEpoch, Timestamp: now,
	}
	if m.Commit {
		marker.Type = batch.Commit
	}
	return j.append(marker.Batch())
}

func (j *journal) append(b []byte) (int64, error) {
	epoch, err := j.part.Writable(true)
	if err != nil {
		return 0, err
	}
	if epoch != j.epoch {
		return 0, kerr.NotLeaderForPartition
	}
	a, err := j.part.Append(b, epoch, log.Coordinator)
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	j.ticket = j.ticket.Max(a.Ticket)
	j.mu.Unlock()
	return a.LastOffset + 1, nil
}

// Commit waits until everything before end is durable and replicated.
func (j *journal) Commit(end int64) error {
	j.mu.Lock()
	ticket := j.ticket
	j.mu.Unlock()
	if err := j.set.Commit(ticket); err != nil {
		return err
	}
	wait := []replica.Pending{{Partition: j.part, Epoch: j.epoch, End: end}}
	replica.AwaitReplicated(wait, j.live.Millis(j.names.timeout), nil)
	return wait[0].Err
}

// Confirm tells whether the partition is still led in the epoch.
func (j *journal) Confirm() error { return j.part.Confirm(j.epoch) }
