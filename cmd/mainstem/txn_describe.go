package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

type txnDescribe struct{ *remote }

type describedTxn struct {
	ID            string          `json:"transactional_id"`
	State         string          `json:"state"`
	ProducerID    int64           `json:"producer_id"`
	ProducerEpoch int16           `json:"producer_epoch"`
	Coordinator   int32           `json:"coordinator"`
	TimeoutMs     int32           `json:"timeout_ms"`
	StartedMs     *int64          `json:"started_ms"` // Since 1970; null without an open transaction.
	OpenMs        *int64          `json:"open_ms"`
	Partitions    []describedPart `json:"partitions"`
}

// describedPart is a partition of an open transaction. One that has no record of it
// yet, or whose marker is written, has no first offset.
type describedPart struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	FirstOffset *int64 `json:"first_offset"`
	EndOffset   *int64 `json:"end_offset"`
}

func newTxnDescribe(c *console) *cobra.Command {
	o := &txnDescribe{}
	cmd := &cobra.Command{
		Use:     "describe ID...",
		Short:   "Show the transactions of transactional ids, and which partitions they hold up",
		Example: "  mainstem txn describe order-writer-1",
		Args:    needArgs("the transactional id", 1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.admin(cmd.Context(), func(ctx context.Context, adm *kadm.Client) error { return o.run(ctx, adm, args) })
		},
	}
	o.remote = addRemote(cmd, c)
	cmd.ValidArgsFunction = completeTxns(o.remote)
	return cmd
}

func (o *txnDescribe) run(ctx context.Context, adm *kadm.Client, ids []string) error {
	txns, err := describeTxns(ctx, adm, ids)
	if err != nil {
		return err
	}
	var errs []error
	described := []describedTxn{}
	for _, t := range txns.Sorted() {
		if t.Err != nil {
			errs = append(errs, fmt.Errorf("describe transaction %s: %w", t.TxnID, t.Err))
			continue
		}
		d, err := describeTxn(ctx, adm, &t)
		if err != nil {
			return err
		}
		described = append(described, d)
	}
	if o.json {
		if err := printJSON(o.c.out, described); err != nil {
			return err
		}
		return errors.Join(errs...)
	}
	for i := range described {
		if i > 0 {
			if err := printf(o.c.out, "\n"); err != nil {
				return err
			}
		}
		if err := o.print(&described[i]); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// describeTxn finds where an open transaction begins on each of its partitions.
func describeTxn(ctx context.Context, adm *kadm.Client, t *kadm.DescribedTransaction) (describedTxn, error) {
	d := describedTxn{
		ID: t.TxnID, State: t.State, ProducerID: t.ProducerID, ProducerEpoch: t.ProducerEpoch, Coordinator: t.Coordinator,
		TimeoutMs: t.TimeoutMillis, OpenMs: openFor(t, time.Now()), Partitions: []describedPart{},
	}
	if d.OpenMs != nil {
		d.StartedMs = &t.StartTimestamp
	}
	if len(t.Topics) == 0 {
		return d, nil
	}
	var some *kadm.ShardErrors
	producers, err := adm.DescribeProducers(ctx, t.Topics)
	if err != nil && !errors.As(err, &some) {
		return d, fmt.Errorf("describe producers: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, t.Topics.Topics()...)
	if err != nil && !errors.As(err, &some) {
		return d, fmt.Errorf("list end offsets: %w", err)
	}
	for _, topic := range t.Topics.Sorted() {
		for _, partition := range topic.Partitions {
			p := describedPart{Topic: topic.Topic, Partition: partition}
			known := producers[topic.Topic].Partitions[partition].ActiveProducers[t.ProducerID]
			if known.ProducerID == t.ProducerID && known.Topic != "" && known.CurrentTxnStartOffset >= 0 {
				p.FirstOffset = &known.CurrentTxnStartOffset
			}
			if end, ok := ends.Lookup(topic.Topic, partition); ok && end.Err == nil {
				p.EndOffset = &end.Offset
			}
			d.Partitions = append(d.Partitions, p)
		}
	}
	return d, nil
}

func (o *txnDescribe) print(d *describedTxn) error {
	open := "no open transaction"
	if d.OpenMs != nil {
		open = "open for " + roughly(*d.OpenMs)
	}
	err := printf(o.c.out, "%s (%s, %s, producer %d epoch %d, timeout %s, coordinator %d)\n",
		d.ID, d.State, open, d.ProducerID, d.ProducerEpoch, roughly(int64(d.TimeoutMs)), d.Coordinator)
	if err != nil || len(d.Partitions) == 0 {
		return err
	}
	t := table{heading: []string{"TOPIC", "PARTITION", "FIRST OFFSET", "END OFFSET"}}
	for _, p := range d.Partitions {
		t.add(p.Topic, itoa(p.Partition), orDash(p.FirstOffset, itoa), orDash(p.EndOffset, itoa))
	}
	return t.print(o.c.out)
}
