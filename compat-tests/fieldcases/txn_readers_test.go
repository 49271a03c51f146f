package fieldcases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mainstem/mainstem/compat-tests/frames"
	"github.com/mainstem/mainstem/compat-tests/harness"
)

// TestReadersSeeCommittedRecordsInOrder is the long part of O-TX-1: while one
// producer aborts and another commits, readers of read_committed see what was
// committed, in its order, and nothing else.
func TestReadersSeeCommittedRecordsInOrder(t *testing.T) {
	t.Parallel()
	rounds := number(t, "MAINSTEM_TXN_ROUNDS", 15)
	node := harness.Start(t)
	frames.Dial(t, node.Address).Create(1, "t")
	ctx, stop := context.WithTimeout(context.Background(), frames.Patience+time.Duration(rounds)*time.Second)
	defer stop()
	readers := []func() []string{franzReader(ctx, t, node.Address), franzReader(ctx, t, node.Address), saramaReader(ctx, t, node.Address)}

	var producers sync.WaitGroup
	var want []string
	for who, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		cl, err := kgo.NewClient(kgo.SeedBrokers(node.Address), kgo.TransactionalID(fmt.Sprint("producer-", who)), kgo.DefaultProduceTopic("t"))
		require.NoError(t, err)
		defer cl.Close()
		rng := rand.New(rand.NewPCG(7, uint64(who)))
		producers.Go(func() {
			for round := range rounds {
				if err := cl.BeginTransaction(); err != nil {
					t.Error(err)
					return
				}
				for i := range 1 + rng.IntN(3) {
					value := fmt.Sprintf("%v %d %d", commit, round, i)
					if err := cl.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
						t.Error(err)
						return
					}
					if commit == kgo.TryCommit {
						want = append(want, value)
					}
				}
				time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
				if err := cl.EndTransaction(ctx, commit); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	producers.Wait()
	for i, seen := range readers {
		require.Eventually(t, func() bool { return len(seen()) >= len(want) }, frames.Patience, 10*time.Millisecond, "reader %d", i)
		require.Equal(t, want, seen(), "reader %d", i)
	}
	require.Equal(t, want, franzReader(limited(t), t, node.Address, len(want))(), "who reads afterwards")
}

// seenValues is what a reader has seen so far.
type seenValues struct {
	mu  sync.Mutex
	all []string
}

func (s *seenValues) add(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, value)
}

func (s *seenValues) get() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[:len(s.all):len(s.all)]
}

// franzReader reads by franz-go until ctx ends; with a number, it waits for so many.
func franzReader(ctx context.Context, t *testing.T, address string, wait ...int) func() []string {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics("t"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	s := &seenValues{}
	done := make(chan struct{})
	reading, end := context.WithCancel(ctx)
	go func() {
		defer close(done)
		for reading.Err() == nil {
			cl.PollFetches(reading).EachRecord(func(r *kgo.Record) { s.add(string(r.Value)) })
		}
	}()
	t.Cleanup(func() {
		end()
		<-done
		cl.Close()
	})
	for _, n := range wait {
		require.Eventually(t, func() bool { return len(s.get()) >= n }, frames.Patience, 10*time.Millisecond)
	}
	return s.get
}

// saramaReader reads by Sarama until ctx ends.
func saramaReader(ctx context.Context, t *testing.T, address string) func() []string {
	t.Helper()
	c := sarama.NewConfig()
	c.Version, c.Consumer.IsolationLevel = sarama.V2_8_0_0, sarama.ReadCommitted
	consumer, err := sarama.NewConsumer([]string{address}, c)
	require.NoError(t, err)
	part, err := consumer.ConsumePartition("t", 0, sarama.OffsetOldest)
	require.NoError(t, err)
	s := &seenValues{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case m := <-part.Messages():
				s.add(string(m.Value))
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		<-done
		_ = part.Close()
		_ = consumer.Close()
	})
	return s.get
}
