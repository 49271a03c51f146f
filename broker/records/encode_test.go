package records

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/log"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

// The codecs written by hand are held to kmsg's: the same answer must give the same
// bytes at every version.

func TestProduceAnswerIsEncodedAsKmsgDoes(t *testing.T) {
	for version := int16(3); version <= 13; version++ {
		for seed := range uint64(50) {
			rnd := rand.New(rand.NewPCG(seed, uint64(version)))
			p := &produce{req: &protocol.ProduceRequest{Version: version}, wait: time.Duration(rnd.IntN(9)) * time.Second}
			want := &kmsg.ProduceResponse{Version: version, ThrottleMillis: int32(p.wait.Milliseconds())}
			for topic := range rnd.IntN(4) {
				rt := protocol.ProduceTopic{Name: word(rnd), ID: id(rnd)}
				p.req.Topics = append(p.req.Topics, rt)
				kt := kmsg.ProduceResponseTopic{Topic: rt.Name, TopicID: rt.ID}
				for range 1 + rnd.IntN(3) {
					r := randomRow(rnd, topic)
					p.rows = append(p.rows, r)
					kt.Partitions = append(kt.Partitions, kmsgRow(&r))
				}
				want.Topics = append(want.Topics, kt)
			}
			if version >= 10 {
				p.leaders.nodes = nodes(rnd)
				for _, n := range p.leaders.nodes {
					want.Brokers = append(want.Brokers, kmsg.ProduceResponseBroker{NodeID: n.id, Host: n.host, Port: n.port, Rack: rack(n.rack)})
				}
			}
			require.Equal(t, want.AppendTo(nil), p.encode(nil), "version %d, seed %d", version, seed)
		}
	}
}

func randomRow(rnd *rand.Rand, topic int) row {
	r := row{topic: topic, index: rnd.Int32(), code: int16(rnd.IntN(130)), base: rnd.Int64(), time: -1, start: rnd.Int64N(1000)}
	if rnd.IntN(3) == 0 {
		for range rnd.IntN(3) {
			r.records = append(r.records, batch.RecordError{Index: rnd.Int32(), Message: word(rnd)})
		}
		m := word(rnd)
		r.message = &m
	}
	if rnd.IntN(3) == 0 {
		r.hint = hint{known: true, leader: rnd.Int32(), epoch: rnd.Int32()}
	}
	return r
}

func kmsgRow(r *row) kmsg.ProduceResponseTopicPartition {
	p := kmsg.NewProduceResponseTopicPartition()
	p.Partition, p.ErrorCode, p.BaseOffset, p.LogAppendTime, p.LogStartOffset = r.index, r.code, r.base, r.time, r.start
	p.ErrorMessage = r.message
	for i := range r.records {
		p.ErrorRecords = append(p.ErrorRecords, kmsg.ProduceResponseTopicPartitionErrorRecord{
			RelativeOffset: r.records[i].Index, ErrorMessage: &r.records[i].Message,
		})
	}
	if r.hint.known {
		p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = r.hint.leader, r.hint.epoch
	}
	return p
}

func TestFetchAnswerIsEncodedAsKmsgDoes(t *testing.T) {
	for version := int16(4); version <= 18; version++ {
		for seed := range uint64(50) {
			rnd := rand.New(rand.NewPCG(seed, uint64(version)))
			f := &fetch{req: &kmsg.FetchRequest{Version: version}, answerID: rnd.Int32(), wait: time.Duration(rnd.IntN(9)) * time.Second}
			want := &kmsg.FetchResponse{Version: version, SessionID: f.answerID, ThrottleMillis: int32(f.wait.Milliseconds())}
			for range rnd.IntN(4) {
				k := partKey{name: word(rnd)}
				if version >= 13 {
					k = partKey{id: id(rnd)}
				}
				kt := kmsg.FetchResponseTopic{Topic: k.name, TopicID: k.id}
				for range 1 + rnd.IntN(3) {
					k.index = rnd.Int32()
					r := randomFetchRow(rnd, k, version)
					f.rows = append(f.rows, r)
					kt.Partitions = append(kt.Partitions, kmsgFetchRow(&r))
				}
				want.Topics = append(want.Topics, kt)
			}
			if version >= 16 {
				f.leaders.nodes = nodes(rnd)
				for _, n := range f.leaders.nodes {
					want.Brokers = append(want.Brokers, kmsg.FetchResponseBroker{NodeID: n.id, Host: n.host, Port: n.port, Rack: rack(n.rack)})
				}
			}
			f.encode()
			require.Equal(t, want.AppendTo(nil), bytes.Join(f.buffers.Pieces, nil), "version %d, seed %d", version, seed)
		}
	}
}

func randomFetchRow(rnd *rand.Rand, k partKey, version int16) fetchRow {
	r := fetchRow{key: k, code: int16(rnd.IntN(130)), hw: rnd.Int64(), lso: rnd.Int64(), start: rnd.Int64()}
	if r.committed = rnd.IntN(2) == 0; r.committed {
		for range rnd.IntN(3) {
			r.aborted = append(r.aborted, log.AbortedTxn{ProducerID: rnd.Int64(), First: rnd.Int64()})
		}
	}
	if rnd.IntN(2) == 0 {
		r.batches = pieces{randomBytes(rnd, 1+rnd.IntN(300)), randomBytes(rnd, 1+rnd.IntN(20000))}
	}
	if version >= 12 && rnd.IntN(3) == 0 {
		r.diverging, r.epoch, r.end = true, rnd.Int32(), rnd.Int64()
	}
	if version >= 16 && rnd.IntN(3) == 0 {
		r.hint = hint{known: true, leader: rnd.Int32(), epoch: rnd.Int32()}
	}
	return r
}

func kmsgFetchRow(r *fetchRow) kmsg.FetchResponseTopicPartition {
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = r.key.index, r.code, r.hw, r.lso, r.start
	p.RecordBatches = []byte{}
	if r.committed {
		p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		for _, a := range r.aborted {
			p.AbortedTransactions = append(p.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a.ProducerID, FirstOffset: a.First})
		}
	}
	if r.batches != nil {
		p.RecordBatches = bytes.Join(r.batches.Buffers(), nil)
	}
	if r.diverging {
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = r.epoch, r.end
	}
	if r.hint.known {
		p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = r.hint.leader, r.hint.epoch
	}
	return p
}

// pieces are records in memory.
type pieces [][]byte

func (p pieces) Buffers() [][]byte { return p }
func (p pieces) Size() int         { return len(bytes.Join(p, nil)) }
func (p pieces) Release()          {}
func (p pieces) Rest() int         { return 0 }
func (p pieces) Discard()          {}

func (p pieces) More() ([][]byte, error) { panic("nothing is left") }

func word(rnd *rand.Rand) string {
	return string(randomBytes(rnd, rnd.IntN(200)))
}

func randomBytes(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(rnd.IntN(26))
	}
	return b
}

func id(rnd *rand.Rand) (id [16]byte) {
	copy(id[:], fmt.Sprintf("%016x", rnd.Uint64()))
	return id
}

func nodes(rnd *rand.Rand) []endpoint {
	var out []endpoint
	for range rnd.IntN(3) {
		n := endpoint{id: rnd.Int32(), host: word(rnd), port: rnd.Int32()}
		if rnd.IntN(2) == 0 {
			n.rack = "r" + word(rnd)
		}
		out = append(out, n)
	}
	return out
}

func rack(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
