package fieldcases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/compat-tests/frames"
)

// Codes of the answers about transactions.
const (
	codeSequence   = 45
	codeEpoch      = 47
	codeTxnState   = 48
	codeMapping    = 49
	codeTimeout    = 50
	codeConcurrent = 51
	codeNotTxn     = 53
	codeFenced     = 90
	codeAbortable  = 120
)

// txnProducer is a transactional producer that does what a test tells it, right or
// wrong.
type txnProducer struct {
	*frames.Conn
	t        testing.TB
	id       string
	producer int64
	epoch    int16
	sequence int32
}

// newTxnProducer begins as the producer of an id.
func newTxnProducer(t testing.TB, address, id string, timeout time.Duration) *txnProducer {
	t.Helper()
	p := &txnProducer{Conn: frames.Dial(t, address), t: t, id: id}
	p.init(timeout)
	return p
}

func (p *txnProducer) init(timeout time.Duration) {
	p.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &p.id, int32(timeout.Milliseconds())
	require.Eventually(p.t, func() bool {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorType, find.CoordinatorKeys = 4, 1, []string{p.id}
		_ = frames.Ask[*kmsg.FindCoordinatorResponse](p.Conn, find)
		resp := frames.Ask[*kmsg.InitProducerIDResponse](p.Conn, req)
		if resp.ErrorCode == 0 {
			p.producer, p.epoch, p.sequence = resp.ProducerID, resp.ProducerEpoch, 0
			return true
		}
		require.Contains(p.t, []int16{14, 15, 16, codeConcurrent}, resp.ErrorCode)
		return false
	}, 20*time.Second, 20*time.Millisecond)
}

// add adds partition 0 of a topic, and returns the code.
func (p *txnProducer) add(version int16, topic string) int16 {
	p.t.Helper()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = version, p.id, p.producer, p.epoch
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic, t.Partitions = topic, []int32{0}
	req.Topics = append(req.Topics, t)
	return frames.Ask[*kmsg.AddPartitionsToTxnResponse](p.Conn, req).Topics[0].Partitions[0].ErrorCode
}

// batch is the producer's next batch of one record.
func (p *txnProducer) batch(value string) []byte {
	b := frames.NewBatch(frames.Values(value)...)
	b.Attributes |= 0x10
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = p.producer, p.epoch, p.sequence
	return b.Seal()
}

// request is a produce of the producer's next batch to partition 0 of a topic.
func (p *txnProducer) request(version int16, topic, value string) *kmsg.ProduceRequest {
	req := frames.Produce(version, -1, topic, p.batch(value))
	req.TransactionID = &p.id
	return req
}

// produce sends a record and returns the code; the sequence goes on if it was taken.
func (p *txnProducer) produce(version int16, topic, value string) int16 {
	p.t.Helper()
	code := frames.Ask[*kmsg.ProduceResponse](p.Conn, p.request(version, topic, value)).Topics[0].Partitions[0].ErrorCode
	if code == 0 {
		p.sequence++
	}
	return code
}

func (p *txnProducer) endRequest(version int16, commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = version, p.id, p.producer, p.epoch, commit
	return req
}

// end ends the transaction and returns the code.
func (p *txnProducer) end(version int16, commit bool) int16 {
	p.t.Helper()
	resp := frames.Ask[*kmsg.EndTxnResponse](p.Conn, p.endRequest(version, commit))
	if resp.ErrorCode == 0 && version >= 5 {
		if resp.ProducerEpoch != p.epoch || resp.ProducerID != p.producer {
			p.sequence = 0
		}
		p.producer, p.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return resp.ErrorCode
}

// committedFetch reads partition 0 of a topic with read_committed.
func committedFetch(c *frames.Conn, topic string, offset int64) kmsg.FetchResponseTopicPartition {
	req := frames.Fetch(topic, offset)
	req.IsolationLevel = 1
	return frames.Ask[*kmsg.FetchResponse](c, req).Topics[0].Partitions[0]
}

// stable waits until no transaction is open on partition 0 of a topic, and returns
// the end.
func stable(t testing.TB, c *frames.Conn, topic string) (end int64) {
	t.Helper()
	var last kmsg.FetchResponseTopicPartition
	if !assert.Eventually(t, func() bool {
		last = committedFetch(c, topic, 0)
		end = last.HighWatermark
		return last.ErrorCode == 0 && last.LastStableOffset == end
	}, 10*time.Second, 2*time.Millisecond, "a transaction stays open") {
		explain(t, c, topic, last)
		t.FailNow()
	}
	return end
}

// explain tells what is known of a transaction that stays open.
func explain(t testing.TB, c *frames.Conn, topic string, last kmsg.FetchResponseTopicPartition) {
	t.Helper()
	t.Logf("error %d, last stable offset %d, high watermark %d", last.ErrorCode, last.LastStableOffset, last.HighWatermark)
	adm := admin(t, c.RemoteAddr().String())
	producers, err := adm.DescribeProducers(limited(t), kadm.TopicsSet{topic: {0: {}}})
	t.Logf("producers: %+v %v", producers, err)
	listed, err := adm.ListTransactions(limited(t), nil, nil)
	t.Logf("transactions: %+v %v", listed, err)
	described, err := adm.DescribeTransactions(limited(t), listed.TransactionalIDs()...)
	t.Logf("described: %+v %v", described, err)
}
