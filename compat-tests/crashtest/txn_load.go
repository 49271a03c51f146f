package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// fate is what a producer knows of a transaction.
type fate uint8

const (
	unknown fate = iota // the answer to its end was lost
	committed
	aborted
)

// txnHistory is what transactional producers did: by transaction, its records and
// its fate.
type txnHistory struct {
	mu      sync.Mutex
	fates   map[string]fate
	records map[string][]string
	// fed are records that were acknowledged in the topic that is transformed.
	fed map[string]bool
}

func newTxnHistory() *txnHistory {
	return &txnHistory{fates: map[string]fate{}, records: map[string][]string{}, fed: map[string]bool{}}
}

func (h *txnHistory) begin(txn string, records []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fates[txn], h.records[txn] = unknown, records
}

func (h *txnHistory) end(txn string, f fate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fates[txn] = f
}

func (h *txnHistory) feed(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fed[key] = true
}

func (h *txnHistory) count(f fate) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.fates {
		if of == f {
			n++
		}
	}
	return n
}

// verify judges what a read_committed reader has found: how often each key.
func (h *txnHistory) verify(seen map[string]int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for txn, keys := range h.records {
		there := 0
		for _, k := range keys {
			if seen[k] > 1 {
				return fmt.Errorf("record %q is there %d times", k, seen[k])
			}
			there += seen[k]
		}
		switch f := h.fates[txn]; {
		case f == committed && there != len(keys):
			return fmt.Errorf("transaction %s was committed, %d of %d records are there", txn, there, len(keys))
		case f == aborted && there != 0:
			return fmt.Errorf("transaction %s was aborted, %d of its records are there", txn, there)
		case there != 0 && there != len(keys):
			return fmt.Errorf("of transaction %s, of unknown fate, %d of %d records are there", txn, there, len(keys))
		}
	}
	return nil
}

// txnLoad are clients that go on through every crash.
type txnLoad struct {
	address string
	history *txnHistory
	stop    context.CancelFunc
	wg      sync.WaitGroup
	// transformed counts the transactions that transformers have committed.
	transformed atomic.Int64
}

// Topics of the load, and how many partitions each has.
const (
	directTopic, sourceTopic = "direct", "source"
	txnPartitions            = 6
)

// transformer is a group that reads the source and writes to a topic of its own.
type transformer struct {
	name, to string
	group    []kgo.Opt
	// static members take their places up again at once when their clients are
	// replaced; others' are free after their sessions.
	static bool
}

// transformers are a classic group and one whose partitions the broker assigns.
func transformers() []transformer {
	return []transformer{
		{name: "transformers", to: "result", static: true, group: []kgo.Opt{kgo.SessionTimeout(session), kgo.HeartbeatInterval(200 * time.Millisecond)}},
		{name: "broker-transformers", to: "broker-result", group: []kgo.Opt{kgo.ServerSideBalancer()}},
	}
}

func (l *txnLoad) options(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(l.address),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond),
	}, more...)
}

// produce runs transactions of one producer until ctx ends. A client that is in a
// state from which it cannot go on is replaced by a new one of the same id.
func (l *txnLoad) produce(ctx context.Context, id string, versions *kversion.Versions, rng *rand.Rand) {
	number := 0
	for ctx.Err() == nil {
		cl, err := kgo.NewClient(l.options(kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Second), kgo.MaxVersions(versions))...)
		if err != nil {
			panic(err) // The options are wrong.
		}
		for ctx.Err() == nil && err == nil {
			number++
			err = l.transaction(ctx, cl, fmt.Sprintf("%s-%d", id, number), rng)
		}
		cl.Close()
	}
}

// transaction runs one transaction; an error says that the client is of no more use.
func (l *txnLoad) transaction(ctx context.Context, cl *kgo.Client, txn string, rng *rand.Rand) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	var records []*kgo.Record
	var keys []string
	for i := range 1 + rng.IntN(8) {
		key := fmt.Sprintf("%s/%d", txn, i)
		keys = append(keys, key)
		records = append(records, &kgo.Record{Topic: directTopic, Partition: rng.Int32N(txnPartitions), Key: []byte(key), Value: []byte(strings.Repeat("v", rng.IntN(300)))})
	}
	l.history.begin(txn, keys)
	err := cl.ProduceSync(ctx, records...).FirstErr()
	how, f := kgo.TryCommit, committed
	if err != nil || rng.IntN(4) == 0 {
		how, f = kgo.TryAbort, aborted
	}
	// What has begun is ended even while the load ends, or its fate stays unknown.
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if end := cl.EndTransaction(endCtx, how); end != nil {
		return end
	}
	l.history.end(txn, f)
	if err != nil {
		return err
	}
	return nil
}

// feed writes records to be transformed until ctx ends.
func (l *txnLoad) feed(ctx context.Context, rng *rand.Rand) {
	cl, err := kgo.NewClient(l.options(kgo.MaxBufferedRecords(64))...)
	if err != nil {
		panic(err)
	}
	defer cl.Close()
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("s%d", n)
		r := &kgo.Record{Topic: sourceTopic, Partition: rng.Int32N(txnPartitions), Key: []byte(key)}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err == nil {
				l.history.feed(key)
			}
		})
		if n%20 == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// transform reads the source and writes each record to the result, exactly once,
// as a member of a group. Some of its transactions it aborts.
func (l *txnLoad) transform(ctx context.Context, id string, as transformer, rng *rand.Rand) {
	own := slices.Clone(as.group)
	if as.static {
		own = append(own, kgo.InstanceID(id))
	}
	for ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(l.options(append(own,
			kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Second),
			kgo.ConsumerGroup(as.name), kgo.ConsumeTopics(sourceTopic), kgo.RequireStableFetchOffsets(),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		)...)...)
		if err != nil {
			panic(err)
		}
		for ctx.Err() == nil {
			if err := l.transformSome(ctx, s, as.to, rng); err != nil {
				break
			}
		}
		s.Close()
	}
}

func (l *txnLoad) transformSome(ctx context.Context, s *kgo.GroupTransactSession, to string, rng *rand.Rand) error {
	fetches := s.PollRecords(ctx, 100)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fetches.NumRecords() == 0 {
		return nil
	}
	if err := s.Begin(); err != nil {
		return err
	}
	var failed error
	var mu sync.Mutex
	var wg sync.WaitGroup
	fetches.EachRecord(func(r *kgo.Record) {
		wg.Add(1)
		out := &kgo.Record{Topic: to, Partition: r.Partition, Key: r.Key}
		s.Produce(ctx, out, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
			wg.Done()
		})
	})
	wg.Wait()
	how := kgo.TryCommit
	if failed != nil || rng.IntN(5) == 0 {
		how = kgo.TryAbort
	}
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	done, err := s.End(endCtx, how)
	if done && err == nil {
		l.transformed.Add(1)
	}
	return err
}

// countKeys reads topics with read_committed up to their ends and counts each key.
// The ends are those of now, and must be stable by then: a transaction that nobody
// ends would keep the reader for ever.
func countKeys(ctx context.Context, address string, topics ...string) (map[string]int, error) {
	offsets := map[string]map[int32]kgo.Offset{}
	for _, t := range topics {
		offsets[t] = map[int32]kgo.Offset{}
		for p := range int32(txnPartitions) {
			offsets[t][p] = kgo.NewOffset().AtStart()
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(offsets),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ends, err := stableEnds(ctx, kadm.NewClient(cl), topics)
	if err != nil {
		return nil, err
	}
	at := map[slot]int64{}
	seen := map[string]int{}
	for {
		left := false
		ends.Each(func(o kadm.ListedOffset) { left = left || at[slot{o.Topic, o.Partition}] < o.Offset })
		if !left {
			return seen, nil
		}
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read up to %v: %w", at, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at[slot{r.Topic, r.Partition}] = r.Offset + 1
			if !r.Attrs.IsControl() {
				seen[string(r.Key)]++
			}
		})
	}
}

// stableEnds waits until no transaction is open and returns the ends.
func stableEnds(ctx context.Context, adm *kadm.Client, topics []string) (kadm.ListedOffsets, error) {
	for {
		ends, err := adm.ListEndOffsets(ctx, topics...)
		if err != nil {
			return nil, err
		}
		stable, err := adm.ListCommittedOffsets(ctx, topics...)
		if err != nil {
			return nil, err
		}
		open := 0
		ends.Each(func(o kadm.ListedOffset) {
			if s, _ := stable.Lookup(o.Topic, o.Partition); s.Offset < o.Offset {
				open++
			}
		})
		if open == 0 {
			return ends, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d partitions have a transaction that does not end: %w", open, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
