package clients

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Pipe is what a transactional client is to do: to read N records of From as a
// member of Group and to write them to To, in transactions of ten, with the offsets.
// Every third transaction it aborts and does again.
type Pipe struct {
	ID, Group, From, To string
	N                   int
}

// Transactional is a client that speaks transactions.
type Transactional interface {
	Name() string
	Transform(ctx context.Context, address string, p Pipe) error
}

// GoTransactional returns the transactional clients written in Go.
func GoTransactional() []Transactional { return []Transactional{franz{}, saramaClient{}} }

// ExternalTransactional returns those in other languages.
func ExternalTransactional() []Transactional {
	return []Transactional{program{name: "librdkafka", argv: []string{"/usr/bin/python3", "confluent_txn.py"}}}
}

func (p program) Transform(ctx context.Context, address string, t Pipe) error {
	_, err := p.run(ctx, nil, "transform", address, t.ID, t.Group, t.From, t.To, fmt.Sprint(t.N))
	return err
}

func (franz) Transform(ctx context.Context, address string, p Pipe) error {
	s, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(address), kgo.TransactionalID(p.ID), kgo.TransactionTimeout(20*time.Second),
		kgo.ConsumerGroup(p.Group), kgo.ConsumeTopics(p.From), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequireStableFetchOffsets(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer s.Close()
	aborted := map[int]bool{}
	for done, number := 0, 0; done < p.N; {
		fetches := s.PollRecords(ctx, 10)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
		var mu sync.Mutex
		var failed error
		var all sync.WaitGroup
		n := 0
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			all.Add(1)
			s.Produce(ctx, &kgo.Record{Topic: p.To, Key: r.Key, Value: r.Value}, func(_ *kgo.Record, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
				}
				all.Done()
			})
		})
		all.Wait()
		if failed != nil {
			return failed
		}
		how := kgo.TryCommit
		if number%3 == 0 && !aborted[number] {
			how, aborted[number] = kgo.TryAbort, true
		}
		ok, err := s.End(ctx, how)
		if err != nil {
			return err
		}
		if ok {
			done += n
			number++
		}
	}
	return nil
}

func (saramaClient) Transform(_ context.Context, address string, p Pipe) error {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Producer.Idempotent = true
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Transaction.ID = p.ID
	c.Producer.Transaction.Timeout = 20 * time.Second
	c.Net.MaxOpenRequests = 1
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	producer, err := sarama.NewSyncProducer([]string{address}, c)
	if err != nil {
		return err
	}
	defer producer.Close()
	consumer, err := sarama.NewConsumer([]string{address}, c)
	if err != nil {
		return err
	}
	defer consumer.Close()
	from, err := consumer.ConsumePartition(p.From, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer from.Close()
	for done, number := 0, 0; done < p.N; number++ {
		var batch []*sarama.ConsumerMessage
		for len(batch) < min(10, p.N-done) {
			select {
			case m := <-from.Messages():
				batch = append(batch, m)
			case <-time.After(30 * time.Second):
				return fmt.Errorf("%d of %d records", done, p.N)
			}
		}
		if number%3 == 0 {
			if err := saramaTransaction(producer, p, batch, producer.AbortTxn); err != nil {
				return fmt.Errorf("abort: %w", err)
			}
		}
		if err := saramaTransaction(producer, p, batch, producer.CommitTxn); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		done += len(batch)
	}
	return nil
}

func saramaTransaction(producer sarama.SyncProducer, p Pipe, batch []*sarama.ConsumerMessage, end func() error) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	for _, m := range batch {
		out := &sarama.ProducerMessage{Topic: p.To, Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value)}
		if _, _, err := producer.SendMessage(out); err != nil {
			return err
		}
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{
		p.From: {{Partition: 0, Offset: batch[len(batch)-1].Offset + 1}},
	}
	if err := producer.AddOffsetsToTxn(offsets, p.Group); err != nil {
		return err
	}
	return end()
}
