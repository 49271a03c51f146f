package queue

import "math"

// Active is the active base: the offset from which on compaction leaves the
// queue alone, moved by the rules by which Kafka rolls a partition's segment.
type Active struct {
	Base           int64
	FirstTimestamp int64 // of the first batch at Base; -1 while there is none
	Bytes          int64 // from Base on
}

// Roll holds the limits of segment.ms and segment.bytes; zero or less: none.
type Roll struct{ Ms, Bytes int64 }

// add counts a batch in, after rolling to it if a limit would be passed.
func (a *Active) add(base, last, timestamp int64, size int64, r Roll) {
	if a.Bytes > 0 && a.full(last, timestamp, size, r) {
		*a = Active{Base: base, FirstTimestamp: -1}
	}
	if a.Bytes == 0 {
		a.Base, a.FirstTimestamp = base, timestamp
	}
	a.Bytes += size
}

// full tells whether Kafka would roll before a batch.
func (a *Active) full(last, timestamp, size int64, r Roll) bool {
	switch {
	case r.Bytes > 0 && a.Bytes+size > r.Bytes:
		return true
	case r.Ms > 0 && timestamp >= 0 && a.FirstTimestamp >= 0 && timestamp-a.FirstTimestamp > r.Ms:
		return true
	default:
		return last-a.Base > math.MaxInt32
	}
}

// moveStart follows the log start.
func (a *Active) moveStart(start int64) {
	if a.Base < start {
		a.Base = start
	}
}

// truncate follows the log end. What is left below the cut counts as rolled.
func (a *Active) truncate(end int64) {
	if a.Base >= end {
		*a = Active{Base: end, FirstTimestamp: -1}
	}
}
