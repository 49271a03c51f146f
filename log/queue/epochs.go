package queue

import "sort"

// EpochStart is the offset at which a leader epoch began.
type EpochStart struct {
	Epoch int32
	Start int64
}

// Epochs are the leader epochs of a queue: both epochs and starts rise.
type Epochs struct {
	starts []EpochStart
	latest int32 // highest ever begun; never falls, unlike starts
}

// newEpochs returns epochs of which none was begun.
func newEpochs() Epochs { return Epochs{latest: -1} }

// Latest returns the highest epoch ever begun, -1 if none.
func (e *Epochs) Latest() int32 { return e.latest }

// Assign begins an epoch at an offset. An epoch that is not above the latest
// start's changes nothing; one without records is replaced.
func (e *Epochs) Assign(epoch int32, start int64) {
	e.latest = max(e.latest, epoch)
	if n := len(e.starts); n > 0 {
		if epoch <= e.starts[n-1].Epoch {
			return
		}
		for n > 0 && e.starts[n-1].Start >= start {
			n--
		}
		e.starts = e.starts[:n]
	}
	e.starts = append(e.starts, EpochStart{epoch, start})
}

// End returns the largest known epoch that is not above epoch and the offset
// at which it ends, which is logEnd for the last one; -1, -1 if there is none.
func (e *Epochs) End(epoch int32, logEnd int64) (found int32, end int64) {
	i := sort.Search(len(e.starts), func(i int) bool { return e.starts[i].Epoch > epoch })
	if i == 0 {
		return -1, -1
	}
	if i == len(e.starts) {
		return e.starts[i-1].Epoch, logEnd
	}
	return e.starts[i-1].Epoch, e.starts[i].Start
}

// Of returns the epoch of an offset, -1 if it is not known.
func (e *Epochs) Of(offset int64) int32 {
	i := sort.Search(len(e.starts), func(i int) bool { return e.starts[i].Start > offset })
	if i == 0 {
		return -1
	}
	return e.starts[i-1].Epoch
}

// truncate forgets the epochs that begin at or above the new end.
func (e *Epochs) truncate(end int64) {
	n := len(e.starts)
	for n > 0 && e.starts[n-1].Start >= end {
		n--
	}
	e.starts = e.starts[:n]
}

// moveStart forgets the epochs that end at or below the new log start.
func (e *Epochs) moveStart(start int64) {
	n := 0
	for n+1 < len(e.starts) && e.starts[n+1].Start <= start {
		n++
	}
	if n > 0 {
		e.starts = append([]EpochStart(nil), e.starts[n:]...)
	}
	if len(e.starts) > 0 && e.starts[0].Start < start {
		e.starts[0].Start = start
	}
}

// Starts returns the epochs and where they began. The slice is not to be changed.
func (e *Epochs) Starts() []EpochStart { return e.starts }
