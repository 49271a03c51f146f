package txn

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// parked is a request that waits until the markers of the transaction before it
// are written: for a client that is sooner than trying again later.
type parked struct {
	timer   coordinator.Timer
	promise *Promise
	again   func(t *coordinator.Turn)
}

// park has a request served again when the transaction has ended, or refused when
// that takes longer than its patience; 0 is that of the settings.
func (x *txn) park(t *coordinator.Turn, p *Promise, patience time.Duration, again func(t *coordinator.Turn)) {
	if patience == 0 {
		patience = x.m.opts.Settings().Patience
	}
	if patience <= 0 {
		refuse(t, p, kerr.ConcurrentTransactions)
		return
	}
	w := &parked{promise: p, again: again}
	w.timer.Fire = func(t *coordinator.Turn) {
		x.parked = slices.DeleteFunc(x.parked, func(o *parked) bool { return o == w })
		refuse(t, p, kerr.ConcurrentTransactions)
	}
	x.parked = append(x.parked, w)
	t.Set(&w.timer, t.Now().Add(patience))
}

// unpark serves what has waited, in its order. If one of them ends what another has
// begun, those that are left are told to try again.
func (x *txn) unpark(t *coordinator.Turn) {
	waiting := x.parked
	x.parked = nil
	for _, w := range waiting {
		t.Stop(&w.timer)
		if x.state.ending() {
			refuse(t, w.promise, kerr.ConcurrentTransactions)
			continue
		}
		w.again(t)
	}
}
