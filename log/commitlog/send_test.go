package commitlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mainstem/mainstem/log/vfs"
)

const sentSize = sendFrom + 100

// sendOptions make a small log in a directory of the system, with three large payloads in a segment, that tells what it freed.
func sendOptions(t *testing.T, freed chan<- bool) Options {
	t.Helper()
	o := smallOptions(vfs.OS())
	o.Dir, o.SegmentBytes, o.RingBytes = t.TempDir(), 104<<10, 64<<10
	o.Events.Freed = func(_ SegmentID, recycled bool) { freed <- recycled }
	return o
}

// fillLarge appends large payloads, from an offset on.
func fillLarge(t *testing.T, l *Log, from, n int64) (places []Place) {
	t.Helper()
	for i := range n {
		at, err := appendBatch(l, PartitionID{}, from+i, sentSize)
		require.NoError(t, err)
		places = append(places, at)
	}
	return places
}

// sent returns what Send sends, a part at a time.
func sent(t *testing.T, l *Log, at Place) (string, bool) {
	t.Helper()
	var p Pinned
	defer p.Release()
	var all []byte
	ok, err := l.Send(&p, at, func(file syscall.Conn, from int64, n int) (int, error) {
		b := make([]byte, min(n, 10_000))
		n, err := file.(io.ReaderAt).ReadAt(b, from)
		all = append(all, b[:n]...)
		return n, err
	})
	require.NoError(t, err)
	return string(all), ok
}

func TestNewPayloadsAreSentFromTheirFiles(t *testing.T) {
	o := sendOptions(t, make(chan bool, 100))
	l, _ := reopen(t, o)
	places := fillLarge(t, l, 0, 10)
	for i, at := range places[:8] {
		got, ok := sent(t, l, at)
		require.True(t, ok)
		require.Equal(t, string(testBatch(int64(i), 3, 1, sentSize, uint64(i))), got)
	}
	_, ok := sent(t, l, places[9])
	require.False(t, ok, "it is in memory")
	small, err := appendBatch(l, PartitionID{}, 10, sendFrom-1)
	require.NoError(t, err)
	fillLarge(t, l, 11, 3)
	_, ok = sent(t, l, small)
	require.False(t, ok)
	require.NoError(t, l.Quarantine(&CorruptError{Span: Span{Segment: places[3].Segment, From: places[3].Offset, To: places[3].Offset + 8}}))
	_, ok = sent(t, l, places[3])
	require.False(t, ok)
	moved := places[4]
	moved.Offset += 8
	_, ok = sent(t, l, moved)
	require.False(t, ok, "no frame begins there")
	require.EqualValues(t, 8, l.Stats().Sent)
	require.NoError(t, l.Close())

	l, _ = reopen(t, o)
	fillLarge(t, l, 14, 6)
	_, ok = sent(t, l, places[0])
	require.False(t, ok, "it is to be checked: who knows what has become of it")
	require.NoError(t, l.Close())
}

func TestOnlyTheNewestPayloadsAreSent(t *testing.T) {
	o := sendOptions(t, make(chan bool, 100))
	o.FreshBytes = 6 * sentSize
	l, _ := reopen(t, o)
	places := fillLarge(t, l, 0, 12)
	_, ok := sent(t, l, places[7])
	require.True(t, ok)
	_, ok = sent(t, l, places[1])
	require.False(t, ok)
	require.NoError(t, l.Close())
}

func TestAFileThatWasClosedIsOpenedAgainForSending(t *testing.T) {
	l, _ := reopen(t, sendOptions(t, make(chan bool, 100)))
	at := fillLarge(t, l, 0, 8)[0]
	var p Pinned
	defer p.Release()
	s, err := l.acquire(at.Segment)
	require.NoError(t, err)
	defer l.release(s)
	var from []int64
	ok, err := l.Send(&p, at, func(_ syscall.Conn, at int64, n int) (int, error) {
		if from = append(from, at); len(from) == 1 {
			return 100, errors.Join(s.closeFile(), fs.ErrClosed)
		}
		return n, nil
	})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []int64{at.Offset, at.Offset + 100}, from)
	broken := errors.New("broken")
	_, err = l.Send(&p, at, func(syscall.Conn, int64, int) (int, error) { return 0, broken })
	require.ErrorIs(t, err, broken)
	require.NoError(t, l.Close())
}

// What was sent may sit in a socket's queue: its pages must not change any more.
func TestAFileOfWhichPartsWereSentIsNeverUsedAgain(t *testing.T) {
	for _, sending := range []bool{false, true} {
		freed := make(chan bool, 100)
		o := sendOptions(t, freed)
		l, _ := reopen(t, o)
		places := fillLarge(t, l, 0, 12)
		if sending {
			_, ok := sent(t, l, places[0])
			require.True(t, ok)
		}
		require.NoError(t, l.Drop([]SegmentID{places[0].Segment}))
		require.Equal(t, !sending, <-freed)
		_, err := os.Stat(filepath.Join(o.Dir, segmentName(places[0].Segment)))
		require.Equal(t, sending, errors.Is(err, fs.ErrNotExist))
		require.NoError(t, l.Close())
	}
}

func TestNothingIsSentFromAFilesystemInMemory(t *testing.T) {
	o := sendOptions(t, make(chan bool, 100))
	o.FS = vfs.NewMem(1)
	l, _ := reopen(t, o)
	at := fillLarge(t, l, 0, 8)[0]
	_, ok := sent(t, l, at)
	require.False(t, ok)
	s, err := l.acquire(at.Segment)
	require.NoError(t, err)
	require.False(t, s.sent.Load())
	l.release(s)
	require.NoError(t, l.Close())
}
