package batch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallRecords returns a batch of many records as small services send them.
func smallRecords(t testing.TB, c Codec, n, value int) []byte {
	t.Helper()
	b := NewBuilder(Spec{Codec: c})
	v := mixed(value)
	for i := range n {
		b.Append(testTime+int64(i), fmt.Appendf(nil, "k%05d", i), v)
	}
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

var kafkaChecks = Checks{RequireKeys: true, CheckTimestamps: true, Now: testTime, BeforeMaxMs: 1 << 62, AfterMaxMs: 3_600_000, Partition: "topic-0"}

func TestValidationAllocatesNothing(t *testing.T) {
	few, many := 10, 10_000
	for _, c := range allCodecs {
		small, large := smallRecords(t, c, few, 50), smallRecords(t, c, many, 50)
		measure := func(b []byte) float64 {
			return testing.AllocsPerRun(200, func() {
				if _, err := Validate(b, kafkaChecks); err != nil {
					t.Fatal(err)
				}
			})
		}
		if c == None {
			require.Zero(t, measure(small))
			require.Zero(t, measure(large))
			continue
		}
		// The libraries allocate a little a block, and the pools are emptied now and then; but nothing comes a record.
		require.LessOrEqual(t, measure(large), float64(many)/100, c)
	}
}

func TestTheHeaderPathAllocatesNothing(t *testing.T) {
	b := smallRecords(t, None, 100, 50)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h, err := ParseHeader(b)
		if err != nil || h.Size() != len(b) || !ChecksumOK(b) {
			t.Fatal(err)
		}
		Stamp(b, 5, 1)
		SetTimestamps(b, 77, true)
		if _, err := Delimit(b); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := FindTimestamp(b, 1<<60, 0); err != nil {
			t.Fatal(err)
		}
	}))
}

func BenchmarkValidate(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		for _, c := range allCodecs {
			n := 500_000 / (size + 15)
			data := smallRecords(b, c, n, size)
			b.Run(fmt.Sprintf("value=%d/%v", size, c), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(500_000))
				for b.Loop() {
					if _, err := Validate(data, kafkaChecks); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/record")
			})
		}
	}
}

func BenchmarkValidateOneRecord(b *testing.B) {
	for _, c := range allCodecs {
		data := smallRecords(b, c, 1, 100)
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Validate(data, kafkaChecks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkChecksum(b *testing.B) {
	data := smallRecords(b, None, 5000, 100)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if !ChecksumOK(data) {
			b.Fatal("checksum")
		}
	}
}

func BenchmarkSetTimestamps(b *testing.B) {
	data := smallRecords(b, None, 5000, 100)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		SetTimestamps(data, 1, true)
	}
}

func BenchmarkRecompress(b *testing.B) {
	for _, c := range allCodecs {
		data := smallRecords(b, None, 5000, 100)
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Recompress(data, c, c.DefaultLevel()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
