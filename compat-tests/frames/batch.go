package frames

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Codecs are the names of the codecs by their number in a batch's attributes.
var Codecs = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// Batch is a record batch whose fields a test may spoil before it is sealed.
type Batch struct {
	kmsg.RecordBatch
	Codec int // number of the codec that Seal compresses with
}

// NewBatch returns a batch that holds these records and is right in every field.
// The records' deltas are set by their order; timestamps are left as they are.
func NewBatch(records ...kmsg.Record) *Batch {
	b := &Batch{RecordBatch: kmsg.NewRecordBatch()}
	b.PartitionLeaderEpoch, b.Magic = -1, 2
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = -1, -1, -1
	b.NumRecords, b.LastOffsetDelta = int32(len(records)), int32(len(records))-1
	b.FirstTimestamp = 1_700_000_000_000
	b.MaxTimestamp = b.FirstTimestamp
	for i, r := range records {
		r.OffsetDelta = int32(i)
		b.MaxTimestamp = max(b.MaxTimestamp, b.FirstTimestamp+r.TimestampDelta64)
		b.Records = append(b.Records, EncodeRecord(r)...)
	}
	return b
}

// Values returns a record for each value, without keys.
func Values(values ...string) []kmsg.Record {
	var out []kmsg.Record
	for _, v := range values {
		r := kmsg.NewRecord()
		r.Value = []byte(v)
		out = append(out, r)
	}
	return out
}

// Keyed returns a record for each key; an empty string is an empty key and
// "null" is no key.
func Keyed(keys ...string) []kmsg.Record {
	var out []kmsg.Record
	for _, k := range keys {
		r := kmsg.NewRecord()
		r.Value = []byte("v")
		if k != "null" {
			r.Key = []byte(k)
		}
		out = append(out, r)
	}
	return out
}

// EncodeRecord sets the length of a record and encodes it.
func EncodeRecord(r kmsg.Record) []byte {
	r.Length = 0
	body := r.AppendTo(nil)[1:] // A length of 0 takes one byte.
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

// Seal compresses the records, sets length and checksum, and encodes the batch.
func (b *Batch) Seal() []byte {
	sealed := b.RecordBatch
	if b.Codec != 0 {
		sealed.Records = compress(b.Codec, sealed.Records)
		sealed.Attributes |= int16(b.Codec)
	}
	return Checked(sealed.AppendTo(nil))
}

// Checked sets the length and the checksum of an encoded batch.
func Checked(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	return Checksummed(raw)
}

// Checksummed sets the checksum of an encoded batch and leaves its length.
func Checksummed(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

func compress(codec int, src []byte) []byte {
	options := [...]kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	c, err := kgo.DefaultCompressor(options[codec])
	if err != nil {
		panic(fmt.Sprintf("compressor %s: %v", Codecs[codec], err))
	}
	out, _ := c.Compress(&bytes.Buffer{}, src)
	return bytes.Clone(out)
}

// Decode takes the record batches of a fetched partition apart. A last batch
// that is cut short is left out.
func Decode(raw []byte) (batches []kmsg.RecordBatch, err error) {
	for len(raw) > 61 {
		n := 12 + int(binary.BigEndian.Uint32(raw[8:]))
		if n > len(raw) {
			break
		}
		var b kmsg.RecordBatch
		if err := b.ReadFrom(raw[:n]); err != nil {
			return batches, err
		}
		batches, raw = append(batches, b), raw[n:]
	}
	return batches, nil
}
