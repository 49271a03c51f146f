package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Go returns the clients written in Go; they need nothing but this module.
func Go() []Client { return []Client{franz{}, saramaClient{}, kafkaGo{}} }

type franz struct{}

func (franz) Name() string { return "franz-go" }

func (franz) Codecs() []string { return []string{"none", "gzip", "snappy", "lz4", "zstd"} }

func (franz) Write(ctx context.Context, address, topic, codec string, records []Record) error {
	compression := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[codec]
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(compression))
	if err != nil {
		return err
	}
	defer cl.Close()
	var out []*kgo.Record
	for _, r := range records {
		k := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		out = append(out, k)
	}
	return cl.ProduceSync(ctx, out...).FirstErr()
}

func (franz) Read(ctx context.Context, address, topic string, n int) ([]Record, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var out []Record
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return out, err
		}
		fetches.EachRecord(func(k *kgo.Record) {
			r := Record{Key: k.Key, Value: k.Value}
			for _, h := range k.Headers {
				r.Headers = append(r.Headers, Header{h.Key, h.Value})
			}
			out = append(out, r)
		})
	}
	return out, nil
}

type saramaClient struct{}

func (saramaClient) Name() string { return "sarama" }

func (saramaClient) Codecs() []string { return []string{"none", "gzip", "snappy", "lz4", "zstd"} }

func (saramaClient) Write(_ context.Context, address, topic, codec string, records []Record) error {
	c := sarama.NewConfig()
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
	c.Producer.Partitioner = sarama.NewManualPartitioner
	if err := c.Producer.Compression.UnmarshalText([]byte(codec)); err != nil {
		return err
	}
	p, err := sarama.NewSyncProducer([]string{address}, c)
	if err != nil {
		return err
	}
	defer p.Close()
	for i, r := range records {
		m := &sarama.ProducerMessage{Topic: topic}
		if r.Key != nil {
			m.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			m.Value = sarama.ByteEncoder(r.Value)
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		if _, _, err := p.SendMessage(m); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

func (saramaClient) Read(ctx context.Context, address, topic string, n int) ([]Record, error) {
	c, err := sarama.NewConsumer([]string{address}, sarama.NewConfig())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	pc, err := c.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer pc.Close()
	var out []Record
	for len(out) < n {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case m := <-pc.Messages():
			r := Record{Key: m.Key, Value: m.Value}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, Header{string(h.Key), h.Value})
			}
			out = append(out, r)
		}
	}
	return out, nil
}

type kafkaGo struct{}

func (kafkaGo) Name() string { return "kafka-go" }

// Abilities: its reader gives nil for an empty key or value.
func (kafkaGo) Abilities() Abilities { return Abilities{ReadsEmptyAsNull: true} }

func (kafkaGo) Codecs() []string { return []string{"none", "gzip", "snappy", "lz4", "zstd"} }

func (kafkaGo) Write(ctx context.Context, address, topic, codec string, records []Record) (err error) {
	w := &kafka.Writer{Addr: kafka.TCP(address), Topic: topic, RequiredAcks: kafka.RequireAll,
		BatchTimeout: 10 * time.Millisecond, AllowAutoTopicCreation: true}
	if codec != "none" {
		var c compress.Compression
		if err := c.UnmarshalText([]byte(codec)); err != nil {
			return err
		}
		w.Compression = c
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var out []kafka.Message
	for _, r := range records {
		m := kafka.Message{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, m)
	}
	return w.WriteMessages(ctx, out...)
}

func (kafkaGo) Read(ctx context.Context, address, topic string, n int) ([]Record, error) {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{address}, Topic: topic, Partition: 0, MaxWait: 200 * time.Millisecond})
	defer r.Close()
	var out []Record
	for len(out) < n {
		m, err := r.ReadMessage(ctx)
		if errors.Is(err, io.EOF) {
			return out, io.ErrUnexpectedEOF
		}
		if err != nil {
			return out, err
		}
		rec := Record{Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			rec.Headers = append(rec.Headers, Header{h.Key, h.Value})
		}
		out = append(out, rec)
	}
	return out, nil
}
