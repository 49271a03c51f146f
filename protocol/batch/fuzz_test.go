package batch

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// fuzzLimit bounds what fuzzed bytes may decompress to.
const fuzzLimit = 1 << 20

func addSeeds(f *testing.F) {
	for _, c := range allCodecs {
		f.Add(build(f, Spec{Codec: c}, 3))
		f.Add(buildSample(f, Spec{Codec: c, LogAppendTime: 5}))
	}
	f.Add(Marker{Type: Abort, ProducerID: 5}.Batch())
	f.Add(rawBatch(f, None, 2, append(rec(attrs, 0, 7, -1, -1, 1, 0, -1), rec(attrs, 0, 0, 0, 0, 0)...)))
	f.Add([]byte{})
}

// FuzzHeader: what parses is written back as it was, and delimiting agrees with it.
func FuzzHeader(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		out := make([]byte, HeaderLen)
		h.put(out)
		if !bytes.Equal(out, b[:HeaderLen]) {
			t.Fatalf("%s became %s", hex.EncodeToString(b[:HeaderLen]), hex.EncodeToString(out))
		}
		if h.Size() < HeaderLen {
			t.Fatalf("size %d", h.Size())
		}
		if one, err := Delimit(b); err == nil && len(one) != h.Size() {
			t.Fatalf("delimited %d, size %d", len(one), h.Size())
		}
		_ = h.LastSequence()
	})
}

// FuzzValidate: whatever passes can be read by all other readers, with the same answers, and be compressed anew.
func FuzzValidate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= HeaderLen {
			fix(b) // Let the fuzzer get past the checksum.
		}
		sum, err := Validate(b, Checks{Internal: true, MaxUncompressed: fuzzLimit})
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		records, err := collect(b)
		if err != nil || len(records) != int(sum.NumRecords) {
			t.Fatalf("%d of %d records: %v", len(records), sum.NumRecords, err)
		}
		out, err := Recompress(b, None, 0)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Validate(out, Checks{Internal: true})
		if err != nil || again.Scattered || again.MaxTimestamp != sum.MaxTimestamp || again.OffsetOfMaxTimestamp != sum.OffsetOfMaxTimestamp {
			t.Fatalf("%+v became %+v: %v", sum, again, err)
		}
		if _, _, _, err := FindTimestamp(b, sum.MaxTimestamp, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzRecords: the walk in place, the walk through the window and the reader of whole records judge alike.
func FuzzRecords(f *testing.F) {
	for _, s := range []Spec{{}, {LogAppendTime: 7}} {
		f.Add(buildSample(f, s)[HeaderLen:], uint8(len(sample())))
	}
	f.Add(rec(attrs, 0, 0, 1, "k", 1, "v", 1, 1, "h", -1), uint8(1))
	f.Fuzz(func(t *testing.T, records []byte, count uint8) {
		if count == 0 {
			return
		}
		plain := rawBatch(t, None, int(count), records)
		packed := rawBatch(t, Snappy, int(count), records)
		a, aerr := Validate(plain, Checks{})
		b, berr := Validate(packed, Checks{})
		if (aerr == nil) != (berr == nil) {
			t.Fatalf("in place: %v, streamed: %v", aerr, berr)
		}
		if aerr == nil {
			a.Header, b.Header = Header{}, Header{}
			if a != b {
				t.Fatalf("in place: %+v, streamed: %+v", a, b)
			}
		}
		long := walkLong(records, int(count))
		if (long == sound) != (aerr == nil) {
			t.Fatalf("in place: %v, piece by piece: %v", aerr, long)
		}
	})
}

// walkLong walks as if each record were larger than the window.
func walkLong(records []byte, count int) fault {
	w := walker{window: records}
	var m meta
	for range count {
		n, k := varint32(w.window)
		if k <= 0 || n < 0 {
			return faultRecordLength
		}
		w.window = w.window[k:]
		s := &stream{ended: true}
		w.src = s
		f := w.nextLong(int(n), &m)
		w.src = nil
		if f != sound {
			return f
		}
	}
	return w.end()
}

// FuzzDecompress: no panic, and never more than the limit.
func FuzzDecompress(f *testing.F) {
	for _, c := range allCodecs {
		packed, err := Compress(c, c.DefaultLevel(), nil, mixed(2000))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int8(c), packed)
	}
	f.Add(int8(Snappy), xerial([]byte("abc"), []byte("def")))
	f.Fuzz(func(t *testing.T, c int8, src []byte) {
		out, err := Decompress(Codec(c), src, fuzzLimit)
		if err == nil && len(out) > fuzzLimit {
			t.Fatalf("%d bytes", len(out))
		}
		if err != nil && !errors.Is(err, ErrUndecodable) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrCodec) {
			t.Fatalf("unknown error: %v", err)
		}
	})
}
