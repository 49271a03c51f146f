package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type txnAbort struct {
	*remote
	partition string
	offset    int64
}

type abortedTxn struct {
	ID         string `json:"transactional_id,omitempty"`
	Topic      string `json:"topic,omitempty"`
	Partition  *int32 `json:"partition,omitempty"`
	ProducerID int64  `json:"producer_id"`
}

func newTxnAbort(c *console) *cobra.Command {
	o := &txnAbort{}
	cmd := &cobra.Command{
		Use:   "abort ID | --partition TOPIC/N --first-offset OFFSET",
		Short: "Abort an open transaction and lock its producer out",
		Long: `Abort ends the open transaction of a transactional id; its producer is told that
another has taken its place.

With --partition it ends a transaction on one partition that no coordinator knows:
one that its producer has left open for ever. 'mainstem txn describe' and
kafka-transactions find-hanging show where such a transaction begins.`,
		Example: `  mainstem txn abort order-writer-1
  mainstem txn abort --partition orders/3 --first-offset 120034`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == (o.partition != "") || len(args) > 1 {
				return usage("Give a transactional id, or --partition and --first-offset.", "not one transaction is named")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.partition != "" {
				return o.admin(cmd.Context(), o.abortHanging)
			}
			return o.abortOf(cmd.Context(), args[0])
		},
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.StringVar(&o.partition, "partition", "", "partition topic/number of a transaction that no coordinator knows")
	f.Int64Var(&o.offset, "first-offset", -1, "where that transaction begins")
	cmd.ValidArgsFunction = completeTxns(o.remote)
	return cmd
}

// abortOf aborts the transaction of an id: who takes its producer's place has that
// done, and does nothing with it.
func (o *txnAbort) abortOf(ctx context.Context, id string) error {
	cl, err := o.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return o.explain(o.fence(ctx, cl, id))
}

func (o *txnAbort) fence(ctx context.Context, cl *kgo.Client, id string) error {
	txns, err := describeTxns(ctx, kadm.NewClient(cl), []string{id})
	if err != nil {
		return err
	}
	t := txns[id]
	switch {
	case t.Err != nil:
		return fmt.Errorf("describe transaction %s: %w", id, t.Err)
	case t.State != ongoing && running(t.State):
		return fail(exitRefused, "It ends as it was decided.", fmt.Errorf("the transaction of %s is ending already: %s", id, t.State))
	case t.State != ongoing:
		return fail(exitRefused, "'mainstem txn list --state Ongoing' shows those that are open.", fmt.Errorf("%s has no open transaction", id))
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, t.TimeoutMillis
	for {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return fmt.Errorf("abort transaction of %s: %w", id, err)
		}
		err = kerr.ErrorForCode(resp.ErrorCode)
		if err == nil {
			break
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return fmt.Errorf("abort transaction of %s: %w", id, err)
		}
		select { // It is aborted, and not written everywhere yet.
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if o.json {
		return printJSON(o.c.out, abortedTxn{ID: id, ProducerID: t.ProducerID})
	}
	return printf(o.c.out, "transaction of %s aborted\n", id)
}

// abortHanging writes the end of a transaction to a partition, where no coordinator
// is going to.
func (o *txnAbort) abortHanging(ctx context.Context, adm *kadm.Client) error {
	topic, number, ok := strings.Cut(o.partition, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil || o.offset < 0 {
		return usage("Write --partition topic/number --first-offset N.", "--partition %q with --first-offset %d names no transaction", o.partition, o.offset)
	}
	partition := int32(n)
	var set kadm.TopicsSet
	set.Add(topic, partition)
	described, err := adm.DescribeProducers(ctx, set)
	if err != nil {
		return fmt.Errorf("describe producers: %w", err)
	}
	found := described[topic].Partitions[partition]
	if found.Err != nil {
		return fmt.Errorf("describe producers of %s/%d: %w", topic, partition, found.Err)
	}
	for _, p := range found.ActiveProducers {
		if p.CurrentTxnStartOffset == o.offset {
			return o.writeAbort(ctx, adm, p)
		}
	}
	return fail(exitRefused, "'mainstem txn describe' and kafka-transactions find-hanging show where transactions begin.",
		fmt.Errorf("no open transaction begins at offset %d of %s/%d", o.offset, topic, partition))
}

func (o *txnAbort) writeAbort(ctx context.Context, adm *kadm.Client, p kadm.DescribedProducer) error {
	owners, err := adm.ListTransactions(ctx, []int64{p.ProducerID}, nil)
	if err != nil {
		return fmt.Errorf("list transactions: %w", err)
	}
	for _, owner := range owners.Sorted() {
		if running(owner.State) {
			return fail(exitRefused, "Use 'mainstem txn abort "+owner.TxnID+"'.", fmt.Errorf("the transaction is that of %s, which is %s", owner.TxnID, owner.State))
		}
	}
	m := kadm.TxnMarkers{ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch, CoordinatorEpoch: max(p.CoordinatorEpoch, 0)}
	m.Topics.Add(p.Topic, p.Partition)
	answers, err := adm.WriteTxnMarkers(ctx, m)
	if err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	if a := answers[p.ProducerID].Topics[p.Topic].Partitions[p.Partition]; a.Err != nil {
		return fmt.Errorf("write marker to %s/%d: %w", p.Topic, p.Partition, a.Err)
	}
	if o.json {
		return printJSON(o.c.out, abortedTxn{Topic: p.Topic, Partition: &p.Partition, ProducerID: p.ProducerID})
	}
	return printf(o.c.out, "transaction of producer %d on %s/%d aborted\n", p.ProducerID, p.Topic, p.Partition)
}
