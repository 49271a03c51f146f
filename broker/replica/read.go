package replica

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/log"
)

// Position is where a reader is in a partition, and what it knows of it.
type Position struct {
	Offset int64
	// CurrentEpoch is the leader epoch that the reader has seen, or NoEpoch.
	CurrentEpoch int32
	// LastEpoch is the epoch of the record before Offset, or NoEpoch.
	LastEpoch int32
	// Committed readers see nothing of open transactions.
	Committed bool
}

// View is what a reader would meet at its position.
type View struct {
	HighWatermark, LastStable, Start int64
	// Upto bounds what may be read.
	Upto int64
	// Diverging says that the reader's log and this one part at Epoch and End:
	// nothing can be read before it has cut its own.
	Diverging bool
	Epoch     int32
	End       int64
}

// View checks a reader's position. It takes no lock and reads no file.
func (p *Partition) View(at Position) (View, error) {
	r, err := p.checkLeader(at.CurrentEpoch)
	if err != nil {
		return View{}, err
	}
	// The start is read first: it may pass the end of what is read later, never
	// the other way round.
	v := View{Start: p.log.Start(), HighWatermark: p.HighWatermark()}
	v.LastStable = p.stableBelow(v.HighWatermark)
	if v.Upto = v.HighWatermark; at.Committed {
		v.Upto = v.LastStable
	}
	if at.LastEpoch != NoEpoch {
		epoch, end := p.log.EpochEnd(at.LastEpoch)
		if at.LastEpoch > r.epoch || epoch == NoEpoch || at.Offset < v.Start {
			return View{}, kerr.OffsetOutOfRange
		}
		if epoch < at.LastEpoch || end < at.Offset {
			v.Diverging, v.Epoch, v.End = true, epoch, end
			return v, nil
		}
	}
	if at.Offset < v.Start || at.Offset > p.log.End() {
		return View{}, kerr.OffsetOutOfRange
	}
	return v, nil
}

// Available returns how many bytes a read from offset would find below upto, at
// most limit.
func (p *Partition) Available(offset, upto int64, limit int) int {
	if offset >= upto {
		return 0
	}
	return p.log.Available(offset, upto, limit)
}

// Read returns whole batches from the one that holds offset, none at or beyond
// upto, which is from a View. With atLeastOne the first batch may exceed limit.
// The result is nil if there is nothing.
func (p *Partition) Read(offset, upto int64, limit int, atLeastOne bool) (*log.Batches, error) {
	return p.Stream(offset, upto, limit, atLeastOne, math.MaxInt)
}

// Stream is Read, but of the batches only the first are there now, see
// log.Partition.Stream.
func (p *Partition) Stream(offset, upto int64, limit int, atLeastOne bool, now int) (*log.Batches, error) {
	if offset >= upto {
		return nil, nil
	}
	b, err := p.log.Stream(offset, upto, limit, atLeastOne, now)
	if err != nil {
		return nil, clientError(err)
	}
	return b, nil
}

// Aborted returns the aborted transactions of which a reader of [from, to) meets
// records, by first offset.
func (p *Partition) Aborted(from, to int64) []log.AbortedTxn {
	return p.log.Aborted(from, to)
}
