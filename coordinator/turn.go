package coordinator

import "time"

// Turn is one step of a machine. It is valid until the step returns.
type Turn struct {
	now     time.Time
	journal Journal
	timers  *timers
	// What the turns since the last flush have appended and promised.
	records []Record
	bytes   int
	settles []settler
	// end is the end of what was handed to the journal.
	end int64
	// err is why the journal refused a write: the shard must resign.
	err error
}

// settler is told when everything before it is committed, or why it is not.
type settler interface{ settle(err error) }

type settlerFunc func(err error)

func (f settlerFunc) settle(err error) { f(err) }

// Now is the time of the turn.
func (t *Turn) Now() time.Time { return t.now }

// NowMillis is the time of the turn in milliseconds since 1970.
func (t *Turn) NowMillis() int64 { return t.now.UnixMilli() }

// Append appends a record; a nil value is a tombstone. The machine has made the
// change that the record tells of, or makes it in this turn.
func (t *Turn) Append(key, value []byte) {
	t.records = append(t.records, Record{key, value})
	if t.bytes += len(key) + len(value); t.bytes >= maxBatch {
		_ = t.flush() // What it says stays in t.err.
	}
}

// AppendTxn appends records that count once the producer's transaction has ended
// well. An error says that the producer may not: the machine leaves its state as it
// was, and the client is to abort.
func (t *Turn) AppendTxn(p Producer, records ...Record) error {
	if err := t.flush(); err != nil {
		return clientError(err)
	}
	for len(records) > 0 {
		n, bytes := 0, 0
		for n < len(records) && bytes < maxBatch {
			bytes += len(records[n].Key) + len(records[n].Value)
			n++
		}
		end, err := t.journal.Append(records[:n], &p, t.NowMillis())
		if err := t.appended(end, err); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// AppendMarker appends the end of a transaction. An error says that its
// coordinator or producer is fenced: nothing was appended.
func (t *Turn) AppendMarker(m Marker) error {
	if err := t.flush(); err != nil {
		return clientError(err)
	}
	end, err := t.journal.AppendMarker(m, t.NowMillis())
	return t.appended(end, err)
}

// appended notes the end of a write. What only the producer is to blame for does
// not make the shard resign.
func (t *Turn) appended(end int64, err error) error {
	switch {
	case err == nil:
		t.end = end
	case !refusesProducer(err):
		t.err = err
		return clientError(err)
	}
	return err
}

// Reply has fn called once everything that was appended so far is committed;
// err is why it is not. fn runs outside of the machine's turns.
func (t *Turn) Reply(fn func(err error)) { t.settles = append(t.settles, settlerFunc(fn)) }

// Set has the timer go off at a time, instead of when it was set to before. A
// time that is over means the next turn.
func (t *Turn) Set(x *Timer, at time.Time) { t.timers.set(x, at) }

// Stop has the timer not go off.
func (t *Turn) Stop(x *Timer) { t.timers.stop(x) }

// flush hands what was appended to the journal.
func (t *Turn) flush() error {
	if t.err != nil || len(t.records) == 0 {
		return t.err
	}
	end, err := t.journal.Append(t.records, nil, t.NowMillis())
	clear(t.records)
	t.records, t.bytes = t.records[:0], 0
	if err != nil {
		t.err = err
		return err
	}
	t.end = end
	return nil
}
