package protocol

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fill sets every field of a message to something, arrays to a few elements.
// Pointers and slices are left nil by chance if nulls is set.
func fill(rng *rand.Rand, v reflect.Value, nulls bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if nulls && rng.IntN(3) == 0 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		if m := v.MethodByName("Default"); m.IsValid() {
			m.Call(nil)
		}
		fill(rng, v.Elem(), nulls)
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Name == "Version", !f.IsExported():
			case f.Type == reflect.TypeFor[kmsg.Tags]():
				if rng.IntN(4) == 0 {
					v.Field(i).Addr().Interface().(*kmsg.Tags).Set(1000+rng.Uint32N(9), []byte("tag"))
				}
			default:
				fill(rng, v.Field(i), nulls)
			}
		}
	case reflect.Slice:
		if nulls && rng.IntN(3) == 0 {
			return
		}
		n := rng.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			if m := v.Index(i).Addr().MethodByName("Default"); m.IsValid() {
				m.Call(nil)
			}
			fill(rng, v.Index(i), nulls)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(rng.Uint64N(256))
		}
	case reflect.String:
		v.SetString(fmt.Sprint("s", rng.IntN(1000)))
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rng.Int64N(100))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(rng.Uint64N(100))
	case reflect.Float64:
		v.SetFloat(rng.Float64())
	default:
		panic(v.Kind())
	}
}

// someRequest makes a request with random content.
func someRequest(rng *rand.Rand, key, version int16, nulls bool) kmsg.Request {
	req := kmsg.RequestForKey(key)
	if m := reflect.ValueOf(req).MethodByName("Default"); m.IsValid() {
		m.Call(nil)
	}
	fill(rng, reflect.ValueOf(req).Elem(), nulls)
	req.SetVersion(version)
	if fetch, ok := req.(*kmsg.FetchRequest); ok {
		dropNewTags(fetch)
	}
	return req
}

// dropNewTags takes out the tagged fields that the version lacks: kmsg writes
// them at any flexible version.
func dropNewTags(req *kmsg.FetchRequest) {
	if req.Version < 15 {
		req.ReplicaState = kmsg.NewFetchRequestReplicaState()
	}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			p := &req.Topics[i].Partitions[j]
			plain := kmsg.NewFetchRequestTopicPartition()
			if req.Version < 17 {
				p.ReplicaDirectoryID = plain.ReplicaDirectoryID
			}
			if req.Version < 18 {
				p.HighWatermark = plain.HighWatermark
			}
		}
	}
}

// eachVersion runs f for every version of every known request.
func eachVersion(t *testing.T, f func(t *testing.T, key, version int16)) {
	for _, row := range schemaTable {
		t.Run(row.name, func(t *testing.T) {
			for v := int16(0); int(v) < versionsOfKmsg(row.key); v++ {
				f(t, row.key, v)
			}
		})
	}
}

func TestLayoutsAgreeWithKmsgAtEveryVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	eachVersion(t, func(t *testing.T, key, version int16) {
		require.Equal(t, version >= schemas()[key].flexible, flexible(key, version), "version %d", version)
		for i := range 60 {
			req := someRequest(rng, key, version, i%2 == 0)
			body := req.AppendTo(nil)
			s := schemas()[key]
			w := walker{b: body, flexible: version >= s.flexible}
			require.NoError(t, w.run(s.programs[version]), "version %d: %x", version, body)
			require.Empty(t, w.b, "version %d: bytes left of %x", version, body)

			again := kmsg.RequestForKey(key)
			again.SetVersion(version)
			require.NoError(t, BoundedDecode(again, body))
			require.Equal(t, body, again.AppendTo(nil), "version %d", version)
		}
	})
}

func flexible(key, version int16) bool {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	return req.IsFlexible()
}

// A body cut anywhere is refused, never read past, and never decoded in part.
func TestCutBodiesAreRefusedAtEveryVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	eachVersion(t, func(t *testing.T, key, version int16) {
		body := someRequest(rng, key, version, false).AppendTo(nil)
		for n := range len(body) {
			req := kmsg.RequestForKey(key)
			req.SetVersion(version)
			require.ErrorIs(t, BoundedDecode(req, body[:n:n]), ErrMalformed, "version %d: %x cut at %d", version, body, n)
		}
	})
}

func TestBytesAfterTheBodyAreIgnoredAtEveryVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	eachVersion(t, func(t *testing.T, key, version int16) {
		req := kmsg.RequestForKey(key)
		req.SetVersion(version)
		body := someRequest(rng, key, version, false).AppendTo(nil)
		require.NoError(t, BoundedDecode(req, append(body, "trailing bytes"...)))
	})
}

func TestNullsAreTakenOnlyWhereTheSchemaHasThem(t *testing.T) {
	i32 := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	cat := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	for _, tc := range []struct {
		name         string
		key, version int16
		body         []byte
		ok           bool
	}{
		{"all topics of Metadata 1", 3, 1, i32(-1), true},
		{"array count -2 means null", 3, 1, i32(-2), true},
		{"all topics of Metadata 0", 3, 0, i32(-1), false},
		{"null topic name in Metadata 1", 3, 1, cat(i32(1), []byte{0xff, 0xff}), false},
		{"null topics of CreateTopics 2", 19, 2, cat(i32(-1), i32(1000), []byte{0}), false},
		{"null topics of CreateTopics 5", 19, 5, cat([]byte{0}, i32(1000), []byte{0, 0}), false},
		{"null topics of Produce 9", 0, 9, cat([]byte{0, 0, 1}, i32(1000), []byte{0, 0}), false},
		{"null topics of Produce 3", 0, 3, cat([]byte{0xff, 0xff, 0, 1}, i32(1000), i32(-1)), false},
		{"null groups of DescribeGroups 5", 15, 5, []byte{0, 0, 0}, false},
		{"null topics of OffsetFetch 2", 9, 2, cat([]byte{0, 1, 'g'}, i32(-1)), true},
		{"null topics of OffsetFetch 1", 9, 1, cat([]byte{0, 1, 'g'}, i32(-1)), false},
		{"null cursor of DescribeTopicPartitions", 75, 0, cat([]byte{1}, i32(10), []byte{0xff, 0}), true},
		{"cursor that is there", 75, 0, cat([]byte{1}, i32(10), []byte{1, 2, 't'}, i32(0), []byte{0, 0}), true},
		{"cursor that is cut", 75, 0, cat([]byte{1}, i32(10), []byte{1, 2, 't'}, i32(0)), false},
		{"boolean byte 7", 3, 4, cat(i32(-1), []byte{7}), true},
		{"compact string beyond 32767", 22, 2, cat([]byte{0x81, 0x80, 0x02}, make([]byte, 40000)), false},
		{"compact string of 32767", 22, 2, cat([]byte{0x80, 0x80, 0x02}, make([]byte, 32767), i32(1), []byte{0}), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := kmsg.RequestForKey(tc.key)
			req.SetVersion(tc.version)
			if err := BoundedDecode(req, tc.body); tc.ok {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrMalformed)
			}
		})
	}
}

func TestKnownTagsAreRefusedAtVersionsThatLackThem(t *testing.T) {
	fetch := func(version int16, tags ...byte) error {
		req := kmsg.NewPtrFetchRequest()
		req.Version = version
		body := req.AppendTo(nil)
		body = append(body[:len(body)-1], tags...)
		again := kmsg.NewPtrFetchRequest()
		again.Version = version
		return BoundedDecode(again, body)
	}
	state := make([]byte, 13) // id, epoch, no tags
	require.ErrorIs(t, fetch(14, append([]byte{1, 1, 13}, state...)...), ErrMalformed)
	require.NoError(t, fetch(15, append([]byte{1, 1, 13}, state...)...))
	require.ErrorIs(t, fetch(15, append([]byte{1, 1, 12}, state...)...), ErrMalformed, "cut inside")
	require.NoError(t, fetch(12, 1, 99, 3, 'a', 'b', 'c'))
	require.NoError(t, fetch(12, 2, 99, 1, 'a', 99, 1, 'b'), "the same unknown tag twice")
	require.ErrorIs(t, fetch(12, 0xff, 0xff, 0xff, 0xff, 0x0f), ErrMalformed, "2^32-1 tags")
	require.ErrorIs(t, fetch(12, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00), ErrMalformed, "a count of six bytes")
	require.ErrorIs(t, fetch(12, 1, 0, 0xff, 0xff, 0xff, 0xff, 7), ErrMalformed, "size beyond the frame")
}

// A count that the body does not hold takes no memory; one that it holds takes
// what it must, within the bound.
func TestHostileCountsTakeNoMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("slow under the race detector, and of one goroutine")
	}
	const size = 1 << 20
	body := make([]byte, size)
	for _, row := range schemaTable {
		s := schemas()[row.key]
		for v := int16(0); int(v) < len(s.programs); v++ {
			for _, fillByte := range []byte{0x00, 0x01, 0x7f, 0xff, 0x80} {
				for i := range body {
					body[i] = fillByte
				}
				if fillByte == 0x7f && v < s.flexible {
					binary.BigEndian.PutUint32(body, size-8)
				}
				if fillByte == 0x80 {
					copy(body, []byte{0xf0, 0xff, 0xff, 0x03}) // as many elements as bytes
				}
				req := kmsg.RequestForKey(row.key)
				req.SetVersion(v)
				took := allocated(func() { _ = BoundedDecode(req, body) })
				require.Less(t, took, uint64(32*size), "%s version %d of %#x", row.name, v, fillByte)
			}
		}
	}
}

// allocated is what f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDenseRequestsAreRefused(t *testing.T) {
	// 16 MiB of empty topic names would take half a gigabyte.
	const n = 8 << 20
	body := binary.BigEndian.AppendUint32(nil, n)
	body = append(body, make([]byte, 2*n)...)
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 1
	took := allocated(func() { require.ErrorIs(t, BoundedDecode(req, body), ErrTooDense) })
	require.Less(t, took, uint64(1<<20))
}

// versionsOfKmsg is how many versions of an API kmsg knows.
func versionsOfKmsg(key int16) int { return int(kmsg.RequestForKey(key).MaxVersion()) + 1 }

// The estimate that the budget works with is near what kmsg takes.
func TestEstimateCoversWhatDecodingTakes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, row := range schemaTable {
		v := int16(versionsOfKmsg(row.key) - 1)
		req := kmsg.RequestForKey(row.key)
		req.SetVersion(v)
		body := someRequest(rng, row.key, v, false).AppendTo(nil)
		cost, err := walkBody(row.key, v, body)
		require.NoError(t, err)
		took := allocated(func() { _ = req.ReadFrom(body) })
		require.LessOrEqual(t, took, uint64(4*cost+16*1024), "%s version %d: estimate %d", row.name, v, cost)
	}
}

func TestBigRequestsThatClientsSendPass(t *testing.T) {
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version = 9
	for i := range 100 {
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic = fmt.Sprint("a-topic-with-a-usual-name-", i)
		for p := range 1000 {
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition = int32(p)
			part.Metadata = kmsg.StringPtr("some metadata of a client")
			topic.Partitions = append(topic.Partitions, part)
		}
		commit.Topics = append(commit.Topics, topic)
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = "t"
	for p := range 9999 {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(p), []int32{1, 2, 3}
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
	}
	create.Topics = append(create.Topics, topic)
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	for i := range 50_000 {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(fmt.Sprint("a-topic-with-a-name-that-is-longer-than-usual-to-be-on-the-safe-side-", i))
		metadata.Topics = append(metadata.Topics, topic)
	}
	for _, req := range []kmsg.Request{commit, create, metadata} {
		body := req.AppendTo(nil)
		require.Less(t, len(body), DefaultMaxBytes)
		cost, err := walkBody(req.Key(), req.GetVersion(), body)
		require.NoError(t, err)
		require.Less(t, cost, maxDecoded/4)
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, tc := range []struct {
		key, version int16
	}{{0, 9}, {1, 12}, {3, 12}} {
		req := someRequest(rand.New(rand.NewPCG(9, 9)), tc.key, tc.version, false)
		body := req.AppendTo(nil)
		s := schemas()[tc.key]
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.walk(tc.version, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
