package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"

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

	mu     sync.Mutex
	ticket log.Ticket // covers everything that was appended, guarded by mu
}

// journalSettings are names of settings: how long a commit may take, how much is
// read at a time, and by which codec records are compressed; "" is by none.
type journalSettings struct {
	timeout, buffer, codec string
}

// errLoadStopped ends a load that nobody waits for any more.
var errLoadStopped = errors.New("load was stopped")

// Load reads the log to its end and waits until that is committed: what another
// broker may still cut must not be served.
func (j *journal) Load(into coordinator.Replay, stop <-chan struct{}) error {
	l := j.part.Log()
	end := l.End()
	size := j.live.Int(j.names.buffer)
	for offset := l.Start(); offset < end; {
		if err := j.Confirm(); err != nil {
			return err
		}
		select {
		case <-stop:
			return errLoadStopped
		default:
		}
		next, err := j.loadSome(offset, end, size, into)
		if err != nil {
			return fmt.Errorf("load from offset %d: %w", offset, err)
		}
		offset = next
	}
	return j.awaitLoaded(end, stop)
}

// loadSome reads batches from an offset on and returns the offset after them.
func (j *journal) loadSome(offset, end int64, size int, into coordinator.Replay) (int64, error) {
	batches, err := j.part.Read(offset, end, size, true)
	if err != nil {
		return offset, err
	}
	if batches == nil {
		return end, nil
	}
	defer batches.Release()
	if batches.NextOffset() <= offset {
		return offset, kerr.KafkaStorageError
	}
	for _, b := range batches.Buffers() {
		for len(b) > 0 {
			h, err := batch.ParseHeader(b)
			if err != nil {
				return offset, err
			}
			if err := loadBatch(b[:h.Size()], h, offset, into); err != nil {
				return offset, err
			}
			b = b[h.Size():]
		}
	}
	return batches.NextOffset(), nil
}

// loadBatch hands out the records of a batch from an offset on.
func loadBatch(b []byte, h batch.Header, from int64, into coordinator.Replay) error {
	if h.IsControl() {
		m, err := batch.ParseMarker(b)
		if errors.Is(err, batch.ErrNoMarker) {
			return nil
		}
		if err == nil {
			into.End(coordinator.Marker{
				Producer: coordinator.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch},
				Commit:   m.Type == batch.Commit, CoordinatorEpoch: m.CoordinatorEpoch,
			})
		}
		return err
	}
	producer := coordinator.NoProducer
	if h.IsTransactional() {
		producer = h.ProducerID
	}
	for r, err := range batch.Records(b) {
		if err != nil {
			return err
		}
		if r.Offset >= from {
			into.Record(coordinator.Record{Key: r.Key, Value: r.Value}, producer)
		}
	}
	return nil
}

// awaitLoaded waits until everything before end is committed, however long that
// takes.
func (j *journal) awaitLoaded(end int64, stop <-chan struct{}) error {
	const patience = time.Minute
	j.set.Kick()
	for {
		wait := []replica.Pending{{Partition: j.part, Epoch: j.epoch, End: end}}
		replica.AwaitReplicated(wait, patience, stop)
		if !errors.Is(wait[0].Err, kerr.RequestTimedOut) {
			return wait[0].Err
		}
		select {
		case <-stop:
			return errLoadStopped
		default:
		}
	}
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
