package broker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/broker/replica"
	"github.com/mainstem/mainstem/coordinator"
	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol/batch"
)

// maxLoads bounds how many journals are read at a time, and so the memory that
// this takes: each has two reads at hand.
const maxLoads = 4

// errLoadStopped ends a load that nobody waits for any more.
var errLoadStopped = errors.New("load was stopped")

// Load reads the log to its end and waits until that is committed: what another
// broker may still cut must not be served.
func (j *journal) Load(into coordinator.Replay, stop <-chan struct{}) error {
	select {
	case j.loads <- struct{}{}:
	case <-stop:
		return errLoadStopped
	}
	end := j.part.Log().End()
	err := j.replay(end, into, stop)
	<-j.loads
	if err != nil {
		return err
	}
	return j.awaitLoaded(end, stop)
}

// chunk is what one read of the log found.
type chunk struct {
	batches *log.Batches // nil at the end
	from    int64
	next    int64 // the offset after it
	err     error
}

func (c *chunk) release() {
	if c.batches != nil {
		c.batches.Release()
	}
}

// replay hands out the log up to an offset: while one chunk is taken in, the next
// is read.
func (j *journal) replay(end int64, into coordinator.Replay, stop <-chan struct{}) error {
	for c := j.read(j.part.Log().Start(), end); ; {
		if c.err != nil || c.batches == nil {
			return c.err
		}
		ahead := make(chan chunk, 1)
		if next := c.next; next < end {
			go func() { ahead <- j.read(next, end) }()
		} else {
			ahead <- chunk{}
		}
		err := j.takeIn(c, into, stop)
		c.release()
		next := <-ahead
		if err != nil {
			next.release()
			return err
		}
		c = next
	}
}

// read reads batches from an offset on.
func (j *journal) read(offset, end int64) chunk {
	batches, err := j.part.Read(offset, end, j.live.Int(j.names.buffer), true)
	c := chunk{batches: batches, from: offset, next: end, err: err}
	if batches != nil {
		c.next = batches.NextOffset()
		if c.next <= offset {
			batches.Release()
			c.batches, c.err = nil, kerr.KafkaStorageError
		}
	}
	if c.err != nil {
		c.err = loadError(offset, c.err)
	}
	return c
}

func loadError(offset int64, err error) error {
	return fmt.Errorf("load from offset %d: %w", offset, err)
}

// takeIn hands out the records of a chunk.
func (j *journal) takeIn(c chunk, into coordinator.Replay, stop <-chan struct{}) error {
	if err := j.Confirm(); err != nil {
		return err
	}
	select {
	case <-stop:
		return errLoadStopped
	default:
	}
	for p := (pieces{more: slices.Clone(c.batches.Buffers())}); ; {
		b, h, err := p.next()
		if err != nil {
			return loadError(c.from, err)
		}
		if b == nil {
			return nil
		}
		if err := loadBatch(b, h, c.from, into); err != nil {
			return loadError(h.BaseOffset, err)
		}
	}
}

// pieces are batches back to back in memory that is cut anywhere.
type pieces struct {
	rest   []byte
	more   [][]byte
	joined []byte // a batch that lies in several pieces
}

// next takes the next batch, nil if there is none. It is valid until the next call.
func (p *pieces) next() ([]byte, batch.Header, error) {
	for len(p.rest) == 0 {
		if len(p.more) == 0 {
			return nil, batch.Header{}, nil
		}
		p.rest, p.more = p.more[0], p.more[1:]
	}
	p.join(batch.HeaderLen)
	h, err := batch.ParseHeader(p.rest)
	if err != nil {
		return nil, h, err
	}
	p.join(h.Size())
	if len(p.rest) < h.Size() {
		return nil, h, batch.ErrShort
	}
	b := p.rest[:h.Size()]
	p.rest = p.rest[h.Size():]
	return b, h, nil
}

// join makes n bytes, or all that are left, lie side by side.
func (p *pieces) join(n int) {
	if len(p.rest) >= n {
		return
	}
	p.joined = append(p.joined[:0], p.rest...)
	for len(p.joined) < n && len(p.more) > 0 {
		k := min(n-len(p.joined), len(p.more[0]))
		p.joined = append(p.joined, p.more[0][:k]...)
		if p.more[0] = p.more[0][k:]; len(p.more[0]) == 0 {
			p.more = p.more[1:]
		}
	}
	p.rest = p.joined
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
	for r, err := range batch.RecordsOf(h, b) {
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
