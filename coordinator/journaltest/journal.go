package journaltest

import (
	"bytes"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// Entry is a batch, or the end of a transaction, in a Log.
type Entry struct {
	Records  []coordinator.Record
	Producer *coordinator.Producer
	Marker   *coordinator.Marker
	Time     int64
}

// Log is a partition in memory. The zero value is empty.
type Log struct {
	mu      sync.Mutex
	entries []Entry
	end     int64
	epoch   int32
	commits int
	fail    error
	refuse  error
	held    chan struct{} // commits wait until it is closed; nil: they do not
}

// Lead begins the next epoch and returns a journal of it.
func (l *Log) Lead() (*Journal, int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	return &Journal{log: l, epoch: l.epoch}, l.epoch
}

// Entries are those from a number on.
func (l *Log) Entries(from int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries[min(from, len(l.entries)):])
}

// Commits counts the calls of Commit.
func (l *Log) Commits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commits
}

// Fail has all that is asked for from now on fail; nil ends that.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	l.fail = err
	l.mu.Unlock()
}

// Refuse has appends of transactional records fail; nil ends that.
func (l *Log) Refuse(err error) {
	l.mu.Lock()
	l.refuse = err
	l.mu.Unlock()
}

// Hold has commits wait until release is called.
func (l *Log) Hold() (release func()) {
	held := make(chan struct{})
	l.mu.Lock()
	l.held = held
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		l.held = nil
		l.mu.Unlock()
		close(held)
	}
}

// Journal is a coordinator.Journal over a Log.
type Journal struct {
	log   *Log
	epoch int32
}

// stateLocked is why nothing can be done.
// REQUIRES: log.mu held.
func (j *Journal) stateLocked() error {
	if j.log.epoch != j.epoch {
		return kerr.NotLeaderForPartition
	}
	return j.log.fail
}

// Load replays the log.
func (j *Journal) Load(into coordinator.Replay, _ <-chan struct{}) error {
	j.log.mu.Lock()
	err, entries := j.stateLocked(), j.log.entries
	j.log.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		producer := coordinator.NoProducer
		if e.Producer != nil {
			producer = e.Producer.ID
		}
		for _, r := range e.Records {
			into.Record(r, producer)
		}
		if e.Marker != nil {
			into.End(*e.Marker)
		}
	}
	return nil
}

// Append keeps a copy of the records.
func (j *Journal) Append(records []coordinator.Record, producer *coordinator.Producer, now int64) (int64, error) {
	e := Entry{Producer: producer, Time: now}
	for _, r := range records {
		e.Records = append(e.Records, coordinator.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
	}
	return j.append(e)
}

// AppendMarker keeps the marker.
func (j *Journal) AppendMarker(m coordinator.Marker, now int64) (int64, error) {
	return j.append(Entry{Producer: &m.Producer, Marker: &m, Time: now})
}

func (j *Journal) append(e Entry) (int64, error) {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	if err := j.stateLocked(); err != nil {
		return 0, err
	}
	if e.Producer != nil && j.log.refuse != nil {
		return 0, j.log.refuse
	}
	j.log.entries = append(j.log.entries, e)
	j.log.end += int64(max(1, len(e.Records)))
	return j.log.end, nil
}

// Commit waits while commits are held.
func (j *Journal) Commit(int64) error {
	j.log.mu.Lock()
	held := j.log.held
	j.log.mu.Unlock()
	if held != nil {
		<-held
	}
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	j.log.commits++
	return j.stateLocked()
}

// Confirm tells whether the epoch is the newest.
func (j *Journal) Confirm() error {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	return j.stateLocked()
}
