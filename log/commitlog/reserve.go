package commitlog

import (
	"fmt"
)

// Reservation is room in the log for some frames. It is a value: copy it nowhere, place or release it from one goroutine.
type Reservation struct {
	log        *Log
	bytes      int64 // of frames, headers and padding included.
	frames     int
	durability Durability
}

// reserver waits for room, or for the moment at which the open segment can be closed.
type reserver struct {
	seal    bool
	bytes   int64
	frames  int
	class   Class
	granted chan error
}

// Reserve takes room for frames. It is the only call that may wait for room (memory that is not written yet, the next segment, an
// index that is overdue) or refuse: ErrDiskFull, ErrPoisoned, ErrTooLarge, ErrClosed. What was reserved can be placed without waiting.
// Whoever holds a reservation must not wait for another one, nor for a commit.
func (l *Log) Reserve(b Budget) (Reservation, error) {
	frames := max(b.Frames, 1)
	bytes := int64(b.Bytes) + int64(frames)*(frameHeader+frameAlign)
	r := Reservation{log: l, bytes: bytes, frames: frames, durability: b.Durability}
	if b.Bytes < 0 || bytes > int64(l.MaxPayload())+frameHeader+frameAlign || frames > l.o.SegmentEntries {
		return Reservation{}, fmt.Errorf("reserve %d bytes in %d frames: %w", b.Bytes, frames, ErrTooLarge)
	}
	l.mu.Lock()
	var ok bool
	var err error
	if len(l.queue) == 0 {
		ok, err = l.roomLocked(bytes, frames, b.Class)
	}
	if err == nil && !ok {
		err = l.waitRoomLocked(reserver{bytes: bytes, frames: frames, class: b.Class})
	} else if err == nil {
		l.takeRoomLocked(bytes, frames)
	}
	l.mu.Unlock()
	if err != nil {
		return Reservation{}, err
	}
	return r, nil
}

// waitRoomLocked queues up until what is wanted was done. REQUIRES: mu held; it is given up while waiting.
func (l *Log) waitRoomLocked(want reserver) error {
	var w *reserver
	if n := len(l.idleReservers); n > 0 {
		w = l.idleReservers[n-1]
		l.idleReservers = l.idleReservers[:n-1]
	} else {
		w = &reserver{granted: make(chan error, 1)}
	}
	want.granted = w.granted
	*w = want
	l.queue = append(l.queue, w)
	l.grantLocked()
	l.kickLocked() // What fills the ring may have no waiter of its own.
	l.mu.Unlock()
	err := <-w.granted
	l.mu.Lock()
	l.idleReservers = append(l.idleReservers, w)
	return err
}

// grantLocked gives room to those who wait, in their order, as far as there is any. REQUIRES: mu held.
func (l *Log) grantLocked() {
	n := 0
	for _, w := range l.queue {
		var ok bool
		var err error
		if w.seal {
			ok, err = l.sealLocked()
		} else {
			ok, err = l.roomLocked(w.bytes, w.frames, w.class)
		}
		if err == nil && !ok {
			break
		}
		if err == nil && !w.seal {
			l.takeRoomLocked(w.bytes, w.frames)
		}
		w.granted <- err
		n++
	}
	l.queue = l.queue[:copy(l.queue, l.queue[n:])]
}

// roomLocked reports whether frames can be placed for certain, beside all that is reserved already: in the current segment, or all of
// them together in the next one. REQUIRES: mu held.
func (l *Log) roomLocked(bytes int64, frames int, class Class) (bool, error) {
	switch {
	case l.poisoned != nil:
		return false, l.poisoned
	case !l.accept:
		return false, ErrClosed
	case l.opening != nil:
		return false, ErrDiskFull
	case class == Client && l.refused != nil:
		return false, l.refused
	}
	if l.unwritten+l.reservedBytes+bytes > l.usable {
		return false, nil
	}
	bytes, frames = bytes+l.reservedBytes, frames+l.reservedFrames
	if l.cur != nil && l.fitsLocked(bytes, frames) {
		return true, nil
	}
	if len(l.ready) == 0 {
		l.wakeKeeper()
		return false, l.refused // Of those in charge of themselves, only the ones that need a new segment fail.
	}
	if l.o.MaxUnindexed > 0 && l.unindexed >= l.o.MaxUnindexed {
		return false, nil
	}
	if next := l.ready[len(l.ready)-1]; frames <= l.o.SegmentEntries && dataStart+bytes+frameHeader <= next.capacity {
		return true, nil // Smaller ones before it, made on a full disk, are rolled through.
	}
	if l.reservedBytes == 0 {
		return false, l.refused // It needs more than the small segment of a full disk.
	}
	return false, nil
}

// sealLocked closes the open segment, if that leaves a place for all that is reserved. REQUIRES: mu held.
func (l *Log) sealLocked() (bool, error) {
	if l.poisoned != nil {
		return false, l.poisoned
	}
	if l.cur == nil || l.pos == dataStart {
		return true, nil
	}
	if n := len(l.ready); l.reservedBytes > 0 && (n == 0 || dataStart+l.reservedBytes+frameHeader > l.ready[n-1].capacity) {
		return false, nil // What is reserved will be placed or given back, and nothing more is granted meanwhile.
	}
	l.endSegmentLocked()
	return true, nil
}

// fitsLocked reports whether frames fit into the current segment and leave room for its last frame. REQUIRES: mu held.
func (l *Log) fitsLocked(bytes int64, frames int) bool {
	return l.pos+bytes+frameHeader <= l.cur.capacity && l.cur.frames+frames <= l.o.SegmentEntries
}

func (l *Log) takeRoomLocked(bytes int64, frames int) {
	l.reservedBytes += bytes
	l.reservedFrames += frames
}

// Release gives back what was not placed. It may be called again, also after everything was placed.
func (r *Reservation) Release() {
	if r.log == nil || r.frames == 0 {
		return
	}
	l := r.log
	l.mu.Lock()
	l.giveBackLocked(r)
	l.mu.Unlock()
}

// giveBackLocked ends a reservation. REQUIRES: mu held.
func (l *Log) giveBackLocked(r *Reservation) {
	l.reservedBytes -= r.bytes
	l.reservedFrames -= r.frames
	r.bytes, r.frames = 0, 0
	if len(l.queue) > 0 {
		l.grantLocked()
	}
}
