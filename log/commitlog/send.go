package commitlog

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mainstem/mainstem/log/vfs"
)

// Sending from where the bytes lie. What was placed in this opening was checked, and written from memory, a short while ago: while it is
// that new it goes from the page cache to a socket without being read. All else is read and checked, see Pin.
// A page that was sent so may sit in a socket's queue for any time: its file is never written again but behind what was sent, so it is
// removed in the end, not recycled.

// sendFrom is the size from which a payload is sent: to copy a smaller one takes less.
const sendFrom = 32 << 10

// Send sends a payload by fn, which sends n bytes of a file from a position on and returns how many it has sent. It reports false if
// the payload is none to be sent so, which Pin can get. An fn that finds the file closed has to say fs.ErrClosed, and is called again.
func (l *Log) Send(p *Pinned, at Place, fn func(file vfs.Descriptor, from int64, n int) (int, error)) (bool, error) {
	if !l.fresh(at) {
		return false, nil
	}
	s, err := p.acquire(l, at.Segment)
	if err != nil {
		return false, err
	}
	defer l.release(s)
	span := spanIn(s, at)
	_, bad := l.manifest.Load().quarantinedAt(s.id, span.From, span.To)
	if bad || s.kind != kindFrames || s.lsn(span.From) != at.LSN || span.To > s.end.Load() {
		return false, nil // Pin tells what is wrong.
	}
	for n := 0; n < int(at.Size); {
		f, err := l.handle(s)
		if err != nil {
			return false, err
		}
		file, ok := f.(vfs.Descriptor)
		if !ok {
			return false, nil // One of a filesystem that is not the system's.
		}
		s.sent.Store(true)
		sent, err := fn(file, at.Offset+int64(n), int(at.Size)-n)
		n += sent
		if err != nil && !errors.Is(err, fs.ErrClosed) { // Else it was closed to make room for others.
			return false, fmt.Errorf("send from segment %v: %w", s.id, err)
		}
	}
	l.counts.sent.Add(1)
	return true, nil
}

// fresh reports whether a payload is large, written, no longer in the ring, and among the newest of this opening.
func (l *Log) fresh(at Place) bool {
	if at.Size < sendFrom || at.LSN == 0 || at.LSN < l.opened {
		return false
	}
	written := l.Written()
	if at.End() > written || int64(written-at.LSN) > l.o.FreshBytes {
		return false
	}
	_, ok := l.ring.find(at.LSN + frameHeader)
	return !ok
}
