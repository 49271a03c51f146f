package batch

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// streamWindow is how much of a decompressed stream is at hand at once.
const streamWindow = 64 << 10

// maxPooledWindow is the largest zstd window that a pooled decoder allows; it is what the format asks every decoder to bear.
// Frames with a larger one, up to maxWindow as in Kafka, are decoded one at a time.
const (
	maxPooledWindow = 8 << 20
	maxWindow       = 128 << 20
)

// stream decompresses the records of one batch after the other, into a window.
type stream struct {
	codec  Codec
	input  []byte
	in     bytes.Reader
	src    io.Reader
	reset  func(in *bytes.Reader) error
	buf    [streamWindow]byte
	total  int // Bytes read since open.
	limit  int
	ended  bool
	failed fault
	wide   bool // The zstd frame's window is too large for the pool.
	// yields says that the caller's code runs between reads, so that wideMu must not be held.
	yields bool
}

// streams are the decoders at rest, by codec.
var streams [Zstd + 1]sync.Pool

// wideMu lets one zstd stream with a large window run at a time, so that such windows cannot add up.
var wideMu sync.Mutex

// openStream starts to decompress src, which stays untouched, up to limit bytes. The stream must be closed.
func openStream(c Codec, src []byte, limit int) (*stream, error) {
	if c <= None || c > Zstd {
		return nil, ErrCodec
	}
	s, _ := streams[c].Get().(*stream)
	if s == nil {
		s = newStream(c)
	}
	s.input = src
	s.in.Reset(src)
	s.total, s.limit, s.ended, s.failed, s.yields = 0, limit, false, sound, false
	if err := s.reset(&s.in); err != nil {
		s.failed = decodeFault(err)
	}
	return s, nil
}

func newStream(c Codec) *stream {
	s := &stream{codec: c}
	switch c {
	case Gzip:
		r := new(gzip.Reader)
		s.src, s.reset = r, func(in *bytes.Reader) error { return r.Reset(in) }
	case Snappy:
		r := new(snappyReader)
		s.src, s.reset = r, func(*bytes.Reader) error { return r.open(s.input, s.limit) }
	case LZ4:
		r := lz4.NewReader(nil)
		s.src, s.reset = r, func(in *bytes.Reader) error { r.Reset(in); return nil }
	case Zstd:
		s.useZstd(maxPooledWindow)
	}
	return s
}

// useZstd gives the stream a zstd decoder.
func (s *stream) useZstd(window uint64) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		panic("BUG: zstd decoder options: " + err.Error())
	}
	s.src, s.reset = r, func(in *bytes.Reader) error { return r.Reset(in) }
}

// close gives the decoder back.
func (s *stream) close() {
	s.input = nil
	s.in.Reset(nil)
	if s.wide {
		if !s.yields {
			wideMu.Unlock()
		}
		return // The decoder holds a large window, so it is not kept.
	}
	streams[s.codec].Put(s)
}

// read reads decompressed bytes. It counts them and refuses more than the limit.
func (s *stream) read(p []byte) (int, fault) {
	for s.failed == sound && !s.ended {
		n, err := s.src.Read(p[:min(len(p), s.limit-s.total+1)])
		s.total += n
		switch {
		case s.total > s.limit:
			s.failed = faultTooLarge
		case err == io.EOF:
			s.ended = true
		case err != nil && s.widen(err):
		case err != nil:
			s.failed = decodeFault(err)
		}
		if n > 0 && s.failed == sound {
			return n, sound
		}
	}
	return 0, s.failed
}

// widen starts again with a decoder that allows a large window, if that was what failed.
func (s *stream) widen(err error) bool {
	if s.codec != Zstd || s.wide || s.total > 0 ||
		!(errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded)) {
		return false
	}
	if !s.yields {
		wideMu.Lock()
	}
	s.wide = true
	s.useZstd(maxWindow)
	if _, err := s.in.Seek(0, io.SeekStart); err != nil {
		return false
	}
	return s.reset(&s.in) == nil
}

func decodeFault(err error) fault {
	if errors.Is(err, ErrTooLarge) {
		return faultTooLarge
	}
	return faultUndecodable
}

// fill moves rest, the end of the window, to its start and reads until n bytes are there or the stream ends.
func (s *stream) fill(rest []byte, n int) ([]byte, fault) {
	have := copy(s.buf[:], rest)
	for have < n {
		k, f := s.read(s.buf[have:])
		if f != sound {
			return nil, f
		}
		if k == 0 {
			break
		}
		have += k
	}
	return s.buf[:have], sound
}
