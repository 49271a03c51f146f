package txn

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/mainstem/mainstem/coordinator"
)

// Description is what is told of a transactional id.
type Description struct {
	Err      error
	Producer coordinator.Producer
	State    State
	Timeout  int32 // milliseconds
	Started  int64 // milliseconds since 1970, -1 without a transaction
	Places   []Place
}

// Describe serves a DescribeTransactions of one id.
func (m *Machine) Describe(t *coordinator.Turn, id string, p *coordinator.Promise[Description]) {
	x := m.txns[id]
	if x == nil {
		coordinator.Deliver(t, p, Description{Producer: NoProducer(), Err: kerr.TransactionalIDNotFound})
		return
	}
	coordinator.Deliver(t, p, Description{
		Producer: x.who(), State: x.state, Timeout: x.timeout, Started: x.started, Places: x.places.list(),
	})
}

// Filter says which transactions are listed. What is empty lets all through.
type Filter struct {
	States    []State
	Producers []int64
	// Longer, unless it is negative, leaves out transactions that run for no longer
	// than that. Without one the time counts from 1970.
	Longer time.Duration
	// Pattern is for whole ids.
	Pattern *regexp.Regexp
}

// Listed is one transaction of a list.
type Listed struct {
	ID       string
	Producer int64
	State    State
}

// List serves a ListTransactions of this partition, by id.
func (m *Machine) List(t *coordinator.Turn, f *Filter, p *coordinator.Promise[[]Listed]) {
	list := []Listed{}
	for id, x := range m.txns {
		if f.takes(x, t.NowMillis()) {
			list = append(list, Listed{ID: id, Producer: x.producer, State: x.state})
		}
	}
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.ID, b.ID) })
	coordinator.Deliver(t, p, list)
}

func (f *Filter) takes(x *txn, now int64) bool {
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, x.state),
		len(f.Producers) > 0 && !slices.Contains(f.Producers, x.producer),
		f.Longer >= 0 && now-x.started <= f.Longer.Milliseconds(),
		f.Pattern != nil && !f.Pattern.MatchString(x.id):
		return false
	}
	return true
}
