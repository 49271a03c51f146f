package fieldcases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

func good(value string) []byte { return frames.NewBatch(frames.Values(value)...).Seal() }

// spoilt is a batch of two records with one thing wrong.
type spoilt struct {
	name    string
	version int16 // of Produce; 9 where it does not matter
	batch   []byte
	code    int16
	whole   bool // the request cannot be taken apart: every partition is refused
}

func spoiltBatches() []spoilt {
	with := func(edit func(*frames.Batch)) []byte {
		b := frames.NewBatch(frames.Values("a", "b")...)
		edit(b)
		return b.Seal()
	}
	bytesOf := func(edit func(raw []byte) []byte) []byte { return edit(with(func(*frames.Batch) {})) }
	length := func(by int32) []byte {
		return bytesOf(func(raw []byte) []byte {
			binary.BigEndian.PutUint32(raw[8:], uint32(int32(binary.BigEndian.Uint32(raw[8:]))+by))
			return frames.Checksummed(raw)
		})
	}
	return []spoilt{
		{"no batch", 9, []byte{}, 87, false},
		{"two batches", 9, append(good("a"), good("b")...), 87, false},
		{"base offset 1", 9, with(func(b *frames.Batch) { b.FirstOffset = 1 }), 87, false},
		{"record count 0", 9, with(func(b *frames.Batch) { b.NumRecords = 0 }), 87, false},
		{"record count -1", 9, with(func(b *frames.Batch) { b.NumRecords = -1 }), 87, false},
		{"record count 3 of 2", 9, with(func(b *frames.Batch) { b.NumRecords, b.LastOffsetDelta = 3, 2 }), 87, false},
		{"last offset delta 2 of 2 records", 9, with(func(b *frames.Batch) { b.LastOffsetDelta = 2 }), 87, false},
		{"last offset delta -1", 9, with(func(b *frames.Batch) { b.LastOffsetDelta = -1 }), 87, false},
		{"control bit", 9, with(func(b *frames.Batch) { b.Attributes = 1 << 5 }), 87, false},
		{"producer id without a sequence", 9, with(func(b *frames.Batch) { b.ProducerID, b.ProducerEpoch = 1, 0 }), 87, false},
		{"checksum", 9, bytesOf(func(raw []byte) []byte { raw[17] ^= 1; return raw }), 2, false},
		{"value changed under way", 9, bytesOf(func(raw []byte) []byte { raw[len(raw)-2] ^= 1; return raw }), 2, false},
		{"zstd before version 7", 6, with(func(b *frames.Batch) { b.Codec = 4 }), 76, false},
		{"codec 5", 9, with(func(b *frames.Batch) { b.Attributes = 5 }), 87, false},
		{"codec 7", 9, with(func(b *frames.Batch) { b.Attributes = 7 }), 87, false},
		{"gzip bit on plain bytes", 9, with(func(b *frames.Batch) { b.Attributes = 1 }), 87, false},
		{"lz4 bit on plain bytes", 9, with(func(b *frames.Batch) { b.Attributes = 3 }), 87, false},
		{"length one too long", 9, length(1), 87, false},
		{"length one too short", 9, length(-1), 2, false},
		{"magic 0", 9, bytesOf(func(raw []byte) []byte { raw[16] = 0; return raw }), 87, false},
		{"magic 1", 9, bytesOf(func(raw []byte) []byte { raw[16] = 1; return raw }), 87, false},
		{"magic 3", 9, bytesOf(func(raw []byte) []byte { raw[16] = 3; return frames.Checksummed(raw) }), 2, true},
		{"negative length", 9, bytesOf(func(raw []byte) []byte { raw[8] = 0x80; return raw }), 2, true},
		{"junk", 9, bytes.Repeat([]byte{0x55}, 100), 2, true},
	}
}

// TestSpoiltBatchesAreRefusedAlone is O-PR-1: a batch whose header and content
// disagree is refused, other partitions of the request are appended, and no
// offset is used up.
func TestSpoiltBatchesAreRefusedAlone(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(2, "t")
	var appended []string
	for i, s := range spoiltBatches() {
		mark := fmt.Sprint("good ", i)
		resp := frames.Ask[*kmsg.ProduceResponse](c, frames.Produce(s.version, -1, "t", s.batch, good(mark)))
		bad, fine := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
		assert.Equal(t, s.code, bad.ErrorCode, s.name)
		assert.EqualValues(t, -1, bad.BaseOffset, s.name)
		if s.whole {
			assert.Equal(t, s.code, fine.ErrorCode, s.name)
		} else {
			assert.Zero(t, fine.ErrorCode, s.name)
			appended = append(appended, mark)
		}
		require.Zero(t, c.End("t", 0), s.name)
	}
	for i := range 3 {
		require.EqualValues(t, i, c.MustAppend("t", 0, good(fmt.Sprint("after ", i))))
	}
	assert.Equal(t, []string{"after 0", "after 1", "after 2"}, c.ReadAll("t", 0, 0))
	assert.Equal(t, appended, c.ReadAll("t", 1, 0))
}

// TestNullRecordsAreAnswered is the part of O-PR-1 where Kafka never answers.
func TestNullRecordsAreAnswered(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	req := frames.Produce(9, -1, "t", []byte{})
	req.Topics[0].Partitions[0].Records = nil
	assert.EqualValues(t, 87, frames.Ask[*kmsg.ProduceResponse](c, req).Topics[0].Partitions[0].ErrorCode)
	c.MustAppend("t", 0, good("v"))
}

// lyingRecord is a record whose inner lengths claim more than is there.
type lyingRecord struct {
	name string
	raw  []byte
}

func lyingRecords() []lyingRecord {
	record := func(body ...byte) []byte {
		return append(binary.AppendVarint(nil, int64(len(body))), body...)
	}
	// Attributes, timestamp delta, offset delta; then key, value, headers.
	start := []byte{0, 0, 0}
	with := func(fields ...[]byte) []byte {
		return record(append(bytes.Clone(start), bytes.Join(fields, nil)...)...)
	}
	n := func(v int64) []byte { return binary.AppendVarint(nil, v) }
	value := append(n(1), 'v')
	return []lyingRecord{
		{"200,000,000 headers", with(n(-1), value, n(200_000_000))},
		{"-1 headers", with(n(-1), value, n(-1))},
		{"record length 2^31-1", append(n(1<<31-1), with(n(-1), value, n(0))[1:]...)},
		{"record length -5", append(n(-5), with(n(-1), value, n(0))[1:]...)},
		{"key length -5", with(n(-5), value, n(0))},
		{"key length 2^31-1", with(n(1<<31-1), value, n(0))},
		{"value past the end", with(n(-1), n(100), []byte("v"), n(0))},
		{"header without a key", with(n(-1), value, n(1), n(-1), n(0))},
		{"header value past the end", with(n(-1), value, n(1), append(n(1), 'h'), n(1<<30))},
		{"bytes behind the record's end", with(n(-1), value, n(0), []byte("more"))},
	}
}

// TestClaimsInsideRecordsAreRefused is O-PR-2: one stored record must not be able
// to take a broker down whenever it is read.
func TestClaimsInsideRecordsAreRefused(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	c.MustAppend("t", 0, good("first"))
	before := memoryOf(t, node)
	for codec, name := range frames.Codecs {
		for _, lie := range lyingRecords() {
			b := frames.NewBatch(frames.Values("v")...)
			b.Records, b.Codec = lie.raw, codec
			assert.EqualValues(t, 87, c.Append("t", 0, b.Seal()).ErrorCode, "%s, %s", name, lie.name)
		}
	}
	after := memoryOf(t, node)
	assert.Less(t, after.resident-before.resident, 64<<20)
	require.EqualValues(t, 1, c.MustAppend("t", 0, good("last")))
	assert.Equal(t, []string{"first", "last"}, c.ReadAll("t", 0, 0))
	assert.EqualValues(t, 0, c.Offset("t", 0, 1).Offset, "a time query reads the batches")
}

// zstdZeros is a record of n zero bytes, compressed as a stream.
func zstdZeros(t *testing.T, n int64) []byte {
	t.Helper()
	head := binary.AppendVarint([]byte{0, 0, 0}, -1)
	head = binary.AppendVarint(head, n)
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	_, err = w.Write(append(binary.AppendVarint(nil, int64(len(head))+n+1), head...))
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for range n >> 20 {
		_, err = w.Write(zeros)
		require.NoError(t, err)
	}
	_, err = w.Write([]byte{0}) // No headers.
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestBombsDoNotFillMemory is the rest of O-PR-2: a few KiB that decompress to
// 256 MiB are a batch like any other, 1 GiB is refused, and neither is unfolded
// in memory.
func TestBombsDoNotFillMemory(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	c.MustAppend("t", 0, good("first"))
	before := memoryOf(t, node)
	for _, bomb := range []struct {
		bytes int64
		code  int16
	}{{1 << 30, 87}, {256 << 20, 0}} {
		b := frames.NewBatch(frames.Values("v")...)
		b.Records, b.Attributes = zstdZeros(t, bomb.bytes), 4
		raw := b.Seal()
		require.Less(t, len(raw), 256<<10)
		assert.Equal(t, bomb.code, c.Append("t", 0, raw).ErrorCode, "%d MiB of zeros in %d KiB", bomb.bytes>>20, len(raw)>>10)
	}
	later := frames.NewBatch(frames.Values("later")...)
	later.FirstTimestamp, later.MaxTimestamp = later.FirstTimestamp+5, later.MaxTimestamp+5
	require.EqualValues(t, 2, c.MustAppend("t", 0, later.Seal()))
	assert.EqualValues(t, 2, c.Offset("t", 0, later.FirstTimestamp).Offset, "a time query passes over it")
	fetched := frames.Ask[*kmsg.FetchResponse](c, frames.Fetch("t", 1)).Topics[0].Partitions[0]
	batches, err := frames.Decode(fetched.RecordBatches)
	require.NoError(t, err)
	assert.Len(t, batches, 2, "and it is served")
	after := memoryOf(t, node)
	assert.Less(t, after.resident-before.resident, 64<<20)
}

// TestRecordsWithoutKeyInCompactedTopics is O-PR-3: refused as a whole, with the
// places of the offenders where the version has room for them.
func TestRecordsWithoutKeyInCompactedTopics(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "plain")
	batch := frames.NewBatch(frames.Keyed("k", "null", "k", "null")...).Seal()
	for topic, policy := range map[string]string{"compacted": "compact", "both": "compact,delete"} {
		c.CreateWith(1, map[string]string{"cleanup.policy": policy}, topic)
		p := c.Append(topic, 0, batch)
		assert.EqualValues(t, 87, p.ErrorCode)
		assert.EqualValues(t, -1, p.BaseOffset)
		require.NotNil(t, p.ErrorMessage)
		var at []int32
		for _, e := range p.ErrorRecords {
			at = append(at, e.RelativeOffset)
		}
		assert.Equal(t, []int32{1, 3}, at)
		old := frames.Ask[*kmsg.ProduceResponse](c, frames.Produce(7, -1, topic, batch)).Topics[0].Partitions[0]
		assert.EqualValues(t, 87, old.ErrorCode)
		assert.Zero(t, c.End(topic, 0))
		assert.EqualValues(t, 0, c.MustAppend(topic, 0, frames.NewBatch(frames.Keyed("k", "")...).Seal()), "an empty key is a key")
	}
	assert.EqualValues(t, 0, c.MustAppend("plain", 0, batch), "other topics take records without a key")
	set(t, c, "plain", "cleanup.policy", "compact")
	assert.Len(t, c.ReadAll("plain", 0, 0), 4, "and serve them when they are compacted later")
	assert.EqualValues(t, 87, c.Append("plain", 0, batch).ErrorCode)
}

// sequenced is a batch of ten records of an idempotent producer.
func sequenced(id int64, epoch int16, first int32) []byte {
	b := frames.NewBatch(frames.Values("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")...)
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = id, epoch, first
	return b.Seal()
}

func initProducer(c *frames.Conn) *kmsg.InitProducerIDResponse {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 4, 60_000, -1, -1
	return frames.Ask[*kmsg.InitProducerIDResponse](c, req)
}

// TestRetriedBatchesAreFoundAgain is O-PR-4: the last five batches of a producer
// are answered again as they were, and nothing is written twice, also after a
// restart and after a kill.
func TestRetriedBatchesAreFoundAgain(t *testing.T) {
	node := harness.Start(t)
	c := frames.Dial(t, node.Address)
	c.Create(1, "t")
	producer := initProducer(c)
	require.Zero(t, producer.ErrorCode)
	id, epoch := producer.ProducerID, producer.ProducerEpoch
	for i := range int32(6) {
		require.EqualValues(t, i*10, c.MustAppend("t", 0, sequenced(id, epoch, i*10)))
	}
	again := func(c *frames.Conn, when string) {
		for _, i := range []int32{5, 3, 1} {
			p := c.Append("t", 0, sequenced(id, epoch, i*10))
			assert.Zero(t, p.ErrorCode, "%s: batch %d", when, i+1)
			assert.EqualValues(t, i*10, p.BaseOffset, "%s: batch %d", when, i+1)
		}
		for name, batch := range map[string][]byte{
			"forgotten batch": sequenced(id, epoch, 0), "gap": sequenced(id, epoch, 70), "overlap": sequenced(id, epoch, 55),
			"new epoch that does not begin at 0": sequenced(id, epoch+1, 60),
		} {
			assert.EqualValues(t, 45, c.Append("t", 0, batch).ErrorCode, "%s: %s", when, name)
		}
		assert.EqualValues(t, 60, c.End("t", 0), when)
	}
	again(c, "at once")
	restart(t, node)
	again(frames.Dial(t, node.Address), "after a restart")
	node.Kill()
	require.NoError(t, node.Start())
	c = frames.Dial(t, node.Address)
	again(c, "after a kill")
	require.EqualValues(t, 60, c.MustAppend("t", 0, sequenced(id, epoch+1, 0)))
	assert.EqualValues(t, 47, c.Append("t", 0, sequenced(id, epoch, 60)).ErrorCode, "the old epoch is over")
	assert.NotEqual(t, id, initProducer(c).ProducerID, "no producer id is given out twice")
}
