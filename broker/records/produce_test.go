package records

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/controller/meta"
	"github.com/mainstem/mainstem/protocol"
	"github.com/mainstem/mainstem/protocol/batch"
)

// broken returns a good batch in which change has been made, with its checksum
// right again.
func broken(t *testing.T, change func(b []byte)) []byte {
	b := spec{count: 2}.build(t)
	change(b)
	h, err := batch.ParseHeader(b)
	require.NoError(t, err)
	batch.SetTimestamps(b, h.MaxTimestamp, h.IsLogAppendTime()) // Recomputes the checksum.
	return b
}

func put32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) }
}

func TestBadBatchSpoilsItsPartitionOnly(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a", Partitions: 2})
	good := func() []byte { return spec{count: 2}.build(t) }
	wrongChecksum := good()
	wrongChecksum[len(wrongChecksum)-1]++
	for name, c := range map[string]struct {
		bad  []byte
		want int16
	}{
		"null records":       {nil, 87},
		"empty records":      {[]byte{}, 87},
		"two batches":        {append(good(), good()...), 87},
		"base offset":        {broken(t, func(b []byte) { b[7] = 1 }), 87},
		"record count":       {broken(t, put32(57, 3)), 87},
		"no records":         {broken(t, put32(57, 0)), 87},
		"last offset delta":  {broken(t, put32(23, 4)), 87},
		"control bit":        {broken(t, func(b []byte) { b[22] |= 0x20 }), 87},
		"missing sequence":   {spec{Spec: producer(5, 0, -1)}.build(t), 87},
		"unknown codec":      {broken(t, func(b []byte) { b[22] |= 5 }), 87},
		"gzip bit on plain":  {broken(t, func(b []byte) { b[22] |= 1 }), 87},
		"checksum":           {wrongChecksum, 2},
		"one byte too short": {good()[:len(good())-1], 87},
	} {
		before := r.Partition("a", 0).HighWatermark()
		beside := r.Partition("a", 1).HighWatermark()
		rows := r.do(produceRequest(id, "a", c.bad, good())).(*kmsg.ProduceResponse).Topics[0].Partitions
		require.Equal(t, c.want, rows[0].ErrorCode, name)
		require.EqualValues(t, -1, rows[0].BaseOffset, name)
		require.Zero(t, rows[1].ErrorCode, name)
		require.Equal(t, beside, rows[1].BaseOffset, name)
		require.Equal(t, before, r.Partition("a", 0).Log().End(), name)
		require.Equal(t, before, r.produce("a", good()).BaseOffset, "%s: the next good batch follows without a hole", name)
	}
}

func TestBytesThatAreNoBatchSpoilTheWholeRequest(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a", Partitions: 2})
	good := spec{}.build(t)
	for name, bad := range map[string][]byte{
		"magic 3":         append(append(good[:16:16], 3), good[17:]...),
		"zeros":           make([]byte, 100),
		"negative length": append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, good[12:]...),
	} {
		rows := r.do(produceRequest(id, "a", bad, good)).(*kmsg.ProduceResponse).Topics[0].Partitions
		require.EqualValues(t, 2, rows[0].ErrorCode, name)
		require.EqualValues(t, 2, rows[1].ErrorCode, name)
		require.NotNil(t, rows[0].ErrorMessage, name)
	}
	require.Zero(t, r.Partition("a", 1).Log().End())
}

func TestMissingKeysAreNamedOnCompactedTopics(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "c", Configs: map[string]string{"cleanup.policy": "compact,delete"}})
	b := batch.NewBuilder(batch.Spec{})
	for _, key := range [][]byte{[]byte("k"), nil, []byte("k"), nil} {
		b.Append(time.Now().UnixMilli(), key, []byte("v"))
	}
	bad, err := b.Batch()
	require.NoError(t, err)
	row := r.produce("c", bad)
	require.EqualValues(t, 87, row.ErrorCode)
	require.Len(t, row.ErrorRecords, 2)
	require.EqualValues(t, 1, row.ErrorRecords[0].RelativeOffset)
	require.EqualValues(t, 3, row.ErrorRecords[1].RelativeOffset)
	require.NotNil(t, row.ErrorMessage)
	require.Zero(t, r.Partition("c", 0).Log().End())
	require.Zero(t, r.produce("c", spec{keys: true}.build(t)).ErrorCode)
}

func TestRepeatedBatchIsAnsweredAsTheFirstTime(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	send := func(epoch int16, sequence int32, count int) kmsg.ProduceResponseTopicPartition {
		return r.produce("a", spec{Spec: producer(7, epoch, sequence), count: count}.build(t))
	}
	for i := range int32(6) {
		require.EqualValues(t, i*10, send(0, i*10, 10).BaseOffset)
	}
	check := func() {
		for _, i := range []int32{5, 3, 1} {
			row := send(0, i*10, 10)
			require.Zero(t, row.ErrorCode)
			require.EqualValues(t, i*10, row.BaseOffset, "the first offset again")
		}
		require.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(0, 0, 10).ErrorCode, "not among the last five")
		require.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(0, 70, 10).ErrorCode, "a gap")
		require.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(0, 50, 5).ErrorCode, "part of a batch")
		require.EqualValues(t, 60, r.Partition("a", 0).Log().End())
	}
	check()
	r.Restart()
	r.handle()
	check()
	require.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(1, 3, 1).ErrorCode, "a new epoch starts at 0")
	require.Zero(t, send(1, 0, 1).ErrorCode)
	require.Equal(t, kerr.InvalidProducerEpoch.Code, send(0, 60, 1).ErrorCode)
}

func TestTimestampsAreCheckedAndSet(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "create"},
		replicatest.Topic{Name: "append", Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}},
		replicatest.Topic{Name: "recent", Configs: map[string]string{"message.timestamp.before.max.ms": "60000"}})
	now := time.Now().UnixMilli()
	hour := int64(3600 * 1000)
	for _, c := range []struct {
		topic string
		time  int64
		want  int16
	}{
		{"create", now + 2*hour, 32},
		{"create", now + hour - 60000, 0},
		{"create", -1, 0},
		{"create", 1, 0},
		{"recent", now - 2*60000, 32},
		{"recent", now - 10000, 0},
		{"append", now + 2*hour, 0},
		{"append", 1, 0},
	} {
		row := r.produce(c.topic, spec{time: c.time}.build(t))
		require.Equal(t, c.want, row.ErrorCode, "%s %d", c.topic, c.time-now)
		if c.topic == "append" {
			require.InDelta(t, now, row.LogAppendTime, 60000)
		} else {
			require.EqualValues(t, -1, row.LogAppendTime)
		}
	}
	stored := r.stored("append", 0)
	h, err := batch.ParseHeader(stored)
	require.NoError(t, err)
	require.True(t, h.IsLogAppendTime())
	require.InDelta(t, now, h.MaxTimestamp, 60000)
	require.True(t, batch.ChecksumOK(stored))

	// A wrong maximum in the header is put right.
	b := spec{time: now}.build(t)
	batch.SetTimestamps(b, now+9*hour, false)
	row := r.produce("create", b)
	require.Zero(t, row.ErrorCode)
	h, err = batch.ParseHeader(r.stored("create", row.BaseOffset))
	require.NoError(t, err)
	require.Equal(t, now, h.MaxTimestamp)
}

// stored returns the batch that holds the offset, as a consumer gets it.
func (r *rig) stored(topic string, offset int64) []byte {
	r.t.Helper()
	req := fetchRequest(18, r.Image.Topic(topic), offset)
	req.MaxBytes = 1
	rows := r.fetch(req).Topics[0].Partitions
	require.Zero(r.t, rows[0].ErrorCode)
	require.NotEmpty(r.t, rows[0].RecordBatches)
	return rows[0].RecordBatches
}

func TestTopicsCodecIsAppliedToAll(t *testing.T) {
	r := newRig(t)
	codecs := map[string]batch.Codec{
		"uncompressed": batch.None, "gzip": batch.Gzip, "snappy": batch.Snappy, "lz4": batch.LZ4, "zstd": batch.Zstd,
	}
	for name, to := range codecs {
		r.Create(replicatest.Topic{Name: name, Configs: map[string]string{"compression.type": name}})
		for _, from := range codecs {
			sent := spec{Spec: batch.Spec{Codec: from}, count: 20, value: "a value that repeats"}.build(t)
			row := r.produce(name, sent)
			require.Zero(t, row.ErrorCode, "%v to %v", from, to)
			stored := r.stored(name, row.BaseOffset)
			h, err := batch.ParseHeader(stored)
			require.NoError(t, err)
			require.Equal(t, to, h.Codec())
			require.Equal(t, values(t, sent), values(t, stored), "%v to %v", from, to)
			if from == to {
				require.Equal(t, sent[61:], stored[61:], "what fits already is stored as it is")
			}
		}
	}
}

func values(t *testing.T, b []byte) (out []string) {
	for rec, err := range batch.Records(b) {
		require.NoError(t, err)
		out = append(out, string(rec.Value))
	}
	return out
}

func TestBatchSizesAreBounded(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"},
		replicatest.Topic{Name: "small", Configs: map[string]string{"segment.bytes": "1048576", "max.message.bytes": "3000000"}})
	empty := len(spec{}.build(t))
	sized := func(n int) []byte {
		// A long value takes some bytes more for its length.
		for pad := n - empty - 8; ; pad++ {
			b := spec{value: string(make([]byte, pad))}.build(t)
			if len(b) == n {
				return b
			}
			require.Less(t, len(b), n)
		}
	}
	require.Zero(t, r.produce("a", sized(1048588)).ErrorCode)
	require.Equal(t, kerr.MessageTooLarge.Code, r.produce("a", sized(1048589)).ErrorCode)
	require.Equal(t, kerr.RecordListTooLarge.Code, r.produce("small", sized(1048577)).ErrorCode)
	require.Zero(t, r.produce("small", sized(1048576)).ErrorCode)
}

func TestTransactionalBatchesAreRefused(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a", Partitions: 2})
	txn := "txn"
	p := producer(3, 0, 0)
	p.Transactional = true
	req := produceRequest(id, "a", spec{Spec: p}.build(t), spec{}.build(t))
	rows := r.do(req).(*kmsg.ProduceResponse).Topics[0].Partitions
	require.Equal(t, kerr.TransactionalIDAuthorizationFailed.Code, rows[0].ErrorCode)
	require.Equal(t, kerr.TransactionalIDAuthorizationFailed.Code, rows[1].ErrorCode, "all of the request is refused")
	req.TransactionID = &txn
	rows = r.do(req).(*kmsg.ProduceResponse).Topics[0].Partitions
	require.Equal(t, kerr.InvalidProducerIDMapping.Code, rows[0].ErrorCode, "there is no such transaction")
	require.Zero(t, rows[1].ErrorCode)
	require.Zero(t, r.Partition("a", 0).Log().End())
}

func TestManyPartitionsShareOneSync(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a", Partitions: 50})
	var batches [][]byte
	for range 50 {
		batches = append(batches, spec{}.build(t))
	}
	before := r.Store.Stats().Syncs
	rows := r.do(produceRequest(id, "a", batches...)).(*kmsg.ProduceResponse).Topics[0].Partitions
	require.Len(t, rows, 50)
	for _, row := range rows {
		require.Zero(t, row.ErrorCode)
	}
	require.LessOrEqual(t, r.Store.Stats().Syncs-before, int64(2))
}

func TestNothingIsAcknowledgedUnderALostLease(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a"})
	_, finish := r.submit(context.Background(), produceRequest(id, "a", spec{}.build(t)))
	r.Fenced.Store(true)
	req := newest(kmsg.NewPtrProduceRequest())
	row := r.decode(req, finish()).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Equal(t, kerr.NotLeaderForPartition.Code, row.ErrorCode)
	require.EqualValues(t, -1, row.CurrentLeader.LeaderID, "nobody knows who leads now")
	end := r.Partition("a", 0).Log().End()
	row = r.produce("a", spec{}.build(t))
	require.Equal(t, kerr.NotLeaderForPartition.Code, row.ErrorCode)
	require.Equal(t, end, r.Partition("a", 0).Log().End(), "nothing more is appended")
	r.Fenced.Store(false)
	require.Zero(t, r.produce("a", spec{}.build(t)).ErrorCode)
}

func TestWrongBrokerNamesTheLeader(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a", Replicas: []int32{2}})
	r.Broker(meta.Broker{ID: 2, Rack: "r", Listeners: []meta.Endpoint{
		{Name: "INTERNAL", Host: "elsewhere", Port: 1}, {Name: "PLAINTEXT", Host: "two", Port: 9},
	}})
	for version := int16(9); version <= 13; version++ {
		req := produceRequest(id, "a", spec{}.build(t))
		req.Version = version
		resp := r.do(req).(*kmsg.ProduceResponse)
		row := resp.Topics[0].Partitions[0]
		require.Equal(t, kerr.NotLeaderForPartition.Code, row.ErrorCode)
		if version < 10 {
			require.EqualValues(t, -1, row.CurrentLeader.LeaderID)
			require.Empty(t, resp.Brokers)
			continue
		}
		require.EqualValues(t, 2, row.CurrentLeader.LeaderID)
		require.EqualValues(t, 0, row.CurrentLeader.LeaderEpoch)
		require.Len(t, resp.Brokers, 1)
		require.Equal(t, "two", resp.Brokers[0].Host)
		require.EqualValues(t, 9, resp.Brokers[0].Port)
		require.Equal(t, "r", *resp.Brokers[0].Rack)
	}
}

func TestAcksAllAsksForEnoughReplicas(t *testing.T) {
	r := newRig(t)
	both := r.Create(replicatest.Topic{Name: "both", Replicas: []int32{1, 2}})
	r.Create(replicatest.Topic{Name: "few", Replicas: []int32{1, 2}, ISR: []int32{1}, Configs: map[string]string{"min.insync.replicas": "2"}})
	require.Equal(t, kerr.NotEnoughReplicas.Code, r.produce("few", spec{}.build(t)).ErrorCode)
	require.Zero(t, r.Partition("few", 0).Log().End())

	req := produceRequest(both, "both", spec{}.build(t))
	req.TimeoutMillis = 1
	row := r.do(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Equal(t, kerr.RequestTimedOut.Code, row.ErrorCode)
	req.Acks = 1
	row = r.do(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Zero(t, row.ErrorCode, "acks=1 waits for this broker alone")
	require.EqualValues(t, 1, row.BaseOffset)

	// Too few are in sync by the time that the answer is due.
	alone := r.Create(replicatest.Topic{Name: "alone", Replicas: []int32{1, 2}, ISR: []int32{1}})
	_, finish := r.submit(context.Background(), produceRequest(alone, "alone", spec{}.build(t)))
	r.Store.Kick()
	require.Eventually(t, func() bool { return r.Partition("alone", 0).HighWatermark() == 1 }, 30*time.Second, time.Millisecond)
	r.Configure("alone", map[string]string{"min.insync.replicas": "2"})
	row = r.decode(req, finish()).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Equal(t, kerr.NotEnoughReplicasAfterAppend.Code, row.ErrorCode)
}

func TestLastOfRepeatedPartitionsCounts(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a", Partitions: 3})
	req := produceRequest(id, "a", spec{}.build(t), spec{}.build(t))
	twice := req.Topics[0]
	twice.Partitions = []kmsg.ProduceRequestTopicPartition{
		{Partition: 2, Records: spec{}.build(t)}, {Partition: 0, Records: spec{count: 5}.build(t)},
	}
	req.Topics = append(req.Topics, twice)
	resp := r.do(req).(*kmsg.ProduceResponse)
	require.Len(t, resp.Topics, 1)
	require.Len(t, resp.Topics[0].Partitions, 3)
	require.EqualValues(t, 5, r.Partition("a", 0).HighWatermark())
	require.EqualValues(t, 1, r.Partition("a", 1).HighWatermark())
	require.EqualValues(t, 1, r.Partition("a", 2).HighWatermark())
}

func TestPipelinedProducesAreAnsweredInOrder(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "a"})
	c := r.dial()
	const n = 20
	for range n {
		req := produceRequest(id, "a", spec{}.build(t))
		c.send(req)
		silent := produceRequest(id, "a", spec{}.build(t))
		silent.Acks = 0
		c.send(silent)
	}
	for i := range int64(n) {
		row := c.receive(newest(kmsg.NewPtrProduceRequest())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		require.Zero(t, row.ErrorCode)
		require.Equal(t, 2*i, row.BaseOffset)
	}
	require.Eventually(t, func() bool { return r.Partition("a", 0).HighWatermark() == 2*n }, 30*time.Second, time.Millisecond,
		"what nobody waits for is written all the same")
}

func TestBrokersOwnTopicsTakeNothingFromClients(t *testing.T) {
	r := newRig(t)
	id := r.Create(replicatest.Topic{Name: "__transaction_state"})
	require.Equal(t, kerr.InvalidTopicException.Code, r.produce("__transaction_state", spec{}.build(t)).ErrorCode)
	req := produceRequest(id, "__transaction_state", spec{}.build(t))
	admin := adminClient
	c := &protocol.Call{Ctx: context.Background(), Version: req.Version, ClientID: &admin, Conn: &protocol.ConnInfo{}}
	require.NoError(t, protocol.DecodeProduce(c, req.AppendTo(nil)))
	row := r.decode(req, r.h.submitProduce(c)()).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	require.Zero(t, row.ErrorCode, "but from the admin client")
}
