package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

type txnList struct {
	*remote
	states    []string
	producers []int64
	pattern   string
	longer    time.Duration
}

type listedTxn struct {
	ID            string `json:"transactional_id"`
	State         string `json:"state"`
	ProducerID    int64  `json:"producer_id"`
	ProducerEpoch int16  `json:"producer_epoch"`
	Coordinator   int32  `json:"coordinator"`
	TimeoutMs     int32  `json:"timeout_ms"`
	OpenMs        *int64 `json:"open_ms"` // Null without an open transaction.
	Partitions    int    `json:"partitions"`
}

func newTxnList(c *console) *cobra.Command {
	o := &txnList{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List transactional ids and how long their transactions have been open",
		Example: `  mainstem txn list
  mainstem txn list --state Ongoing --longer-than 5m`,
		Args: needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.admin(cmd.Context(), o.run) },
	}
	o.remote = addRemote(cmd, c)
	f := cmd.Flags()
	f.StringSliceVar(&o.states, "state", nil, "only in these states: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort")
	f.Int64SliceVar(&o.producers, "producer", nil, "only of these producer ids")
	f.StringVar(&o.pattern, "pattern", "", "only ids that match this regular expression as a whole")
	f.DurationVar(&o.longer, "longer-than", 0, "only transactions that have been open for longer")
	return cmd
}

func (o *txnList) run(ctx context.Context, adm *kadm.Client) error {
	listed, err := adm.ListTransactionsByTxPattern(ctx, o.producers, o.states, o.pattern)
	if err != nil {
		return fmt.Errorf("list transactions: %w", err)
	}
	described, err := describeTxns(ctx, adm, listed.TransactionalIDs())
	if err != nil {
		return err
	}
	now := time.Now()
	rows := []listedTxn{}
	for _, d := range described.Sorted() {
		if errors.Is(d.Err, kerr.TransactionalIDNotFound) {
			continue // It has expired since.
		}
		if d.Err != nil {
			return fmt.Errorf("describe transaction %s: %w", d.TxnID, d.Err)
		}
		open := openFor(&d, now)
		if o.longer > 0 && (open == nil || *open <= o.longer.Milliseconds()) {
			continue
		}
		row := listedTxn{
			ID: d.TxnID, State: d.State, ProducerID: d.ProducerID, ProducerEpoch: d.ProducerEpoch, Coordinator: d.Coordinator,
			TimeoutMs: d.TimeoutMillis, OpenMs: open,
		}
		d.Topics.Each(func(string, int32) { row.Partitions++ })
		rows = append(rows, row)
	}
	return o.print(rows)
}

func (o *txnList) print(rows []listedTxn) error {
	if o.json {
		return printJSON(o.c.out, rows)
	}
	if len(rows) == 0 {
		return printf(o.c.err, "There is no such transactional id.\n")
	}
	t := table{heading: []string{"TRANSACTIONAL ID", "STATE", "PRODUCER", "EPOCH", "OPEN FOR", "TIMEOUT", "PARTITIONS"}}
	for _, r := range rows {
		t.add(r.ID, r.State, itoa(r.ProducerID), itoa(r.ProducerEpoch), orDash(r.OpenMs, roughly),
			roughly(int64(r.TimeoutMs)), itoa(r.Partitions))
	}
	return t.print(o.c.out)
}
