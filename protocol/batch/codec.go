package batch

import (
	"errors"
	"fmt"
)

// DefaultMaxUncompressed bounds what a batch may decompress to where the caller names no bound.
const DefaultMaxUncompressed = 512 << 20

var (
	// ErrTooLarge says that bytes, decompressed or compressed anew, are more than the limit.
	ErrTooLarge = errors.New("records are larger than the limit")
	// ErrCodec says that there is no such codec.
	ErrCodec = errors.New("unknown compression codec")
	// ErrUndecodable says that the bytes are not what the codec writes.
	ErrUndecodable = errors.New("records cannot be decompressed")
)

// Codec is a compression codec, as in the attributes of a batch.
type Codec int8

// The codecs.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String returns the codec's name in Kafka's compression.type.
func (c Codec) String() string {
	switch c {
	case None:
		return "uncompressed"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	default:
		return fmt.Sprintf("codec %d", int8(c))
	}
}

// Known reports whether there is such a codec.
func (c Codec) Known() bool { return c >= None && c <= Zstd }

// DefaultLevel returns Kafka's default of compression.<codec>.level; 0 for a codec without levels.
func (c Codec) DefaultLevel() int {
	switch c {
	case Gzip:
		return -1
	case LZ4:
		return 9
	case Zstd:
		return 3
	case None, Snappy:
		return 0
	default:
		return 0
	}
}

// firstGuess is the most that Decompress takes at first; it grows as bytes really come.
const firstGuess = 1 << 20

// Decompress returns the decompressed bytes, or ErrTooLarge when they are more than limit. Without compression they are src
// itself. Bytes that the codec did not write are ErrUndecodable.
func Decompress(c Codec, src []byte, limit int) ([]byte, error) {
	if c == None {
		if len(src) > limit {
			return nil, ErrTooLarge
		}
		return src, nil
	}
	s, err := openStream(c, src, limit)
	if err != nil {
		return nil, fmt.Errorf("decompress %v: %w", c, err)
	}
	defer s.close()
	out := make([]byte, 0, min(limit, 4*len(src)+512, firstGuess))
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, f := s.read(out[len(out):cap(out)])
		if f != sound {
			return nil, fmt.Errorf("decompress %v: %w", c, f)
		}
		if n == 0 {
			return out, nil
		}
		out = out[:len(out)+n]
	}
}
