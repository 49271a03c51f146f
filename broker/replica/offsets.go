package replica

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// Offset is an offset of a partition with its time, -1 if it has none, and the
// leader epoch of its record, NoEpoch if unknown.
type Offset struct {
	Offset    int64
	Timestamp int64
	Epoch     int32
}

// NoOffset says that there is no such record.
func NoOffset() Offset { return Offset{Offset: -1, Timestamp: -1, Epoch: NoEpoch} }

// Earliest is the log start.
func (p *Partition) Earliest(current int32) (Offset, error) {
	if _, err := p.checkLeader(current); err != nil {
		return NoOffset(), err
	}
	start := p.log.Start()
	return Offset{Offset: start, Timestamp: -1, Epoch: p.epochAt(start)}, nil
}

// Latest is the offset after the last one that the reader may see.
func (p *Partition) Latest(current int32, committed bool) (Offset, error) {
	upto, err := p.visible(current, committed)
	if err != nil {
		return NoOffset(), err
	}
	return Offset{Offset: upto, Timestamp: -1, Epoch: p.role.Load().epoch}, nil
}

// AtTime is the first record whose timestamp is at least ts.
func (p *Partition) AtTime(current int32, committed bool, ts int64) (Offset, error) {
	upto, err := p.visible(current, committed)
	if err != nil {
		return NoOffset(), err
	}
	return found(p.log.OffsetForTime(ts, upto))
}

// AtMaxTime is the first record with the largest timestamp.
func (p *Partition) AtMaxTime(current int32, committed bool) (Offset, error) {
	upto, err := p.visible(current, committed)
	if err != nil {
		return NoOffset(), err
	}
	return found(p.log.MaxTimestamp(upto))
}

func found(offset, timestamp int64, epoch int32, ok bool, err error) (Offset, error) {
	if err != nil || !ok {
		return NoOffset(), clientError(err)
	}
	return Offset{Offset: offset, Timestamp: timestamp, Epoch: epoch}, nil
}

// visible returns the end of what the reader may see. A leader whose watermark
// has not reached its epoch's start does not know yet what is committed: it may
// be behind what its predecessor has shown.
func (p *Partition) visible(current int32, committed bool) (int64, error) {
	r, err := p.checkLeader(current)
	if err != nil {
		return 0, err
	}
	hw := p.HighWatermark()
	if _, end := p.log.EpochEnd(r.epoch - 1); end > hw {
		return 0, kerr.OffsetNotAvailable
	}
	if committed {
		return p.stableBelow(hw), nil
	}
	return hw, nil
}

// epochAt is the leader epoch of the record at the offset, or of the one that
// will be there.
func (p *Partition) epochAt(offset int64) int32 {
	if e := p.log.EpochOf(offset); e >= 0 {
		return e
	}
	return p.role.Load().epoch
}

// EpochEnd returns the largest leader epoch that is not above epoch, and the
// offset at which it ends; NoEpoch and -1 if there is none.
func (p *Partition) EpochEnd(current, epoch int32) (found int32, end int64, err error) {
	r, err := p.checkLeader(current)
	if err != nil {
		return NoEpoch, -1, err
	}
	if epoch < 0 || epoch > r.epoch {
		return NoEpoch, -1, nil
	}
	found, end = p.log.EpochEnd(epoch)
	return found, end, nil
}

// StartFor returns the log start that deleting the records before offset makes;
// -1 stands for all committed records.
func (p *Partition) StartFor(offset int64) (int64, error) {
	if _, err := p.Writable(false); err != nil {
		return -1, err
	}
	hw := p.HighWatermark()
	if offset == -1 {
		offset = hw
	}
	if offset < 0 || offset > hw {
		return -1, kerr.OffsetOutOfRange
	}
	return offset, nil
}
