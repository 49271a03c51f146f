package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

func newTxn(c *console) *cobra.Command {
	return group("txn", "List, describe and abort transactions", newTxnList(c), newTxnDescribe(c), newTxnAbort(c))
}

// completeTxns offers the transactional ids of the cluster for the argument.
func completeTxns(r *remote) completion {
	return completeNames(r, func(ctx context.Context, adm *kadm.Client) ([]string, error) {
		txns, err := adm.ListTransactions(ctx, nil, nil)
		return txns.TransactionalIDs(), err
	})
}

// ongoing is the state of a transaction that its producer has not ended.
const ongoing = "Ongoing"

// running tells whether a transaction is open: it is decided upon, or being ended.
func running(state string) bool {
	return state == ongoing || state == "PrepareCommit" || state == "PrepareAbort"
}

// openFor is for how many milliseconds a transaction has been open, nil if none is.
func openFor(t *kadm.DescribedTransaction, now time.Time) *int64 {
	if !running(t.State) || t.StartTimestamp < 0 {
		return nil
	}
	ms := max(now.UnixMilli()-t.StartTimestamp, 0)
	return &ms
}

// roughly is a time, given in milliseconds, as people say it.
func roughly(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d > time.Minute {
		d = d.Round(time.Second)
	}
	return d.String()
}

// describeTxns asks for transactional ids; without any there is nothing to ask.
func describeTxns(ctx context.Context, adm *kadm.Client, ids []string) (kadm.DescribedTransactions, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	txns, err := adm.DescribeTransactions(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("describe transactions: %w", err)
	}
	return txns, nil
}
