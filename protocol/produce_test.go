package protocol

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// asKmsg is the request as kmsg has it, without unknown tags.
func (r *ProduceRequest) asKmsg() *kmsg.ProduceRequest {
	k := kmsg.NewPtrProduceRequest()
	k.Version, k.TransactionID, k.Acks, k.TimeoutMillis = r.Version, r.TransactionalID, r.Acks, r.TimeoutMillis
	for _, t := range r.Topics {
		kt := kmsg.NewProduceRequestTopic()
		kt.Topic, kt.TopicID = t.Name, t.ID
		for _, p := range t.Partitions {
			kp := kmsg.NewProduceRequestTopicPartition()
			kp.Partition, kp.Records = p.Index, p.Records
			kt.Partitions = append(kt.Partitions, kp)
		}
		k.Topics = append(k.Topics, kt)
	}
	return k
}

func dropTags(req *kmsg.ProduceRequest) {
	req.UnknownTags = kmsg.Tags{}
	for i := range req.Topics {
		req.Topics[i].UnknownTags = kmsg.Tags{}
		for j := range req.Topics[i].Partitions {
			req.Topics[i].Partitions[j].UnknownTags = kmsg.Tags{}
		}
	}
}

func TestProduceIsReadAsKmsgReadsItAtEveryVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	r := new(ProduceRequest) // the same one all along
	for version := int16(3); version <= 13; version++ {
		for i := range 200 {
			req := someRequest(rng, 0, version, i%2 == 0).(*kmsg.ProduceRequest)
			body := req.AppendTo(nil)
			require.NoError(t, r.Decode(version, body))
			dropTags(req)
			require.Equal(t, req.AppendTo(nil), r.asKmsg().AppendTo(nil), "version %d: %x", version, body)
			for n := range len(body) {
				require.ErrorIs(t, r.Decode(version, body[:n:n]), ErrMalformed, "cut at %d", n)
			}
		}
	}
}

func TestProducedRecordsLieInTheFrame(t *testing.T) {
	body := produceTo(1, []byte("records")).AppendTo(nil)
	r := new(ProduceRequest)
	require.NoError(t, r.Decode(9, body))
	body[bytes.Index(body, []byte("records"))] = 'R'
	require.Equal(t, "Records", string(r.Topics[0].Partitions[0].Records))
	require.Equal(t, len("records"), cap(r.Topics[0].Partitions[0].Records), "cannot grow into what follows")
}

func TestNullRecordsAreToldFromEmptyOnes(t *testing.T) {
	r := new(ProduceRequest)
	require.NoError(t, r.Decode(9, produceTo(1, nil).AppendTo(nil)))
	require.Nil(t, r.Topics[0].Partitions[0].Records)
	require.NoError(t, r.Decode(9, produceTo(1, []byte{}).AppendTo(nil)))
	require.NotNil(t, r.Topics[0].Partitions[0].Records)
}

func TestReadingProduceAgainTakesNoMemory(t *testing.T) {
	for _, version := range []int16{8, 9, 13} {
		req := produceTo(1, []byte("records"))
		req.Version = version
		for range 100 {
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, req.Topics[0].Partitions[0])
		}
		body := req.AppendTo(nil)
		r := new(ProduceRequest)
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = r.Decode(version, body) }))
	}
}

// What a request held is not kept alive, nor shown again, by the next one.
func TestUsedRequestHoldsNothingOfTheLastOne(t *testing.T) {
	s, err := Listen(Options{})
	require.NoError(t, err)
	c := &Call{Version: 9, conn: &conn{srv: s}}
	require.NoError(t, DecodeProduce(c, produceTo(1, []byte("records")).AppendTo(nil)))
	r := c.Body.(*ProduceRequest)
	parts := r.partitions
	r.reuse()
	require.Nil(t, parts[0].Records)
	require.Empty(t, r.Topics)
}

func FuzzProduce(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for version := int16(3); version <= 13; version++ {
		f.Add(version, someRequest(rng, 0, version, false).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 3 + int16(uint16(version)%11)
		r := new(ProduceRequest)
		k := kmsg.NewPtrProduceRequest()
		k.Version = version
		_, walked := walkBody(0, version, body)
		if err := r.Decode(version, body); err == nil && walked == nil {
			require.NoError(t, k.ReadFrom(body))
			dropTags(k)
			require.Equal(t, k.AppendTo(nil), r.asKmsg().AppendTo(nil))
		} else {
			require.Error(t, walked, "walked, but not decoded: %v", err)
		}
	})
}

func BenchmarkReadProduce(b *testing.B) {
	body := produceTo(1, make([]byte, 1000)).AppendTo(nil)
	r := new(ProduceRequest)
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Decode(9, body)
	}
}
