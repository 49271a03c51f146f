package replica

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/log"
)

// Writable tells whether records can be appended now, and in which epoch. With
// allReplicas, as for acks=all, enough replicas must be in sync.
func (p *Partition) Writable(allReplicas bool) (epoch int32, err error) {
	r, err := p.checkLeader(NoEpoch)
	if err != nil {
		return 0, err
	}
	if p.topic.env.fenced() {
		return 0, kerr.NotLeaderForPartition
	}
	if allReplicas && len(r.isr) < p.minISR(r) {
		return 0, kerr.NotEnoughReplicas
	}
	return r.epoch, nil
}

// Append stores one whole valid batch in an epoch that Writable gave. It is not
// acknowledged before Set.Commit of its ticket and then Confirm are without
// error.
func (p *Partition) Append(records []byte, epoch int32, origin log.Origin) (log.Appended, error) {
	return p.append(log.Append{Records: records, LeaderEpoch: epoch, Origin: origin})
}

// AppendTxn is Append for a client's batch that may be transactional. If it would
// open a transaction here and the guard does not hold it fails with
// log.ErrTxnUnverified.
func (p *Partition) AppendTxn(records []byte, epoch int32, guard log.TxnGuard) (log.Appended, error) {
	return p.append(log.Append{Records: records, LeaderEpoch: epoch, Origin: log.Client, Guard: guard})
}

// Marker is the end of a transaction.
type Marker struct {
	Batch []byte
	// Raised says that the producer epoch was raised for it.
	Raised bool
}

// AppendMarker is Append for the end of a transaction.
func (p *Partition) AppendMarker(m Marker, epoch int32) (log.Appended, error) {
	return p.append(log.Append{Records: m.Batch, LeaderEpoch: epoch, Origin: log.Coordinator, Raised: m.Raised})
}

func (p *Partition) append(a log.Append) (log.Appended, error) {
	done, err := p.log.Append(a)
	if err != nil {
		return done, clientError(err)
	}
	return done, nil
}

// Confirm tells whether what was appended in the epoch may be acknowledged: this
// broker still leads in it, and its lease holds.
func (p *Partition) Confirm(epoch int32) error {
	if p.topic.Gone() {
		return kerr.UnknownTopicOrPartition
	}
	if r := p.role.Load(); !r.leads || r.epoch != epoch || p.topic.env.fenced() {
		return kerr.NotLeaderForPartition
	}
	return nil
}

// ConfirmLeader is like Confirm for what holds in any epoch.
func (p *Partition) ConfirmLeader() error {
	_, epoch := p.Leader()
	return p.Confirm(epoch)
}

// Replicated tells whether all in-sync replicas have what comes before end, and
// whether they are enough; it is final only if done.
func (p *Partition) Replicated(end int64) (done bool, err error) {
	if p.hw.Load() < end {
		return false, nil
	}
	if r := p.role.Load(); len(r.isr) < p.minISR(r) {
		return true, kerr.NotEnoughReplicasAfterAppend
	}
	return true, nil
}

// Pending is an append of acks=all that waits for the other replicas.
type Pending struct {
	Partition *Partition
	Epoch     int32
	End       int64 // the offset after the last record
	Err       error // how it ended; set by AwaitReplicated
}

// settled tells whether the append's fate is known.
func (a *Pending) settled() bool {
	if a.Err != nil {
		return true
	}
	if a.Err = a.Partition.Confirm(a.Epoch); a.Err != nil {
		return true
	}
	var done bool
	done, a.Err = a.Partition.Replicated(a.End)
	return done
}

// AwaitReplicated waits until every append is replicated, or has failed, or until the
// time is over or stop is closed: those that are left get REQUEST_TIMED_OUT. It
// returns at once if there is nothing to wait for.
func AwaitReplicated(appends []Pending, timeout time.Duration, stop <-chan struct{}) {
	if allSettled(appends) {
		return
	}
	w := NewWaiter()
	watches := make([]Watch, len(appends))
	for i := range appends {
		watches[i].Hang(w, appends[i].Partition)
		defer watches[i].Drop()
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for !allSettled(appends) {
		select {
		case <-w.Signal():
			w.Take()
			continue
		case <-timer.C:
		case <-stop:
		}
		for i := range appends {
			if !appends[i].settled() {
				appends[i].Err = kerr.RequestTimedOut
			}
		}
		return
	}
}

func allSettled(appends []Pending) bool {
	for i := range appends {
		if !appends[i].settled() {
			return false
		}
	}
	return true
}
