package records

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mainstem/mainstem/broker/replica/replicatest"
	"github.com/mainstem/mainstem/protocol/batch"
)

func (r *rig) deleteRecords(topic string, partition int32, offset int64) kmsg.DeleteRecordsResponseTopicPartition {
	r.t.Helper()
	req := newest(kmsg.NewPtrDeleteRecordsRequest())
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{
		Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}},
	}}
	return r.do(req).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
}

func (r *rig) offsetAt(topic string, timestamp int64, isolation int8) kmsg.ListOffsetsResponseTopicPartition {
	r.t.Helper()
	req := newest(kmsg.NewPtrListOffsetsRequest())
	req.IsolationLevel = isolation
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = timestamp
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return r.do(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

// timed builds a batch of records with the timestamps from first to last.
func timed(t *testing.T, c batch.Codec, first, last int64) []byte {
	b := batch.NewBuilder(batch.Spec{Codec: c})
	for ts := first; ts <= last; ts++ {
		b.Append(ts, nil, []byte("value"))
	}
	out, err := b.Batch()
	require.NoError(t, err)
	return out
}

func TestOffsetIsFoundByTimeInsideBatches(t *testing.T) {
	r := newRig(t)
	for _, codec := range []batch.Codec{batch.None, batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd} {
		for name, batches := range map[string][][]byte{
			"one": {timed(t, codec, 1, 12)}, "two": {timed(t, codec, 1, 6), timed(t, codec, 7, 12)},
		} {
			topic := name + codec.String()
			r.Create(replicatest.Topic{Name: topic})
			for _, b := range batches {
				require.Zero(t, r.produce(topic, b).ErrorCode)
			}
			for _, c := range [][3]int64{{0, 0, 1}, {1, 0, 1}, {5, 4, 5}, {7, 6, 7}, {12, 11, 12}, {13, -1, -1}} {
				row := r.offsetAt(topic, c[0], 0)
				require.Zero(t, row.ErrorCode)
				require.Equal(t, c[1:], []int64{row.Offset, row.Timestamp}, "%s at %d", topic, c[0])
			}
			require.Zero(t, r.deleteRecords(topic, 0, 3).ErrorCode)
			row := r.offsetAt(topic, 1, 0)
			require.EqualValues(t, 3, row.Offset, topic)
			require.EqualValues(t, 4, row.Timestamp, topic)
			row = r.offsetAt(topic, maxTimestamp, 0)
			require.EqualValues(t, 11, row.Offset, topic)
			require.EqualValues(t, 12, row.Timestamp, topic)
		}
	}
}

func TestLogAppendTimeIsFoundByItsBatch(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}})
	row := r.produce("a", spec{count: 5}.build(t))
	o := r.offsetAt("a", row.LogAppendTime, 0)
	require.EqualValues(t, 0, o.Offset)
	require.Equal(t, row.LogAppendTime, o.Timestamp)
	require.EqualValues(t, -1, r.offsetAt("a", row.LogAppendTime+1, 0).Offset)
}

func TestReadCommittedStopsAtOpenTransactions(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 2, "v")
	txn := func(id int64, sequence int32) { // Written past the handlers, which refuse it.
		p := producer(id, 0, sequence)
		p.Transactional = true
		r.append("a", spec{Spec: p}.build(t))
	}
	end := func(id int64, how batch.MarkerType) {
		r.append("a", batch.Marker{Type: how, ProducerID: id, Timestamp: 5}.Batch())
	}
	txn(8, 0) // offset 2
	txn(9, 0) // offset 3
	r.fill("a", 0, 1, "v")
	req := fetchRequest(18, r.Image.Topic("a"), 0)
	req.IsolationLevel = 1
	row := r.fetch(req).Topics[0].Partitions[0]
	require.EqualValues(t, 5, row.HighWatermark)
	require.EqualValues(t, 2, row.LastStableOffset)
	require.NotNil(t, row.AbortedTransactions)
	require.Empty(t, row.AbortedTransactions)
	require.Equal(t, int64(2), lastOffset(t, row.RecordBatches)+1)
	require.EqualValues(t, 2, r.offsetAt("a", latest, 1).Offset)
	require.EqualValues(t, 5, r.offsetAt("a", latest, 0).Offset)
	req.IsolationLevel = 0
	row = r.fetch(req).Topics[0].Partitions[0]
	require.EqualValues(t, 4, lastOffset(t, row.RecordBatches))
	require.EqualValues(t, 2, row.LastStableOffset, "the last stable offset is told to everybody")
	require.Nil(t, row.AbortedTransactions)

	inc := &reader{r: r, version: 18}
	open := fetchRequest(18, r.Image.Topic("a"), 2)
	open.SessionEpoch, open.IsolationLevel = 0, 1
	inc.id, inc.epoch = r.fetch(open).SessionID, 1
	require.Empty(t, withRecords(r.fetch(committed(inc.next("", nil)))))
	require.Len(t, withRecords(r.fetch(inc.next("", nil))), 1, "who asks for less sees more")
	require.Empty(t, withRecords(r.fetch(committed(inc.next("", nil)))))
	end(9, batch.Abort) // offset 5
	end(8, batch.Abort) // offset 6
	again := inc.next("", nil)
	again.IsolationLevel, again.MaxWaitMillis = 1, 60000
	row = r.fetch(again).Topics[0].Partitions[0]
	require.EqualValues(t, 6, lastOffset(t, row.RecordBatches))
	require.Len(t, row.AbortedTransactions, 2)
	require.EqualValues(t, 2, row.AbortedTransactions[0].FirstOffset, "sorted by first offset")
	require.EqualValues(t, 8, row.AbortedTransactions[0].ProducerID)
	require.EqualValues(t, 3, row.AbortedTransactions[1].FirstOffset)
}

func committed(req *kmsg.FetchRequest) *kmsg.FetchRequest {
	req.IsolationLevel = 1
	return req
}

func lastOffset(t *testing.T, b []byte) (last int64) {
	last = -1
	for len(b) > 0 {
		h, err := batch.ParseHeader(b)
		require.NoError(t, err)
		last, b = h.LastOffset(), b[h.Size():]
	}
	return last
}

func TestRecordsAreDeletedUpToAnOffset(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a", Partitions: 2},
		replicatest.Topic{Name: "compact", Configs: map[string]string{"cleanup.policy": "compact"}},
		replicatest.Topic{Name: "both", Configs: map[string]string{"cleanup.policy": "compact,delete"}},
		replicatest.Topic{Name: "elsewhere", Replicas: []int32{2}},
		replicatest.Topic{Name: "__consumer_offsets"})
	require.Zero(t, r.produce("a", spec{count: 10}.build(t)).ErrorCode)
	for _, c := range []struct {
		topic  string
		offset int64
		code   int16
		low    int64
	}{
		{"a", 4, 0, 4},
		{"a", 2, 0, 4},
		{"a", 11, 1, -1},
		{"a", -2, 1, -1},
		{"a", -1, 0, 10},
		{"compact", 0, kerr.PolicyViolation.Code, -1},
		{"both", 0, 0, 0},
		{"elsewhere", 0, kerr.NotLeaderForPartition.Code, -1},
		{"__consumer_offsets", 0, kerr.InvalidTopicException.Code, -1},
		{"nope", 0, 3, -1},
	} {
		row := r.deleteRecords(c.topic, 0, c.offset)
		require.Equal(t, c.code, row.ErrorCode, "%s %d", c.topic, c.offset)
		require.Equal(t, c.low, row.LowWatermark, "%s %d", c.topic, c.offset)
		if c.topic == "a" && c.low == 4 {
			stored := r.stored("a", 4)
			h, err := batch.ParseHeader(stored)
			require.NoError(t, err)
			require.EqualValues(t, 0, h.BaseOffset, "the batch that holds the offset is whole")
			require.EqualValues(t, 4, r.offsetAt("a", earliest, 0).Offset)
		}
	}
	r.Restart()
	r.handle()
	require.EqualValues(t, 10, r.offsetAt("a", earliest, 0).Offset)
	require.EqualValues(t, 10, r.produce("a", spec{}.build(t)).BaseOffset)
}

func TestEpochEndsAreAnswered(t *testing.T) {
	r := newRig(t)
	r.Create(replicatest.Topic{Name: "a"})
	r.fill("a", 0, 3, "v")
	r.Raise(1, 4)
	r.fill("a", 0, 2, "v")
	for version := int16(2); version <= 4; version++ {
		for _, c := range [][3]int64{{0, 0, 3}, {3, 0, 3}, {4, 4, 5}, {5, -1, -1}, {-1, -1, -1}} {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.Version = version
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.LeaderEpoch = int32(c[0])
			req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
			row := r.dial().ask(req).(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]
			require.Zero(t, row.ErrorCode)
			require.EqualValues(t, c[1], row.LeaderEpoch, c)
			require.Equal(t, c[2], row.EndOffset, c)
		}
	}
}
