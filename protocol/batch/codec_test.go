package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestEveryCodecAndLevelRoundTrips(t *testing.T) {
	levels := map[Codec][]int{
		None: {0}, Snappy: {0}, Gzip: {-1, 0, 1, 5, 9}, LZ4: {1, 2, 8, 9, 10, 17}, Zstd: {-131072, -1, 0, 1, 3, 9, 22},
	}
	for c, ls := range levels {
		for _, level := range ls {
			for _, size := range []int{0, 1, 100, xerialBlock, xerialBlock + 1, 300_000} {
				src := mixed(size)
				packed, err := Compress(c, level, []byte("prefix"), src)
				require.NoError(t, err, "%v level %d", c, level)
				require.Equal(t, "prefix", string(packed[:6]))
				got, err := Decompress(c, packed[6:], size)
				require.NoError(t, err, "%v level %d size %d", c, level, size)
				require.Equal(t, string(src), string(got))
				if size > 0 {
					_, err = Decompress(c, packed[6:], size-1)
					require.ErrorIs(t, err, ErrTooLarge, "%v", c)
				}
			}
		}
	}
}

func TestHigherLevelsSaveMore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var src []byte
	for len(src) < 500_000 {
		src = fmt.Appendf(src, `{"user":%d,"name":"n%x","ok":true}`, rng.IntN(5000), rng.IntN(1<<20))
	}
	for c, pair := range map[Codec][2]int{Gzip: {1, 9}, LZ4: {9, 17}, Zstd: {1, 19}} {
		low, err := Compress(c, pair[0], nil, src)
		require.NoError(t, err)
		high, err := Compress(c, pair[1], nil, src)
		require.NoError(t, err)
		require.Less(t, len(high), len(low), c)
	}
}

func TestLevelsOutOfBoundsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		c     Codec
		level int
	}{{Gzip, -2}, {Gzip, 10}, {LZ4, 0}, {LZ4, 18}} {
		_, err := Compress(tc.c, tc.level, nil, []byte("x"))
		require.Error(t, err, "%v %d", tc.c, tc.level)
	}
}

func TestUnknownCodecs(t *testing.T) {
	for _, c := range []Codec{-1, 5, 7, 100} {
		require.False(t, c.Known())
		_, err := Decompress(c, []byte("x"), 10)
		require.ErrorIs(t, err, ErrCodec)
		_, err = Compress(c, 0, nil, []byte("x"))
		require.ErrorIs(t, err, ErrCodec)
		require.Equal(t, fmt.Sprintf("codec %d", int8(c)), c.String())
		require.Zero(t, c.DefaultLevel())
	}
	names := ""
	for _, c := range allCodecs {
		names += c.String() + " "
	}
	require.Equal(t, "uncompressed gzip snappy lz4 zstd ", names)
}

func TestCodecsAgreeWithFranzGo(t *testing.T) {
	kinds := map[Codec]kgo.CompressionCodec{
		Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(), LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression(),
	}
	for c, kind := range kinds {
		src := mixed(100_000)
		theirs, err := kgo.DefaultCompressor(kind)
		require.NoError(t, err)
		packed, codec := theirs.Compress(new(bytes.Buffer), src)
		require.EqualValues(t, c, codec)
		got, err := Decompress(c, packed, len(src))
		require.NoError(t, err)
		require.Equal(t, string(src), string(got))

		ours, err := Compress(c, c.DefaultLevel(), nil, src)
		require.NoError(t, err)
		got, err = kgo.DefaultDecompressor().Decompress(ours, codec)
		require.NoError(t, err)
		require.Equal(t, string(src), string(got))
	}
}

// xerial frames blocks as snappy-java does.
func xerial(blocks ...[]byte) []byte {
	b := []byte(xerialMagic)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, 1)
	for _, block := range blocks {
		block = s2.EncodeSnappy(nil, block)
		b = binary.BigEndian.AppendUint32(b, uint32(len(block)))
		b = append(b, block...)
	}
	return b
}

func TestBothFormsOfSnappyAreRead(t *testing.T) {
	src := mixed(100_000)
	for name, packed := range map[string][]byte{
		"raw":         s2.EncodeSnappy(nil, src),
		"xerial":      xerial(src[:50], src[50:70_000], nil, src[70_000:]),
		"two streams": append(xerial(src[:50_000]), xerial(src[50_000:])...),
	} {
		got, err := Decompress(Snappy, packed, len(src))
		require.NoError(t, err, name)
		require.Equal(t, string(src), string(got), name)
	}
	got, err := Decompress(Snappy, xerial(), 10)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestSnappyThatLiesIsRefusedBeforeMemoryIsTaken(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<30)
	huge = append(huge, 0, 'x')
	newer := xerial([]byte("x"))
	putInt32(newer, len(xerialMagic)+4, 2)
	for name, src := range map[string][]byte{
		"empty":             nil,
		"claims 1 GiB":      huge,
		"claims 1 GiB, xer": append(xerial(), append([]byte{0, 0, 0, byte(len(huge))}, huge...)...),
		"cut length":        append(xerial([]byte("abc")), 0, 0),
		"cut block":         append(xerial(), 0, 0, 0, 50, 1),
		"length 2^32-1":     append(xerial(), 0xff, 0xff, 0xff, 0xff, 1),
		"newer version":     newer,
		"repeat tag of s2":  {8, 0, 'x', 0x01 | 3<<2, 0},
		"junk":              []byte("junk junk junk"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decompress(Snappy, src, 2<<30)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrUndecodable, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), name)
	}
}

func TestBytesThatNoCodecWroteAreUndecodable(t *testing.T) {
	for _, c := range allCodecs[1:] {
		good, err := Compress(c, c.DefaultLevel(), nil, mixed(10_000))
		require.NoError(t, err)
		for name, src := range map[string][]byte{
			"junk": []byte("this was not compressed at all"),
			"cut":  good[:len(good)-6],
		} {
			_, err = Decompress(c, src, 1<<20)
			require.ErrorIs(t, err, ErrUndecodable, "%v %s", c, name)
		}
		// A decoder that failed is used again.
		got, err := Decompress(c, good, 1<<20)
		require.NoError(t, err, c)
		require.Equal(t, string(mixed(10_000)), string(got))
	}
}

func TestFramesOfOtherWritersAreRead(t *testing.T) {
	src := mixed(200_000)
	write := func(w io.WriteCloser, buf *bytes.Buffer) []byte {
		_, err := w.Write(src)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return buf.Bytes()
	}
	check := func(name string, c Codec, packed []byte, want []byte) {
		got, err := Decompress(c, packed, len(want))
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(want, got), name)
	}
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	packed := bytes.Clone(write(gz, &buf))
	check("two gzip members", Gzip, append(bytes.Clone(packed), packed...), append(bytes.Clone(src), src...))

	for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
		buf.Reset()
		w := lz4.NewWriter(&buf)
		require.NoError(t, w.Apply(lz4.BlockSizeOption(size), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true)))
		check("lz4 "+size.String(), LZ4, write(w, &buf), src)
	}
	for _, window := range []int{1 << 10, 8 << 20, 16 << 20, 128 << 20} {
		buf.Reset()
		w, err := zstd.NewWriter(&buf, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
		require.NoError(t, err)
		check(fmt.Sprint("zstd window ", window), Zstd, write(w, &buf), src)
	}
	single, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	big := bytes.Repeat(src, 100)
	check("zstd single segment of 20 MB", Zstd, single.EncodeAll(big, nil), big)

	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(512<<20), zstd.WithSingleSegment(false), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	buf.Reset()
	wide.Reset(&buf)
	_, err = Decompress(Zstd, write(wide, &buf), len(src))
	require.ErrorIs(t, err, ErrUndecodable, "a window that no client of Kafka uses")
	require.True(t, wideMu.TryLock(), "it was given back")
	wideMu.Unlock()
}

// bomb returns a batch with one record whose value is size zeros, made without holding them.
func bomb(t testing.TB, size int) []byte {
	t.Helper()
	prefix := raw(attrs, 0, 0, -1, size)
	records := append(appendVarint(nil, int64(len(prefix)+size+1)), prefix...)
	var out bytes.Buffer
	out.Write(make([]byte, HeaderLen))
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	_, err = w.Write(records)
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for n := 0; n < size; n += len(zeros) {
		_, err = w.Write(zeros)
		require.NoError(t, err)
	}
	_, err = w.Write([]byte{0})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	b := out.Bytes()
	seal(b, Header{Magic: magic2, Attributes: int16(Zstd), NumRecords: 1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1})
	return b
}

func TestAZstdBombTakesNoMemory(t *testing.T) {
	big, legal := bomb(t, 1<<30), bomb(t, 256<<20)
	require.Less(t, len(big), 256<<10)
	run := func(b []byte) error {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := Validate(b, Checks{})
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
		return err
	}
	requireKind(t, ErrInvalidRecord, run(big))
	require.NoError(t, run(legal), "Kafka accepts this one")
	_, _, found, err := FindTimestamp(legal, 1, 0)
	require.NoError(t, err)
	require.False(t, found)
	_, err = Recompression{Codec: None, Limit: 1 << 20}.Apply(legal)
	require.ErrorIs(t, err, ErrTooLarge)
}
