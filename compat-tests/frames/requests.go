package frames

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics names topics and, for versions of requests that ask by id, their ids.
type Topics map[string][16]byte

// Create makes topics of n partitions each and returns them with their ids.
func (c *Conn) Create(n int32, names ...string) Topics {
	c.t.Helper()
	return c.CreateWith(n, nil, names...)
}

// CreateWith is Create with topic configs.
func (c *Conn) CreateWith(n int32, configs map[string]string, names ...string) Topics {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 30_000
	for _, name := range names {
		req.Topics = append(req.Topics, NewTopic(name, n, 1, configs))
	}
	ids := Topics{}
	for _, t := range Ask[*kmsg.CreateTopicsResponse](c, req).Topics {
		if t.ErrorCode != 0 {
			c.t.Fatalf("create topic %s: error %d", t.Topic, t.ErrorCode)
		}
		ids[t.Topic] = t.TopicID
	}
	return ids
}

// NewTopic is one topic of a CreateTopics request.
func NewTopic(name string, partitions int32, replicas int16, configs map[string]string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for k, v := range configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = k, kmsg.StringPtr(v)
		t.Configs = append(t.Configs, config)
	}
	return t
}

// Produce is a request of one topic. records[i] goes to partition i; nil leaves
// that partition out.
func Produce(version, acks int16, topic string, records ...[]byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, acks, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for i, r := range records {
		if r == nil {
			continue
		}
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), r
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// Append produces a batch to a partition by Produce v9 and returns the answer
// for it.
func (c *Conn) Append(topic string, partition int32, batch []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	records := make([][]byte, partition+1)
	records[partition] = batch
	resp := Ask[*kmsg.ProduceResponse](c, Produce(9, -1, topic, records...))
	return resp.Topics[0].Partitions[0]
}

// MustAppend is Append that fails the test when the batch is refused.
func (c *Conn) MustAppend(topic string, partition int32, batch []byte) (baseOffset int64) {
	c.t.Helper()
	p := c.Append(topic, partition, batch)
	if p.ErrorCode != 0 {
		c.t.Fatalf("produce to %s-%d: error %d", topic, partition, p.ErrorCode)
	}
	return p.BaseOffset
}

// Offset asks ListOffsets v7 for a timestamp: -1 is the end, -2 the start.
func (c *Conn) Offset(topic string, partition int32, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, timestamp
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return Ask[*kmsg.ListOffsetsResponse](c, req).Topics[0].Partitions[0]
}

// End is the end offset of a partition.
func (c *Conn) End(topic string, partition int32) int64 {
	c.t.Helper()
	p := c.Offset(topic, partition, -1)
	if p.ErrorCode != 0 {
		c.t.Fatalf("end of %s-%d: error %d", topic, partition, p.ErrorCode)
	}
	return p.Offset
}

// Fetch is a request by names (v11) without a session: 1 MiB at most a
// partition, from the given offset of each partition of one topic.
func Fetch(topic string, offsets ...int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID = 11, -1
	req.MinBytes, req.MaxBytes, req.SessionID, req.SessionEpoch = 1, 50<<20, 0, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for i, o := range offsets {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = int32(i), o, 1<<20, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// ReadAll fetches a partition from an offset to its end and returns the values
// in order. Offsets must be dense; the batches must not be compressed.
func (c *Conn) ReadAll(topic string, partition int32, from int64) (values []string) {
	c.t.Helper()
	end := c.End(topic, partition)
	for next := from; next < end; {
		req := Fetch(topic, make([]int64, partition+1)...)
		p := &req.Topics[0].Partitions[partition]
		p.FetchOffset = next
		req.Topics[0].Partitions = req.Topics[0].Partitions[partition:]
		resp := Ask[*kmsg.FetchResponse](c, req).Topics[0].Partitions[0]
		if resp.ErrorCode != 0 {
			c.t.Fatalf("fetch %s-%d at %d: error %d", topic, partition, next, resp.ErrorCode)
		}
		got, after := c.records(resp.RecordBatches, next)
		if after == next {
			c.t.Fatalf("fetch %s-%d at %d gives nothing below the end %d", topic, partition, next, end)
		}
		values, next = append(values, got...), after
	}
	return values
}

// records takes fetched batches apart from an offset on.
func (c *Conn) records(raw []byte, next int64) (values []string, after int64) {
	c.t.Helper()
	batches, err := Decode(raw)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, b := range batches {
		rest := b.Records
		for range b.NumRecords {
			var r kmsg.Record
			n, width := binary.Varint(rest)
			if width <= 0 || n < 0 || int(n)+width > len(rest) {
				c.t.Fatalf("a stored record of batch %d has length %d, %d bytes are there", b.FirstOffset, n, len(rest))
			}
			if err := r.ReadFrom(rest[:width+int(n)]); err != nil {
				c.t.Fatal(err)
			}
			rest = rest[width+int(n):]
			if offset := b.FirstOffset + int64(r.OffsetDelta); offset < next {
				continue
			} else if offset != next {
				c.t.Fatalf("offset %d follows %d", offset, next-1)
			}
			values, next = append(values, string(r.Value)), next+1
		}
	}
	return values, next
}
