package batch

import (
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Levels of the encoders, as they are told apart in the pools.
const (
	gzipLevels = 11         // -1 (default) to 9.
	lz4Levels  = 10         // Fast, and 1 to 9.
	maxLevels  = gzipLevels // The most of any codec.

	// zstdWindow is what readers must keep of a stream; batches are rarely larger.
	zstdWindow = 2 << 20
	// maxLZ4Level is the highest level of Kafka's compression.lz4.level.
	maxLZ4Level = 17
)

// encoder compresses what is written to it.
type encoder struct {
	io.WriteCloser
	reset func(io.Writer)
}

// encoders are the encoders at rest, by codec and level.
var encoders [Zstd + 1][maxLevels]sync.Pool

// Compress appends src, compressed, to dst. Levels are those of Kafka's compression.<codec>.level. Snappy gets Java's framing.
func Compress(c Codec, level int, dst, src []byte) ([]byte, error) {
	if c == None {
		return append(dst, src...), nil
	}
	out := sink{buf: dst, limit: math.MaxInt}
	w, err := openEncoder(c, level, &out)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	defer w.release()
	if _, err := w.Write(src); err != nil {
		return nil, fmt.Errorf("compress %v: %w", c, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress %v: %w", c, err)
	}
	return out.buf, nil
}

// sink collects bytes up to a limit.
type sink struct {
	buf   []byte
	limit int
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	if len(p) > s.limit-len(s.buf) {
		return 0, ErrTooLarge
	}
	s.buf = append(s.buf, p...)
	return len(p), nil
}

// lentEncoder is an encoder taken from its pool.
type lentEncoder struct {
	*encoder
	pool *sync.Pool
}

// openEncoder takes an encoder that writes to out. It must be released.
func openEncoder(c Codec, level int, out io.Writer) (lentEncoder, error) {
	class, err := levelClass(c, level)
	if err != nil {
		return lentEncoder{}, err
	}
	e := lentEncoder{pool: &encoders[c][class]}
	if e.encoder, _ = e.pool.Get().(*encoder); e.encoder == nil {
		if e.encoder, err = newEncoder(c, class); err != nil {
			return lentEncoder{}, err
		}
	}
	e.reset(out)
	return e, nil
}

// release gives the encoder back, finished or not.
func (e lentEncoder) release() {
	e.reset(io.Discard)
	e.pool.Put(e.encoder)
}

// levelClass returns which encoder serves a level.
func levelClass(c Codec, level int) (int, error) {
	switch c {
	case Gzip:
		if level < gzip.DefaultCompression || level > gzip.BestCompression {
			return 0, fmt.Errorf("gzip level %d is not in -1..9", level)
		}
		return level - gzip.DefaultCompression, nil
	case Snappy:
		return 0, nil
	case LZ4:
		switch {
		case level == LZ4.DefaultLevel():
			return 0, nil // Kafka's default is the fast compressor, all else the one that searches.
		case level < 1 || level > maxLZ4Level:
			return 0, fmt.Errorf("lz4 level %d is not in 1..%d", level, maxLZ4Level)
		}
		return (level*(lz4Levels-1) + maxLZ4Level - 1) / maxLZ4Level, nil
	case Zstd:
		return int(zstd.EncoderLevelFromZstd(level)), nil
	case None:
		return 0, ErrCodec
	default:
		return 0, ErrCodec
	}
}

func newEncoder(c Codec, class int) (*encoder, error) {
	switch c {
	case Gzip:
		w, err := gzip.NewWriterLevel(nil, class+gzip.DefaultCompression)
		if err != nil {
			return nil, err
		}
		return &encoder{WriteCloser: w, reset: w.Reset}, nil
	case Snappy:
		w := new(snappyWriter)
		return &encoder{WriteCloser: w, reset: w.reset}, nil
	case LZ4:
		w := lz4.NewWriter(nil)
		// As Kafka writes them: Java's reader takes independent blocks only.
		err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1),
			lz4.CompressionLevelOption(lz4Level(class)))
		if err != nil {
			return nil, err
		}
		return &encoder{WriteCloser: w, reset: w.Reset}, nil
	case Zstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(class)), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow))
		if err != nil {
			return nil, err
		}
		return &encoder{WriteCloser: w, reset: w.Reset}, nil
	case None:
		return nil, ErrCodec
	default:
		return nil, ErrCodec
	}
}

// lz4Level returns the library's level of a class.
func lz4Level(class int) lz4.CompressionLevel {
	if class == 0 {
		return lz4.Fast
	}
	return lz4.CompressionLevel(1 << (8 + class)) // Level1 is 1<<9, and so on.
}
