package batch

import "errors"

// DefaultMaxUncompressed bounds what a batch may decompress to where the caller names no bound.
const DefaultMaxUncompressed = 512 << 20

var (
	// ErrTooLarge says that decompressed bytes are more than the limit.
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

// String returns the name as in Kafka's compression.type.
func (c Codec) String() string { panic("skeleton") }

// DefaultLevel returns Kafka's default compression level of the codec.
func (c Codec) DefaultLevel() int { panic("skeleton") }

// Decompress returns the decompressed bytes, at most limit of them.
func Decompress(c Codec, src []byte, limit int) ([]byte, error) { panic("skeleton") }

// Compress appends src, compressed, to dst.
func Compress(c Codec, level int, dst, src []byte) ([]byte, error) { panic("skeleton") }

// Recompress returns the batch with its records compressed by another codec.
func Recompress(b []byte, c Codec, level int) ([]byte, error) { panic("skeleton") }
